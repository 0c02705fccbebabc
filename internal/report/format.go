package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"slosim/sim/clock"
	"slosim/sim/stats"
)

// none stands for a value that does not exist.
const none = "–"

// scale is a unit in which numbers are shown: v·factor, followed by unit.
type scale struct {
	factor float64
	unit   string
}

var (
	inSeconds = scale{1, " s"}
	inMillis  = scale{1e3, " ms"}
	inMinutes = scale{1. / 60, " min"}
	inPercent = scale{100, " %"}
	inTokens  = scale{1, ""}
)

// timeScale picks the unit for a duration of v seconds: milliseconds below a
// tenth of a second, minutes from ten minutes on.
func timeScale(v float64) scale {
	switch v = math.Abs(v); {
	case math.IsInf(v, 0) || math.IsNaN(v) || v == 0:
		return inSeconds
	case v < 0.0995:
		return inMillis
	case v >= 600:
		return inMinutes
	}
	return inSeconds
}

// decimals returns how many digits after the point show v to its uncertainty:
// the first digit of the interval's width, but two or three significant digits
// of v; three when nothing is known of the error.
func decimals(v, halfWidth float64) int {
	if v == 0 && halfWidth == 0 {
		return 0
	}
	magnitude := 0
	if v != 0 {
		magnitude = int(math.Floor(math.Log10(math.Abs(v))))
	}
	least, most := 1-magnitude, 2-magnitude
	d := most
	if halfWidth > 0 && !math.IsInf(halfWidth, 0) {
		d = -int(math.Floor(math.Log10(2 * halfWidth)))
	}
	return max(0, min(max(d, least), most))
}

// number writes v with a fixed number of decimals and thousands separators.
func number(v float64, digits int) string {
	if math.IsNaN(v) {
		return none
	}
	if math.IsInf(v, 0) {
		return strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+")
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', digits, 64)
	whole, frac, _ := strings.Cut(s, ".")
	if len(whole) > 3 {
		whole = thousands(whole)
	}
	if frac != "" {
		whole += "." + frac
	}
	if v < 0 && strings.Trim(s, "0.") != "" {
		return "−" + whole
	}
	return whole
}

func thousands(digits string) string {
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// count writes a whole number: 1,234,567.
func count[T int | int32 | int64](n T) string { return number(float64(n), 0) }

// plain writes v in sc without an interval, to three significant digits at most.
func (sc scale) plain(v float64) string {
	if math.IsNaN(v) {
		return none
	}
	if math.IsInf(v, 1) {
		return "never"
	}
	return trimZeros(number(v*sc.factor, decimals(v*sc.factor, 0))) + sc.unit
}

// trimZeros drops zeros after the point: "28.0" → "28".
func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// value writes the estimate's value to its uncertainty, without the interval.
func (sc scale) value(e stats.Estimate) string {
	switch {
	case e.R == 0 || math.IsNaN(e.V):
		return none
	case math.IsInf(e.V, 1):
		return "never"
	}
	return number(e.V*sc.factor, sc.digits(e)) + sc.unit
}

// interval writes "[4.5, 5.2]", or "" when one replication gives none.
func (sc scale) interval(e stats.Estimate) string {
	if !hasInterval(e) || math.IsNaN(e.V) || math.IsInf(e.V, 0) {
		return ""
	}
	d := sc.digits(e)
	end := "]"
	hi := number(e.Hi*sc.factor, d)
	if math.IsInf(e.Hi, 1) {
		hi, end = "∞", ")"
	}
	lo := e.Lo
	if e.V >= 0 {
		lo = max(0, lo) // no time, share or count is below 0
	}
	return "[" + number(lo*sc.factor, d) + ", " + hi + end
}

// capped is a share with its interval within 100 %.
func capped(e stats.Estimate) stats.Estimate {
	e.Hi = max(e.V, min(1, e.Hi))
	return e
}

// full writes value and interval: "4.9 s [4.5, 5.2]".
func (sc scale) full(e stats.Estimate) string {
	if i := sc.interval(e); i != "" {
		return sc.value(e) + " " + i
	}
	return sc.value(e)
}

// oneReplication says where the intervals of a run with one replication come from.
func (s *story) oneReplication() string {
	for i := range s.r.Phases {
		for j := range s.r.Phases[i].Classes {
			if n := s.r.Phases[i].Classes[j].TTFT.P50.Batches; n > 0 {
				return fmt.Sprintf("One replication: intervals are from %d batches of it, where they hold enough requests, and say how the run varies over time, too.", n)
			}
		}
	}
	for i := range s.r.SLOs {
		if n := s.r.SLOs[i].Attained.Batches; n > 0 {
			return fmt.Sprintf("One replication: the only intervals are those of what the SLOs attained, from %d batches of it.", n)
		}
	}
	return "One replication: no intervals."
}

// hasInterval tells whether replications, or the batches of a single one, give an
// interval.
func hasInterval(e stats.Estimate) bool { return e.R > 1 || e.Batches > 0 }

func (sc scale) digits(e stats.Estimate) int {
	half := 0.0
	if hasInterval(e) {
		half = (e.Hi - e.Lo) / 2 * sc.factor
	}
	return decimals(e.V*sc.factor, half)
}

// seconds writes a time estimate in the unit that suits its size.
func seconds(e stats.Estimate) string { return timeScale(e.V).full(e) }

// share writes 0.116 as "11.6 %".
func share(v float64) string { return inPercent.plain(v) }

// attained writes a share near 1 to the precision of what is missing from it:
// "99.996 % [99.995, 99.997]".
func attained(e stats.Estimate) string { return strings.TrimSpace(strings.Join(attainedParts(e), " ")) }

// attainedParts are the share and its interval, which may be "".
func attainedParts(e stats.Estimate) []string {
	if e.R == 0 || math.IsNaN(e.V) {
		return []string{none, ""}
	}
	precision := 10 * (1 - e.V)
	if hasInterval(e) {
		precision = 100 * (e.Hi - e.Lo)
	}
	digits := 0
	if precision > 0 {
		digits = max(0, min(5, -int(math.Floor(math.Log10(precision)))))
	}
	if !hasInterval(e) && e.V < 1 {
		digits = max(1, digits)
	}
	// A share short of all, or above none, must not be rounded to it.
	for text := number(100*e.V, digits); digits < 5 && (e.V < 1 && text == number(100, digits) || e.V > 0 && text == number(0, digits)); text = number(100*e.V, digits) {
		digits++
	}
	if e.V <= 0 || !hasInterval(e) && e.V >= 1 {
		digits = 0
	}
	interval := ""
	if hasInterval(e) {
		interval = "[" + number(100*max(0, min(e.Lo, e.V)), digits) + ", " + number(100*max(min(1, e.Hi), e.V), digits) + "]"
	}
	return []string{number(100*e.V, digits) + " %", interval}
}

// target writes an objective's target without rounding it up: 0.999 → "99.9 %".
func target(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e8)/1e6, 'f', -1, 64) + " %"
}

