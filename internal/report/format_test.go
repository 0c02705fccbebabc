package report

import (
	"math"
	"testing"

	"slosim/sim/clock"
	"slosim/sim/stats"
)

func TestEstimatesAreShownToTheirUncertainty(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		e    stats.Estimate
		want string
	}{
		{stats.Estimate{V: 4.87, Lo: 4.61, Hi: 5.13, R: 5}, "4.9 s [4.6, 5.1]"},
		{stats.Estimate{V: .4201, Lo: .41, Hi: .43, R: 5}, "0.42 s [0.41, 0.43]"},
		{stats.Estimate{V: .0196, Lo: .0195, Hi: .0197, R: 5}, "19.6 ms [19.5, 19.7]"},
		{stats.Estimate{V: 1234.5, Lo: 1200, Hi: 1269, R: 5}, "21 min [20, 21]"},
		{stats.Estimate{V: 4.87, Lo: 4.87, Hi: 4.87, R: 1}, "4.87 s"},
		{stats.Estimate{V: 4.87, Lo: 4.1, Hi: inf, R: 5}, "4.87 s [4.10, ∞)"},
		{stats.Estimate{V: inf, Lo: 4.1, Hi: inf, R: 5}, "never"},
		{stats.Estimate{V: math.NaN(), R: 5}, "–"},
		{stats.Estimate{}, "–"},
		{stats.Estimate{R: 5}, "0 s [0, 0]"},
	} {
		if got := seconds(c.e); got != c.want {
			t.Errorf("seconds(%+v) = %q, want %q", c.e, got, c.want)
		}
	}
	if got := attained(stats.Estimate{V: .99996, Lo: .99995, Hi: .99997, R: 5}); got != "99.996 % [99.995, 99.997]" {
		t.Errorf("attained near 1 = %q", got)
	}
	if got := attained(stats.Estimate{V: 1, Lo: 1, Hi: 1, R: 5}); got != "100 % [100, 100]" {
		t.Errorf("attained 1 = %q", got)
	}
}

func TestNumbersReadAsPeopleWriteThem(t *testing.T) {
	for got, want := range map[string]string{
		count(int64(7_214_532)):              "7,214,532",
		count(0):                             "0",
		number(-1234.56, 1):                  "−1,234.6",
		number(-.001, 1):                     "0.0",
		usd(67968):                           "$67,968",
		usd(2.95):                            "$2.95",
		target(.999):                         "99.9 %",
		target(.9999):                        "99.99 %",
		share(.44):                           "44 %",
		share(.0005):                         "0.05 %",
		span(72 * clock.Hour):                "72 h",
		span(30 * clock.Day):                 "30 d",
		span(160 * clock.Minute):             "2 h 40 min",
		span(90 * clock.Second):              "1 min 30 s",
		span(250 * clock.Millisecond):        "250 ms",
		times(4.9, .42):                      "12 times",
		times(4.9, 0):                        "",
		tokens(64000):                        "64K",
		short("a very long name indeed", 10): "a very lo…",
		unbroken("4.9 s [4.5, 5.2] of 30 d"): "4.9\u00a0s\u00a0[4.5,\u00a05.2] of 30\u00a0d",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWidthCountsTerminalCells(t *testing.T) {
	for s, want := range map[string]int{"abc": 3, "日本": 4, "e\u0301": 1, "🚀": 2, "4.9 °C": 6} {
		if got := width(s); got != want {
			t.Errorf("width(%q) = %d, want %d", s, got, want)
		}
	}
	if got := fit("日本語", 5); got != "日本…" {
		t.Errorf("fit = %q", got)
	}
}

func TestAxesEndAtRoundNumbers(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, .93: 1, 1.1: 1.2, 7.03: 8, 612: 800, 1980: 2000, 8.7: 10} {
		if got := niceMax(v); got != want {
			t.Errorf("niceMax(%v) = %v, want %v", v, got, want)
		}
	}
	c := &chart{columns: []chartColumn{{Values: []float64{.143, 7.03}}}, lines: []line{{column: 0}}}
	if lo, hi := c.logRange(); lo != .1 || hi != 10 {
		t.Errorf("log range of 0.143 to 7.03 = %v to %v, want 0.1 to 10", lo, hi)
	}
	if got := c.logTicks(); len(got) != 7 || got[3] != 1 {
		t.Errorf("log ticks = %v", got)
	}
}
