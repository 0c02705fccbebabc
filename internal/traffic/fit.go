package traffic

import (
	"fmt"
	"math"
	"strings"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/sim/stats"
	"slosim/workloads"
)

// Windows of a fitted rate.
const (
	fitWindows = 96
	fewWindows = 12
)

// Fit is a class whose simulated traffic looks like a trace.
type Fit struct {
	Class workloads.Class
	Span  clock.Duration
	Name  string // of the trace, for the file's head
	rates []workloads.Window
	shape float64 // before rounding
}

// NewFit fits a class to a trace that has been analysed: rates by window, gamma
// gaps whose CV in operational time is the trace's, lengths by their quantiles,
// their rank correlation, and what prompts share.
func NewFit(spec workloads.Trace, a *Analysis) (*Fit, error) {
	f := &Fit{Span: a.Span, Name: spec.File}
	width := windowWidth(a.Span, a.Rows, fitWindows, fewWindows)
	counts := make([]float64, int(a.Span/width)+1)
	if err := Rows(spec, func(r *workloads.Row) { counts[r.Arrival/width]++ }); err != nil {
		return nil, err
	}
	for k, n := range counts {
		end := min(clock.Duration(k+1)*width, a.Span+clock.Second)
		rate := n / (end - clock.Duration(k)*width).Seconds()
		f.rates = append(f.rates, workloads.Window{At: clock.Duration(k) * width, Factor: round(rate, 5)})
	}
	cv, err := operationalCV(spec, f.rates)
	if err != nil {
		return nil, err
	}
	f.shape = min(max(1/cv/cv, 0.01), 100)
	f.Class = workloads.Class{
		Name: "trace", Stream: "trace",
		Prompt: empirical(a.Prompt.Hist), Output: empirical(a.Output.Hist),
		Correlation: min(max(round(a.Correlation(), 2), -0.99), 0.99),
		Rate:        workloads.Rate{Shape: "windows", Burstiness: round(f.shape, 4)},
	}
	mean := 0.0
	for _, w := range f.rates {
		mean += w.Factor / float64(len(f.rates))
	}
	f.Class.Rate.Mean = mean
	for _, w := range f.rates {
		f.Class.Rate.Windows = append(f.Class.Rate.Windows, workloads.Window{At: w.At, Factor: w.Factor / mean})
	}
	if n := a.HitTokens.N(); n > 0 {
		f.Class.Hit = workloads.Hit{Ratio: round(float64(n)/float64(a.Rows), 4), Tokens: empirical(a.HitTokens)}
	}
	return f, nil
}

// operationalCV returns the CV of the gaps in operational time: what is left of
// the burstiness when the rate by window is taken out.
func operationalCV(spec workloads.Trace, rates []workloads.Window) (float64, error) {
	sums := make([]float64, len(rates)) // Λ at the windows' starts
	for k := 1; k < len(rates); k++ {
		sums[k] = sums[k-1] + rates[k-1].Factor*(rates[k].At-rates[k-1].At).Seconds()
	}
	width := clock.Duration(math.MaxInt64)
	if len(rates) > 1 {
		width = rates[1].At
	}
	var gaps moments
	last, started := 0.0, false
	err := Rows(spec, func(r *workloads.Row) {
		k := min(int(r.Arrival/width), len(rates)-1)
		u := sums[k] + rates[k].Factor*(r.Arrival-rates[k].At).Seconds()
		if started {
			gaps.add(u - last)
		}
		last, started = u, true
	})
	if gaps.n < 2 || gaps.mean == 0 {
		return 1, err
	}
	return max(0.1, math.Sqrt(gaps.variance())/gaps.mean), err
}

// fitShares are the quantiles that a fitted length goes through.
var fitShares = []float64{0, .01, .02, .05, .1, .15, .2, .25, .3, .35, .4, .45, .5, .55, .6, .65, .7, .75, .8, .85, .9, .925, .95, .96, .97, .98, .99, .995, .999, .9999, 1}

