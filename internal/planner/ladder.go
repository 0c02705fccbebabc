package planner

import (
	"context"
	"fmt"
	"io"
	"math"

	"slosim/internal/report"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
	"slosim/workloads"
)

// The step test of the field: from half of the target on, a fifth of the target more
// every two minutes; safe is what keeps every watched metric within 80 % of its SLO.
const (
	ladderFrom  = .5
	ladderStep  = .2
	ladderEvery = 2 * clock.Minute
	ladderRungs = 12
	ladderSafe  = .8
)

// Watched is one metric of the step test.
type Watched struct {
	Name      string // "chat TTFT P99"
	Class     string
	Metric    slo.Metric
	Threshold float64 // seconds
}

// Rung is one step.
type Rung struct {
	Share, Rate float64          // of the target; requests per second
	Values      []stats.Estimate // as watched, within the two minutes
	Steady      []stats.Estimate // the same in steady state
	Safe        bool
	SteadySafe  bool
}

// Ladder is a step test and what a longer look says.
type Ladder struct {
	Experiment sim.Experiment
	Span       Span
	Target     float64 // requests per second
	Saturation float64
	Watched    []Watched
	Rungs      []Rung

	Watermark, SteadyWatermark float64 // requests per second; 0 = not even the first step
	Bisected                   float64 // the steady watermark between steps, by bisection
	Knee                       float64
	Limit                      string // the metric that passes its mark first, in steady state
	Open                       bool   // the last step is safe too
}

// ClimbLadder carries out the step test at a target rate (0 = the experiment's) and
// looks for the same watermark in steady state.
func ClimbLadder(ctx context.Context, e sim.Experiment, target float64, span Span, o Options) (*Ladder, error) {
	if err := checkRates(&e); err != nil {
		return nil, err
	}
	l := &Ladder{Experiment: e, Span: span, Target: target}
	if target == 0 {
		l.Target = totalRate(&e)
	}
	for _, x := range e.SLOs {
		switch x.Metric {
		case slo.TTFT:
			l.Watched = append(l.Watched, Watched{x.Class + " TTFT P99", x.Class, x.Metric, x.Threshold.Seconds()})
		case slo.TPOT:
			l.Watched = append(l.Watched, Watched{x.Class + " TPOT P95", x.Class, x.Metric, x.Threshold.Seconds()})
		}
	}
	if l.Watched == nil {
		return nil, inputErrorf("the experiment has no [[slo]] on ttft or tpot: there is nothing to watch\n  add one, for example: metric = \"ttft\", threshold = \"2s\", objective = \"99%%\"")
	}
	lab := newLab(o)
	factor, err := lab.saturationFactor(ctx, e, 5*clock.Minute, 5*clock.Minute)
	if err != nil {
		return nil, err
	}
	l.Saturation = factor * totalRate(&e)
	if err := l.climb(ctx, lab); err != nil {
		return nil, err
	}
	if err := l.settle(ctx, lab); err != nil {
		return nil, err
	}
	return l, l.bisect(ctx, lab)
}

// rungs is how many steps there are: at least to 130 % of the target, and past
// saturation as far as twelve steps lead.
func (l *Ladder) rungs() int {
	n := int(math.Ceil((1.1*l.Saturation/l.Target-ladderFrom)/ladderStep)) + 1
	return max(5, min(n, ladderRungs))
}

