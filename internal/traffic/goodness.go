package traffic

import (
	"fmt"
	"math"
	"strings"

	"slosim/internal/report"
	"slosim/sim/clock"
)

// fitSeeds is how many seeds a goodness-of-fit table averages over.
const fitSeeds = 5

// Comparison is one line of a goodness-of-fit table.
type Comparison struct {
	What          string
	Trace, Fitted float64
	Format        func(float64) string
	NoRatio       bool // differences of it are not relative
}

// Error returns the relative error of the fitted figure.
func (c Comparison) Error() float64 { return c.Fitted/c.Trace - 1 }

// Goodness simulates a fit under a few seeds and compares it with its trace.
func (f *Fit) Goodness(a *Analysis) ([]Comparison, error) {
	list := figures(a)
	for i := range list {
		list[i].Trace = list[i].Fitted
		list[i].Fitted = 0
	}
	chi, degrees := 0.0, 0.0
	for seed := range uint64(fitSeeds) {
		s, err := f.Simulate(seed + 1)
		if err != nil {
			return nil, err
		}
		for i, c := range figures(s) {
			if i < len(list) {
				list[i].Fitted += c.Fitted / fitSeeds
			}
		}
		x, d := rateChi(a, s, f.width())
		chi, degrees = chi+x/fitSeeds, d
	}
	list = append(list, Comparison{What: "χ² of the counts by fitted window, per degree of freedom", Trace: 1, Fitted: chi / max(1, degrees), Format: report.Number, NoRatio: true})
	return list, nil
}

// width of the fitted windows.
func (f *Fit) width() clock.Duration {
	if len(f.rates) > 1 {
		return f.rates[1].At
	}
	return f.Span + 1
}

// rateChi compares counts by window. A gamma process with shape k has counts of
// variance n/k.
func rateChi(a, s *Analysis, width clock.Duration) (chi, degrees float64) {
	merge := func(x *Analysis) []float64 {
		out := make([]float64, int(a.Span/width)+1)
		for i, w := range x.Windows {
			if k := int(clock.Duration(i) * x.Width / width); k < len(out) {
				out[k] += w.N
			}
		}
		return out
	}
	if a.Width > width || width%a.Width != 0 {
		return 0, 0
	}
	want, got := merge(a), merge(s)
	_, disp := s.Dispersion()
	scale := 1.0
	if len(disp) > 0 {
		scale = max(0.05, disp[0])
	}
	for k := range want {
		if want[k] >= 5 {
			chi += (got[k] - want[k]) * (got[k] - want[k]) / want[k] / scale
			degrees++
		}
	}
	return chi, degrees
}

// figures are what a trace and its fit are compared by.
func figures(a *Analysis) []Comparison {
	cv := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	out := []Comparison{
		{What: "requests per second", Fitted: a.Rate(), Format: report.Number},
		{What: "CV of the gaps", Fitted: a.GapCV(), Format: cv},
	}
	w, d := a.Dispersion()
	for i := range w {
		out = append(out, Comparison{What: "dispersion of counts, " + report.Span(w[i]), Fitted: d[i], Format: cv})
	}
	for _, l := range []struct {
		name string
		of   *Lengths
	}{{"prompt", &a.Prompt}, {"output", &a.Output}} {
		out = append(out, Comparison{What: l.name + " mean", Fitted: l.of.Mean(), Format: report.Number})
		for _, q := range []struct {
			name string
			p    float64
		}{{"P50", .5}, {"P90", .9}, {"P95", .95}, {"P99", .99}} {
			out = append(out, Comparison{What: l.name + " " + q.name, Fitted: l.of.Quantile(q.p), Format: report.Number})
		}
	}
	return append(out, Comparison{What: "rank correlation of prompt and output", Fitted: a.Correlation(), Format: cv, NoRatio: true})
}

// GoodnessGrid is the table of a fit against its trace.
func GoodnessGrid(list []Comparison) report.Grid {
	g := report.Grid{Head: []string{"goodness of fit", "trace", "fitted", "error"}, Left: 1,
		Notes: []string{fmt.Sprintf("Fitted: the mean over %d seeds of what the simulator draws from the written table.", fitSeeds)}}
	var clumps []string
	for _, c := range list {
		diff := fmt.Sprintf("%+.1f %%", 100*c.Error())
		if c.NoRatio || c.Trace == 0 || math.IsNaN(c.Trace) {
			diff = fmt.Sprintf("%+.2f", c.Fitted-c.Trace)
		}
		diff = strings.Replace(diff, "-", "−", 1)
		g.Rows = append(g.Rows, []string{c.What, c.Format(c.Trace), c.Format(c.Fitted), diff})
		if strings.HasPrefix(c.What, "dispersion") && math.Abs(c.Error()) > 0.25 {
			clumps = append(clumps, strings.TrimPrefix(c.What, "dispersion of counts, "))
		}
	}
	if len(clumps) > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("Counts in windows of %s vary otherwise than in the trace: its gaps are not independent, as in batches or chains of requests. Where that matters, replay the trace.", strings.Join(clumps, ", ")))
	}
	return g
}
