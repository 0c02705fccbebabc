package review

import (
	"math"
	"strconv"

	"slosim/internal/report"
)

// percent writes a share.
func percent(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return report.Percent(v)
}

// short writes a figure to three significant digits at most.
func short(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// secs writes a time.
func secs(v Number) string {
	switch {
	case math.IsNaN(float64(v)):
		return "–"
	case math.IsInf(float64(v), 1):
		return "never"
	}
	return report.Seconds(float64(v))
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return report.Whole(int64(n)) + " " + one + "s"
}

// money writes dollars.
func money(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	if v < 0 {
		return "−$" + report.Whole(int64(-v+.5))
	}
	return "$" + report.Whole(int64(v+.5))
}

// signed writes a difference with its sign.
func signed(v float64, write func(float64) string) string {
	switch {
	case v == 0:
		return "0"
	case v > 0:
		return "+" + write(v)
	}
	return "−" + write(-v)
}