// climb runs all steps one after the other in one run: each begins a phase.
func (l *Ladder) climb(ctx context.Context, lab *lab) error {
	n := l.rungs()
	base := ladderFrom * l.Target / totalRate(&l.Experiment)
	e := steady(l.Experiment, base, clock.Duration(n)*ladderEvery, ladderEvery)
	for k := 1; k < n; k++ {
		share := ladderFrom + ladderStep*float64(k)
		before := share - ladderStep
		for _, c := range e.Traffic {
			e.Changes = append(e.Changes, workloads.Change{Name: fmt.Sprintf("step %d of %s", k+1, c.Name), Class: c.Name, At: clock.Duration(k) * ladderEvery, RateFactor: share / before})
		}
	}
	points, err := lab.run(ctx, "step test", []sim.Experiment{e})
	if err != nil {
		return err
	}
	p := points[0]
	if p.Err != nil {
		return p.Err
	}
	if got := len(p.Runs[0].Phases); got != n {
		return fmt.Errorf("the step test has %d phases instead of %d", got, n)
	}
	for k := range n {
		share := ladderFrom + ladderStep*float64(k)
		r := Rung{Share: share, Rate: share * l.Target, Safe: true}
		for _, w := range l.Watched {
			v := p.of(func(r *sim.Result) float64 { return w.in(&r.Phases[k]) })
			r.Values = append(r.Values, v)
			r.Safe = r.Safe && v.V <= ladderSafe*w.Threshold
		}
		l.Rungs = append(l.Rungs, r)
	}
	for _, r := range l.Rungs {
		if !r.Safe {
			break
		}
		l.Watermark = r.Rate
	}
	l.Open = l.Rungs[n-1].Safe
	return nil
}

// in returns the watched value of a phase.
func (w *Watched) in(p *sim.Phase) float64 {
	for i := range p.Classes {
		if c := &p.Classes[i]; c.Class == w.Class && c.Cohort == "all" {
			if w.Metric == slo.TTFT {
				return c.TTFT.P99.V
			}
			return c.TPOT.P95.V
		}
	}
	return math.NaN()
}

// steadyAt simulates constant rates and returns the watched values and whether all
// are safe.
func (l *Ladder) steadyAt(ctx context.Context, lab *lab, stage string, rates []float64) ([][]stats.Estimate, []bool, error) {
	var list []sim.Experiment
	for _, r := range rates {
		list = append(list, steady(l.Experiment, r/totalRate(&l.Experiment), l.Span.Duration, l.Span.Warmup))
	}
	points, err := lab.run(ctx, stage, list)
	if err != nil {
		return nil, nil, err
	}
	values, safe := make([][]stats.Estimate, len(rates)), make([]bool, len(rates))
	for i, p := range points {
		if p.Err != nil {
			return nil, nil, p.Err
		}
		safe[i] = true
		for _, w := range l.Watched {
			v := p.of(func(r *sim.Result) float64 { return w.in(last(r)) })
			values[i] = append(values[i], v)
			if !(v.V <= ladderSafe*w.Threshold) {
				safe[i] = false
			}
		}
	}
	return values, safe, nil
}

// settle holds every step until heat and queues are steady.
func (l *Ladder) settle(ctx context.Context, lab *lab) error {
	var rates []float64
	for _, r := range l.Rungs {
		if r.Rate <= 1.15*l.Saturation { // beyond, there is no steady state
			rates = append(rates, r.Rate)
		}
	}
	values, safe, err := l.steadyAt(ctx, lab, "steps in steady state", rates)
	if err != nil {
		return err
	}
	var x, y []float64
	still := true
	for i := range rates {
		l.Rungs[i].Steady, l.Rungs[i].SteadySafe = values[i], safe[i]
		if still = still && safe[i]; still {
			l.SteadyWatermark = rates[i]
		}
		if rates[i] <= l.Saturation && !math.IsInf(values[i][0].V, 0) {
			x, y = append(x, rates[i]), append(y, values[i][0].V)
		}
	}
	if k := kneeOf(x, y); k >= 0 {
		l.Knee = x[k]
	}
	return nil
}

