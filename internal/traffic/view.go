package traffic

import (
	"fmt"
	"math"

	"slosim/internal/report"
	"slosim/sim/clock"
	"slosim/sim/stats"
	"slosim/workloads"
)

// View is an analysis of a trace with what is known about the file.
type View struct {
	Spec  workloads.Trace
	About workloads.TraceStats
	A     *Analysis
	Fit   []Comparison // nil = none asked for
}

// Summary is the table of single figures.
func (v *View) Summary() report.Grid {
	a := v.A
	busiest, quietest := a.extremes()
	g := report.Grid{Left: 2, Head: []string{"measure", "value"}}
	add := func(what, format string, args ...any) {
		g.Rows = append(g.Rows, []string{what, fmt.Sprintf(format, args...)})
	}
	add("format", "%s", v.Spec.Format)
	add("requests", "%s", report.Whole(a.Rows))
	if v.About.Skipped > 0 {
		add("broken rows passed over", "%s, such as %s", report.Whole(v.About.Skipped), v.About.Why)
	}
	add("span", "%s", report.Span(whole(a.Span)))
	add("requests per second", "%s", report.Number(a.Rate()))
	add("  in windows of "+report.Span(a.Width), "%s to %s", report.Number(quietest), report.Number(busiest))
	add("prompt tokens per second", "%s", report.Number(a.Rate()*a.Prompt.Mean()))
	add("output tokens per second", "%s", report.Number(a.Rate()*a.Output.Mean()))
	add("CV of the gaps", "%.2f (1 = Poisson)", a.GapCV())
	w, d := a.Dispersion()
	for i := range w {
		add("dispersion of counts, "+report.Span(w[i]), "%.2f (1 = Poisson)", d[i])
	}
	add("rank correlation of prompt and output", "%.2f", a.Correlation())
	if r := a.Reuse; r.Rows > 0 {
		bound := ""
		if r.Partial {
			bound = "at least "
		}
		add("blocks found, unbounded prefix cache", "%s%s", bound, report.Percent(r.BlockHitRate()))
		add("prompt tokens found", "%s%s", bound, report.Percent(float64(r.Found)/float64(r.Tokens)))
		add("requests that find some", "%s%s", bound, report.Percent(float64(a.HitTokens.N())/float64(r.Rows)))
		add("distinct blocks", "%s", report.Whole(int64(r.Distinct())))
	}
	return g
}

// whole rounds a span of more than a minute to seconds.
func whole(d clock.Duration) clock.Duration {
	if d < clock.Minute {
		return d
	}
	return (d + clock.Second/2) / clock.Second * clock.Second
}

// shares are the quantiles that tables of lengths show.
var shares = []struct {
	name string
	p    float64
}{{"P1", .01}, {"P10", .1}, {"P25", .25}, {"P50", .5}, {"P75", .75}, {"P90", .9}, {"P95", .95}, {"P99", .99}, {"P99.9", .999}}

// LengthGrid is a table of quantiles of lengths.
func LengthGrid(names []string, lists []*Lengths) report.Grid {
	g := report.Grid{Head: []string{"tokens", "n", "mean"}, Left: 1}
	for _, s := range shares {
		g.Head = append(g.Head, s.name)
	}
	g.Head = append(g.Head, "longest")
	for i, l := range lists {
		row := []string{names[i], report.Whole(l.Hist.N()), report.Number(l.Mean())}
		for _, s := range shares {
			row = append(row, report.Whole(int64(math.Round(l.Quantile(s.p)))))
		}
		g.Rows = append(g.Rows, append(row, report.Whole(l.Hist.Max())))
	}
	return g
}

// extremes are the highest and the lowest rate of a whole window.
func (a *Analysis) extremes() (high, low float64) {
	low = math.Inf(1)
	full := int(a.Span / a.Width)
	for _, w := range a.Windows[:max(1, min(full, len(a.Windows)))] {
		high, low = max(high, w.N/a.Width.Seconds()), min(low, w.N/a.Width.Seconds())
	}
	return high, low
}

