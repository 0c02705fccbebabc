package review

import (
	"fmt"
	"math"
	"strings"

	"slosim/internal/report"
	"slosim/sim"
	"slosim/sim/clock"
)

// Document is the review as a page: the call, three numbers, one chart and the
// recommended lever first, everything else below.
func (r *Review) Document() *report.Document {
	d := &report.Document{
		Status: string(r.Verdict.Call), Title: r.Title, Headline: r.pageHeadline(), Lead: r.lead(), Command: r.Command, Start: r.start, Facts: r.facts(),
		Setting: fmt.Sprintf("%d replications, seed %d, %s requests in all", r.Replications, r.Seed, report.Whole(r.Requests)),
		Notes:   r.Notes,
	}
	d.Sections = append(d.Sections, report.Section{ID: "change", Title: "The launch", Plots: r.plots()})
	if len(r.Levers) > 0 {
		s := report.Section{ID: "levers", Title: "What to do", Lead: r.advice(), Grids: []report.Grid{r.leverGrid()}}
		if len(r.Promises) > 0 {
			s.Grids = append(s.Grids, r.promiseGrid())
		}
		d.Sections = append(d.Sections, s)
	}
	d.Sections = append(d.Sections, report.Section{ID: "effect", Title: "What changes", Lead: "Last phase, " + r.Phase + ". Differences are paired by replication, with 95 % intervals.",
		Grids: []report.Grid{r.sloGrid(), r.classGrid(), r.bandGrid(), r.costGrid()}})
	why := report.Section{ID: "why", Title: "Why", Grids: r.whyGrids()}
	if len(r.Causes) > 0 {
		why.Grids = append(why.Grids, r.causeGrid())
	}
	d.Sections = append(d.Sections, why)
	if len(r.Canary) > 0 {
		d.Sections = append(d.Sections, report.Section{ID: "canary", Title: "Canary", Grids: []report.Grid{r.canaryGrid()}})
	}
	how := "Both worlds ran in full"
	if r.Hours != "" {
		how += "; causes, levers and canary readings ran on the " + r.Hours
	}
	lead := how + ". " + r.Rules()
	if len(r.NotTried) > 0 {
		lead += " Not tried: " + strings.Join(r.NotTried, "; ") + "."
	}
	d.Sections = append(d.Sections, report.Section{ID: "rules", Title: "Rules", Lead: lead, Grids: r.gainGrids()})
	return d
}

// deciding is the objective that the page is about; nil without any.
func (r *Review) deciding() *SLO {
	for i := range r.SLOs {
		if r.SLOs[i].Name == r.Verdict.SLO {
			return &r.SLOs[i]
		}
	}
	if len(r.SLOs) > 0 {
		return &r.SLOs[0]
	}
	return nil
}

// pageHeadline says in a line what the launch does.
func (r *Review) pageHeadline() string {
	s := r.deciding()
	if s == nil {
		return r.Headline()
	}
	switch r.Verdict.Call {
	case Block:
		text := fmt.Sprintf("The launch breaks %s", s.Name)
		if !math.IsNaN(float64(s.Quantile.After.V)) && !s.adaptive {
			text += fmt.Sprintf(": %s against %s promised", secs(s.Quantile.After.V), secs(s.Threshold))
		}
		if s.Gone != nil && s.GoneBefore == nil {
			text += "; the budget is gone on " + s.Gone.Text
		}
		return text
	case Warn:
		return "The launch makes " + s.Name + " worse, or leaves it in doubt"
	}
	return "The launch keeps its promises"
}

func (r *Review) lead() string {
	text := r.Headline() + "."
	if a := r.advice(); a != "" {
		text = "What to do: " + a + " " + text
	}
	return text
}