// bisect finds the watermark in steady state between steps, to 1 % of the target;
// three points at a time, so that every core has work.
func (l *Ladder) bisect(ctx context.Context, lab *lab) error {
	lo, hi := l.SteadyWatermark, 0.0
	for _, r := range l.Rungs {
		if r.Steady != nil && r.Rate > lo && !r.SteadySafe {
			hi = r.Rate
			break
		}
	}
	if hi == 0 {
		l.Bisected = lo
		return nil
	}
	for hi-lo > .01*l.Target {
		rates := []float64{lo + (hi-lo)/4, lo + (hi-lo)/2, lo + 3*(hi-lo)/4}
		values, safe, err := l.steadyAt(ctx, lab, "watermark by bisection", rates)
		if err != nil {
			return err
		}
		next := hi
		for i := range rates {
			if !safe[i] {
				next = rates[i]
				for k, w := range l.Watched {
					if !(values[i][k].V <= ladderSafe*w.Threshold) {
						l.Limit = w.Name
					}
				}
				break
			}
			lo = rates[i]
		}
		hi = next
	}
	l.Bisected = lo
	return nil
}

// verdict says what the step test is worth.
func (l *Ladder) verdict() []string {
	rate := func(v float64) string {
		if v == 0 {
			return "below the first step"
		}
		return fmt.Sprintf("%s requests/s (%s of the target)", report.Number(v), report.Percent(v/l.Target))
	}
	out := []string{
		fmt.Sprintf("Safe watermark of the two-minute steps: %s. In steady state, same steps: %s; by bisection: %s.", rate(l.Watermark), rate(l.SteadyWatermark), rate(l.Bisected)),
	}
	if l.Bisected > 0 {
		off := l.Watermark/l.Bisected - 1
		switch {
		case l.Watermark > l.Bisected*1.02:
			out = append(out, fmt.Sprintf("The step test promises %s more than holds after %s of warm-up: two minutes are too short for heat and queues.", report.Percent(off), report.Span(l.Span.Warmup)))
		case l.Watermark == l.SteadyWatermark:
			out = append(out, fmt.Sprintf("Two minutes per step find the same step as steady state does; the steps are too coarse by %s of it.", report.Percent(-off)))
		default:
			out = append(out, fmt.Sprintf("The step test stops %s short of what holds in steady state.", report.Percent(-off)))
		}
	}
	if l.Limit != "" {
		out = append(out, l.Limit+" is what passes 80 % of its SLO first.")
	}
	if l.Knee > 0 {
		out = append(out, fmt.Sprintf("Knee: %s. Saturation: %s.", rate(l.Knee), rate(l.Saturation)))
	} else {
		out = append(out, fmt.Sprintf("Saturation: %s.", rate(l.Saturation)))
	}
	best := math.Max(l.Bisected, 0)
	switch {
	case l.Open:
		out = append(out, "The last step is safe too: the target is far below what this cluster serves.")
	case best < l.Target:
		out = append(out, fmt.Sprintf("The target of %s requests/s is above the watermark: add capacity.", report.Number(l.Target)))
	case best > 1.5*l.Target:
		out = append(out, fmt.Sprintf("The watermark is %s times the target: there is room to shrink.", report.Number(best/l.Target)))
	default:
		out = append(out, "The target is below the watermark.")
	}
	return out
}