// Grids are the tables of a trace, for a terminal.
func (v *View) Grids() []report.Grid {
	out := []report.Grid{v.Summary(), LengthGrid([]string{"prompt", "output"}, []*Lengths{&v.A.Prompt, &v.A.Output})}
	if v.Fit != nil {
		out = append(out, GoodnessGrid(v.Fit))
	}
	return out
}

// Document is the page of a trace.
func (v *View) Document(command string) *report.Document {
	a := v.A
	high, low := a.extremes()
	d := &report.Document{
		Title:    "Trace " + base(v.Spec.File),
		Headline: fmt.Sprintf("%s requests in %s: %s per second, gaps with a CV of %.2f", report.Whole(a.Rows), report.Span(whole(a.Span)), report.Number(a.Rate()), a.GapCV()),
		Lead:     fmt.Sprintf("Windows of %s hold %s to %s requests per second.", report.Span(a.Width), report.Number(low), report.Number(high)),
		Setting:  "format " + v.Spec.Format, Command: command,
		Facts: []report.Fact{
			{Label: "Rate", Value: report.Number(a.Rate()) + " per s", Basis: report.Whole(a.Rows) + " requests"},
			{Label: "Prompt P50, P99", Value: report.Number(a.Prompt.Quantile(.5)) + ", " + report.Number(a.Prompt.Quantile(.99)), Basis: "tokens; mean " + report.Number(a.Prompt.Mean())},
			{Label: "Output P50, P99", Value: report.Number(a.Output.Quantile(.5)) + ", " + report.Number(a.Output.Quantile(.99)), Basis: "tokens; mean " + report.Number(a.Output.Mean())},
		},
	}
	if v.About.Skipped > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%s broken rows are left out, such as %s", report.Whole(v.About.Skipped), v.About.Why))
	}
	if a.Reuse.Rows > 0 {
		d.Facts = append(d.Facts, report.Fact{Label: "Prefix reuse", Value: report.Percent(a.Reuse.BlockHitRate()), Basis: "of the blocks, with unbounded memory"})
	}
	lengths := LengthGrid([]string{"prompt", "output"}, []*Lengths{&a.Prompt, &a.Output})
	d.Sections = []report.Section{
		{ID: "rate", Title: "When", Plots: []report.Plot{ratePlot("rate-plot", a, nil, func(at clock.Duration) string { return report.Span(at) + " after the start" }), tokenPlot("token-plot", a)}, Grids: []report.Grid{v.Summary()}},
		{ID: "lengths", Title: "How long", Plots: []report.Plot{lengthPlot("prompts", "prompts", a.Prompt.Hist, "--prefill"), lengthPlot("outputs", "outputs", a.Output.Hist, "--decode")}, Grids: []report.Grid{lengths}},
	}
	for i := range d.Sections[0].Plots {
		d.Sections[0].Plots[i].Elapsed = true
	}
	if w, disp := a.Dispersion(); len(w) > 1 {
		d.Sections[0].Plots = append(d.Sections[0].Plots, dispersionPlot(w, disp))
	}
	if v.Fit != nil {
		d.Sections = append(d.Sections, report.Section{ID: "fit", Title: "How well the fit matches", Grids: []report.Grid{GoodnessGrid(v.Fit)}})
	}
	return d
}

func base(file string) string {
	for i := len(file) - 1; i >= 0; i-- {
		if file[i] == '/' {
			return file[i+1:]
		}
	}
	return file
}

// instants are the starts of the windows.
func (a *Analysis) instants() []clock.Time {
	out := make([]clock.Time, len(a.Windows))
	for i := range out {
		out[i] = clock.Time(a.Width) * clock.Time(i)
	}
	return out
}

// perSecond returns a figure of each window per second of it.
func (a *Analysis) perSecond(of func(Window) float64) []float64 {
	out := make([]float64, len(a.Windows))
	for i, w := range a.Windows {
		width := a.Width
		if left := a.Span - clock.Duration(i)*a.Width; left < width {
			width = max(left, a.Width/10) // the last one
		}
		out[i] = of(w) / width.Seconds()
	}
	return out
}