// empirical returns a distribution through the quantiles of a histogram. Many
// equal lengths, such as those of a fixed system prompt, stay equal.
func empirical(h *stats.Hist) workloads.Dist {
	qs := h.Quantiles(fitShares...)
	d := workloads.Dist{Kind: "empirical"}
	for i, q := range qs {
		q = max(1, math.Round(q))
		if i == len(qs)-1 {
			q = float64(h.Max())
		}
		d.Points = append(d.Points, workloads.Point{Tokens: q, P: fitShares[i]})
		if n := len(d.Points); n > 1 && d.Points[n-1].Tokens < d.Points[n-2].Tokens {
			d.Points[n-1].Tokens = d.Points[n-2].Tokens
		}
	}
	return d
}

func round(v float64, digits int) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*unit) / unit
}

// TOML writes the class as a [[traffic]] table.
func (f *Fit) TOML() string {
	var b strings.Builder
	c := &f.Class
	fmt.Fprintf(&b, "# Traffic that looks like %s, written by sim trace --fit.\n", f.Name)
	fmt.Fprintf(&b, "# It lasts for %s from the start of the run on; the last window's rate goes on after that.\n", config.SpanText(f.Span/clock.Second*clock.Second))
	fmt.Fprintf(&b, "# Complete it with duration = %s, warmup = \"0s\", a [[pool]] and what was promised.\n\n", config.Span.Format(max(clock.Second, f.Span/clock.Second*clock.Second)))
	fmt.Fprintf(&b, "[[traffic]]\nclass = %q\n", c.Name)
	if c.Correlation != 0 {
		fmt.Fprintf(&b, "correlation = %s\n", config.Float.Format(c.Correlation))
	}
	if c.Hit.Ratio > 0 {
		fmt.Fprintf(&b, "prefix_hit = { ratio = %s, tokens = %s }\n", config.Share.Format(c.Hit.Ratio), inline(c.Hit.Tokens))
	}
	fmt.Fprintf(&b, "prompt = %s\noutput = %s\n\n[traffic.rate]\nshape = \"windows\"\nburstiness = %s\nwindows = [\n", inline(c.Prompt), inline(c.Output), config.Float.Format(c.Rate.Burstiness))
	for _, w := range f.rates {
		fmt.Fprintf(&b, "  [%s, %s],\n", config.Span.Format(w.At), config.Rate.Format(w.Factor))
	}
	b.WriteString("]\n")
	return b.String()
}

// inline writes an empirical distribution as an inline table.
func inline(d workloads.Dist) string {
	var points []string
	for _, p := range d.Points {
		points = append(points, fmt.Sprintf("[%s, %s]", config.Float.Format(p.Tokens), config.Float.Format(p.P)))
	}
	return `{ dist = "empirical", points = [` + strings.Join(points, ", ") + "] }"
}

// Simulate draws the class over the trace's span.
func (f *Fit) Simulate(seed uint64) (*Analysis, error) {
	a := NewAnalysis(f.Span, int64(f.Class.Rate.Mean*f.Span.Seconds()))
	err := Draw(&f.Class, nil, 0, seed, 0, clock.Time(f.Span), func(at clock.Time, r *workloads.Request) {
		a.Add(clock.Duration(at), r.Prompt, r.Output, nil)
	})
	a.Span = f.Span
	return a, err
}

// Draw calls f for each request that a class with an open loop sends in
// [from, to).
func Draw(c *workloads.Class, changes []workloads.Change, start clock.Duration, seed uint64, from, to clock.Time, f func(at clock.Time, r *workloads.Request)) error {
	shaper, err := workloads.NewShaper(c, changes, seed)
	if err != nil {
		return err
	}
	arrivals := workloads.NewArrivals(c, workloads.NewIntensity(c, changes, start), seed, from, to)
	var r workloads.Request
	for {
		at, i, ok := arrivals.Next()
		if !ok || at >= to {
			return nil
		}
		shaper.Shape(i, at, &r)
		f(at, &r)
	}
}