// Grids are the tables for the terminal.
func (l *Ladder) Grids() []report.Grid {
	g := report.Grid{Caption: fmt.Sprintf("%s: step test at a target of %s requests/s", l.Experiment.Name, report.Number(l.Target)), Head: []string{"step", "rate"}, Left: 0, Notes: l.verdict()}
	for _, w := range l.Watched {
		g.Head = append(g.Head, w.Name, "steady")
	}
	g.Head = append(g.Head, "safe", "steady safe")
	for _, r := range l.Rungs {
		row := []string{report.Percent(r.Share), report.Number(r.Rate) + "/s"}
		for i := range l.Watched {
			row = append(row, interval(r.Values[i]))
			if r.Steady != nil {
				row = append(row, interval(r.Steady[i]))
			} else {
				row = append(row, "–")
			}
		}
		row = append(row, yes(r.Safe))
		if r.Steady == nil {
			row = append(row, "saturated")
		} else {
			row = append(row, yes(r.SteadySafe))
		}
		g.Rows = append(g.Rows, row)
	}
	return []report.Grid{g}
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

// Document is the ladder as a page.
func (l *Ladder) Document(command string) *report.Document {
	d := &report.Document{Title: "Step test of " + l.Experiment.Name, Headline: fmt.Sprintf("Safe up to %s requests/s in steady state; the step test says %s", report.Number(l.Bisected), report.Number(l.Watermark)),
		Lead:    "Half of the target first, a fifth of the target more every two minutes; beside it, each step held until heat and queues are steady. Safe: every watched metric within 80 % of its SLO.",
		Setting: fmt.Sprintf("%d seeds; steady state: %s after %s of warm-up", l.Experiment.Replications, report.Span(l.Span.Duration), report.Span(l.Span.Warmup)), Command: command, Notes: l.verdict()}
	for _, f := range []struct {
		label string
		v     float64
	}{{"watermark of the steps", l.Watermark}, {"watermark in steady state", l.Bisected}, {"knee", l.Knee}, {"saturation", l.Saturation}} {
		d.Facts = append(d.Facts, report.Fact{Label: f.label, Value: report.Number(f.v) + "/s", Basis: report.Percent(f.v/l.Target) + " of the target"})
	}
	var names, labels []string
	for _, r := range l.Rungs {
		names, labels = append(names, fmt.Sprintf("%s of the target, %s/s", report.Percent(r.Share), report.Number(r.Rate))), append(labels, fmt.Sprintf("%.0f %%", 100*r.Share))
	}
	s := report.Section{ID: "steps", Title: "Step by step", Grids: l.Grids()}
	for i, w := range l.Watched {
		var quick, long, mark []float64
		for _, r := range l.Rungs {
			quick = append(quick, plain(r.Values[i].V))
			v := math.NaN()
			if r.Steady != nil {
				v = plain(r.Steady[i].V)
			}
			long, mark = append(long, v), append(mark, ladderSafe*w.Threshold)
		}
		s.Plots = append(s.Plots, report.Plot{ID: fmt.Sprintf("w%d", i), Title: w.Name, Aid: "per step; dashed: 80 % of the SLO", Unit: "s", Log: w.Metric == slo.TTFT, Names: names, Labels: labels, Below: "share of the target",
			Lines: []report.PlotLine{{Label: "two minutes", Unit: "s", Values: quick, Colour: "--p99"}, {Label: "steady state", Unit: "s", Values: long, Colour: "--p50"}, {Label: "80 % of the SLO", Unit: "s", Values: mark, Colour: "--slo", Dashed: true}}})
	}
	d.Sections = []report.Section{s}
	return d
}

// plain is a value that a chart can draw.
func plain(v float64) float64 {
	if math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// Markdown writes the table.
func (l *Ladder) Markdown(w io.Writer) {
	fmt.Fprintf(w, "# Step test of %s\n\n", l.Experiment.Name)
	for _, g := range l.Grids() {
		g.Markdown(w)
	}
}

// JSON writes the steps.
func (l *Ladder) JSON(w io.Writer) error {
	var rows []map[string]any
	for _, r := range l.Rungs {
		row := map[string]any{"share": r.Share, "rate": r.Rate, "safe": r.Safe, "steady_safe": r.SteadySafe}
		for i, x := range l.Watched {
			row[x.Name] = estimateJSON(r.Values[i])
			if r.Steady != nil {
				row[x.Name+", steady"] = estimateJSON(r.Steady[i])
			}
		}
		rows = append(rows, row)
	}
	return writeJSON(w, map[string]any{"experiment": l.Experiment.Name, "target": l.Target, "saturation": l.Saturation, "watermark": l.Watermark, "steady_watermark": l.SteadyWatermark,
		"bisected": l.Bisected, "knee": l.Knee, "limit": l.Limit, "steps": rows, "verdict": l.verdict()})
}