// ratePlot shows arrivals over time, and beside them what was expected.
func ratePlot(id string, a *Analysis, expected []float64, when func(clock.Duration) string) report.Plot {
	p := report.Plot{ID: id, Unit: "requests/s", T: a.instants(), To: clock.Time(a.Span)}
	rates := a.perSecond(func(w Window) float64 { return w.N })
	peak := 0
	for i := range rates {
		if rates[i] > rates[peak] {
			peak = i
		}
	}
	p.Title = fmt.Sprintf("Up to %s requests per second, %s", report.Number(rates[peak]), when(clock.Duration(peak)*a.Width))
	p.Aid = "Requests per second, in windows of " + report.Span(a.Width) + "."
	p.Lines = []report.PlotLine{{Label: "requests", Unit: "per s", Values: rates, Colour: "--p50"}}
	if expected != nil {
		p.Aid += " Dashed: what the rate says."
		p.Lines = append(p.Lines, report.PlotLine{Label: "expected", Unit: "per s", Values: expected, Colour: "--p99", Dashed: true})
	}
	return p
}

// tokenPlot shows tokens over time.
func tokenPlot(id string, a *Analysis) report.Plot {
	prompts, outputs := a.perSecond(func(w Window) float64 { return w.Prompt }), a.perSecond(func(w Window) float64 { return w.Output })
	return report.Plot{ID: id, Unit: "tokens/s", T: a.instants(), To: clock.Time(a.Span),
		Title: fmt.Sprintf("%s prompt tokens come with each output token", report.Number(a.Prompt.Mean()/a.Output.Mean())),
		Aid:   "Tokens per second by the arrival of their request, in windows of " + report.Span(a.Width) + ".",
		Lines: []report.PlotLine{
			{Label: "prompt", Unit: "tokens/s", Values: prompts, Colour: "--prefill", Stack: true},
			{Label: "output", Unit: "tokens/s", Values: outputs, Colour: "--decode", Stack: true},
		}}
}

// lengthPlot shows which share of the requests has which length.
func lengthPlot(id, what string, h *stats.Hist, colour string) report.Plot {
	edges := []float64{0}
	for x := 1.0; len(edges) < 60; x *= math.Sqrt2 {
		if e := math.Round(x); e > edges[len(edges)-1] {
			edges = append(edges, e)
		}
		if x > float64(h.Max()) {
			break
		}
	}
	share := make([]float64, len(edges)-1)
	h.Each(func(low, width float64, n int64) {
		for k := range share {
			if mid := low + (width-1)/2; mid > edges[k] && mid <= edges[k+1] {
				share[k] += 100 * float64(n) / float64(h.N())
			}
		}
	})
	first := 0
	for first < len(share)-2 && share[first] == 0 {
		first++
	}
	p := report.Plot{ID: id, Unit: "% of requests", Below: "tokens, up to"}
	for k := first; k < len(share); k++ {
		p.Names = append(p.Names, report.Number(edges[k])+" to "+report.Number(edges[k+1]))
		p.Labels = append(p.Labels, report.Number(edges[k+1]))
	}
	q := h.Quantiles(.5, .99)
	p.Title = fmt.Sprintf("Half of the %s have at most %s tokens, 99 %% at most %s", what, report.Number(q[0]), report.Number(q[1]))
	p.Aid = "Share of requests by length, in steps of √2."
	p.Lines = []report.PlotLine{{Label: what, Unit: "%", Values: share[first:], Colour: colour, Stack: true}}
	return p
}

// dispersionPlot shows over which times arrivals clump.
func dispersionPlot(w []clock.Duration, value []float64) report.Plot {
	p := report.Plot{ID: "dispersion", Unit: "variance ÷ mean", Below: "width of the windows", Log: true}
	ones := make([]float64, len(w))
	for i := range w {
		ones[i] = 1
		p.Names = append(p.Names, report.Span(w[i]))
		p.Labels = append(p.Labels, report.Span(w[i]))
	}
	p.Title = fmt.Sprintf("Counts in %s vary %s times as much as Poisson arrivals", report.Span(w[len(w)-1]), report.Number(value[len(w)-1]))
	p.Aid = "Variance of the counts over their mean, by window: flat at 1 = Poisson; rising = bursts or a rate that changes."
	p.Lines = []report.PlotLine{{Label: "this", Unit: "", Values: value, Colour: "--p99"}, {Label: "Poisson", Unit: "", Values: ones, Colour: "--muted", Dashed: true}}
	return p
}