// span writes a duration as people say it: "2 s", "72 h", "30 d", "2 h 40 min".
func span(d clock.Duration) string {
	switch {
	case d >= 4*clock.Day && d%clock.Day == 0:
		return fmt.Sprintf("%d d", d/clock.Day)
	case d >= clock.Hour && d%clock.Hour == 0:
		return fmt.Sprintf("%d h", d/clock.Hour)
	case d >= clock.Hour:
		return fmt.Sprintf("%d h %d min", d/clock.Hour, d%clock.Hour/clock.Minute)
	case d >= clock.Minute && d%clock.Minute == 0:
		return fmt.Sprintf("%d min", d/clock.Minute)
	case d >= clock.Minute:
		return fmt.Sprintf("%d min %d s", d/clock.Minute, d%clock.Minute/clock.Second)
	case d == 0:
		return "0 s"
	}
	return plainSeconds(d.Seconds())
}

// plainSeconds writes a threshold: 2 → "2 s", 0.25 → "250 ms".
func plainSeconds(v float64) string {
	if v < 1 {
		return strconv.FormatFloat(math.Round(v*1e6)/1e3, 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(math.Round(v*1e3)/1e3, 'f', -1, 64) + " s"
}

// usd writes an amount of money: "$67,968"; cents below $100.
func usd(v float64) string {
	if math.Abs(v) < 100 {
		return "$" + number(v, 2)
	}
	return "$" + number(v, 0)
}

// times writes a ratio: "11.7 times"; "" when it is not defined.
func times(after, before float64) string {
	q := after / before
	if math.IsNaN(q) || math.IsInf(q, 0) || q <= 0 {
		return ""
	}
	return number(q, max(0, decimals(q, 0)-1)) + " times"
}

// factor writes a burn rate: "11.7", "0.35", and "under 0.01" below that.
func factor(v float64) string {
	if v < .01 {
		return "under 0.01"
	}
	return trimZeros(number(v, min(2, decimals(v, 0))))
}