// facts are the three numbers.
func (r *Review) facts() []report.Fact {
	var out []report.Fact
	if s := r.deciding(); s != nil {
		f := report.Fact{Label: s.Name + ", " + r.Phase, Value: percent(float64(s.Bad.After.V)) + " miss", Change: "without the launch: " + percent(float64(s.Bad.Before.V)), Bad: s.Status == sim.Missed,
			Basis: fmt.Sprintf("%s may; difference %s", percent(float64(s.Allowed)), interval(s.Bad.Diff, points))}
		if !math.IsNaN(float64(s.Quantile.After.V)) && !s.adaptive {
			f.Label = fmt.Sprintf("%s P%s, %s", strings.ToUpper(string(s.Metric)), short(100*(1-float64(s.Allowed))), r.Phase)
			f.Value = secs(s.Quantile.After.V)
			f.Change = fmt.Sprintf("without the launch: %s; promised: %s", secs(s.Quantile.Before.V), secs(s.Threshold))
		}
		gone := "not in the window"
		if s.unprojected {
			gone = "not in the run"
		}
		if s.Gone != nil {
			gone = s.Gone.Text
		}
		out = append(out, f, report.Fact{Label: report.Span(s.window) + " error budget gone", Value: gone, Bad: s.Gone != nil,
			Change: "without the launch: " + s.when(s.GoneBefore),
			Basis:  "burn rate " + arrow(s.Burn, burn) + ", last phase"})
	}
	for _, l := range r.Levers {
		if l.Name == r.Recommended {
			price := "no further GPUs"
			if l.GPUs > 0 {
				price = money(float64(l.USD)) + " more per month"
			}
			return append(out, report.Fact{Label: "Recommended: " + l.Name, Value: price, Change: l.Dose, Basis: "asks the " + l.Asks + "; tried on " + l.Basis})
		}
	}
	for _, c := range r.Cost {
		if c.Unit == "$" {
			out = append(out, report.Fact{Label: "Cost per month", Value: money(float64(c.Value.After.V)), Change: "without the launch: " + money(float64(c.Value.Before.V)), Basis: "GPUs held, 30 days"})
		}
	}
	return out
}

// plots are the charts of both worlds over time, and the budget.
func (r *Review) plots() []report.Plot {
	s := r.series
	p := report.Plot{ID: "ttft", Title: "TTFT P99 of " + s.class, Aid: "Mean over replications, per window", Unit: "s", Log: true, T: s.t, From: 0, To: r.span, Moments: r.moments}
	if s.before != nil {
		p.Lines = append(p.Lines, report.PlotLine{Label: "without the launch", Unit: "s", Values: s.before, Colour: "--p50"})
	}
	p.Lines = append(p.Lines, report.PlotLine{Label: "with it", Unit: "s", Values: s.after, Colour: "--p99"})
	if d := r.deciding(); d != nil && d.Class == s.class && strings.EqualFold(string(d.Metric), "ttft") {
		flat := make([]float64, len(s.t))
		for i := range flat {
			flat[i] = float64(d.Threshold)
		}
		p.Lines = append(p.Lines, report.PlotLine{Label: "promised", Unit: "s", Values: flat, Colour: "--slo", Dashed: true})
	}
	out := []report.Plot{p}
	if len(s.afterCurve) < 2 {
		return out
	}
	b := report.Plot{ID: "budget", Title: "Error budget spent, " + s.slo, Aid: "Simulated, then the last day repeated", Unit: "%", From: 0, Elapsed: true, Moments: r.moments}
	var after, before []float64
	for _, x := range s.afterCurve {
		b.T = append(b.T, x.T)
		after = append(after, 100*x.Spent)
		before = append(before, 100*spentAt(s.beforeCurve, x.T))
	}
	b.To = b.T[len(b.T)-1]
	if s.beforeCurve != nil {
		b.Lines = append(b.Lines, report.PlotLine{Label: "without the launch", Unit: "%", Values: before, Colour: "--p50"})
	}
	b.Lines = append(b.Lines, report.PlotLine{Label: "with it", Unit: "%", Values: after, Colour: "--p99"})
	return append(out, b)
}

// spentAt is a curve's value at a time; NaN beyond it.
func spentAt(curve []sim.BudgetPoint, t clock.Time) float64 {
	for i := range curve {
		if curve[i].T >= t {
			return curve[i].Spent
		}
	}
	return math.NaN()
}
