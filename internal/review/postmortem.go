package review

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slosim/internal/report"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// PostMortem is the same review told of an incident that has happened: what came when,
// how it was noticed, what it cost of the budgets, why, what would have mended it, and
// what keeps it from coming back. Times are those of the first replication.
func (r *Review) PostMortem() *report.Document {
	d := &report.Document{
		Status: string(r.Verdict.Call), Title: "Post-mortem: " + r.Title, Headline: r.pageHeadline(), Lead: r.Headline() + ".", Command: r.Command, Start: r.start,
		Facts:   r.incidentFacts(),
		Setting: fmt.Sprintf("%d replications, seed %d; times and alerts of the first", r.Replications, r.Seed),
		Notes:   r.Notes,
	}
	d.Sections = append(d.Sections,
		report.Section{ID: "timeline", Title: "Timeline", Plots: r.plots(), Grids: []report.Grid{r.timeline()}},
		report.Section{ID: "detection", Title: "Detection", Grids: []report.Grid{r.detection()}},
		report.Section{ID: "effect", Title: "Who was hurt, and what it cost", Grids: []report.Grid{r.spentGrid(), r.classGrid(), r.bandGrid(), r.costGrid()}})
	why := report.Section{ID: "why", Title: "Causes", Grids: r.whyGrids()}
	if len(r.Causes) > 0 {
		why.Grids = append(why.Grids, r.causeGrid())
	}
	d.Sections = append(d.Sections, why)
	if len(r.Levers) > 0 {
		d.Sections = append(d.Sections, report.Section{ID: "levers", Title: "What would have mended it", Lead: r.advice(), Grids: []report.Grid{r.leverGrid()}})
	}
	items := report.Grid{Caption: "From what this run shows", Left: 3, Head: []string{"item", "why", "who"}}
	for _, p := range r.prevention() {
		items.Rows = append(items.Rows, []string{p.what, p.why, p.who})
	}
	d.Sections = append(d.Sections, report.Section{ID: "prevention", Title: "Prevention", Grids: []report.Grid{items}})
	return d
}

// incident is the first replication of the world with the change.
func (r *Review) incident() *sim.Result { return r.after.reps[0] }

// began is when the launch began to act; 0 when it was there from the start.
func (r *Review) began() clock.Time {
	var at clock.Time
	for i, c := range r.after.e.Changes {
		if t, ok := r.startOf(c); ok && (i == 0 || t < at) {
			at = t
		}
	}
	return at
}

// startOf is when a change begins, later than planned where an error budget held it
// back; false where it never did.
func (r *Review) startOf(c workloads.Change) (clock.Time, bool) {
	for _, h := range r.incident().Held {
		if h.Change == c.Name && h.Held > 0 {
			return clock.Time(clock.FromSeconds(h.Start.V)), h.Start.R > 0
		}
	}
	return clock.Time(c.At), true
}

// detected is the first alert on any objective since the launch began.
func (r *Review) detected() (first sim.Alert, on string, ok bool) {
	for _, o := range r.incident().SLOs {
		for _, a := range o.Alerts {
			if a.Fired >= r.began() && (!ok || a.Fired < first.Fired) {
				first, on, ok = a, o.Name, true
			}
		}
	}
	return first, on, ok
}

func (r *Review) incidentFacts() []report.Fact {
	var out []report.Fact
	f := report.Fact{Label: "Until an alert", Value: "never", Bad: true, Basis: "no burn-rate alert fired since the launch began"}
	if a, on, ok := r.detected(); ok {
		f = report.Fact{Label: "Until an alert", Value: report.Span(a.Fired.Sub(r.began())), Basis: fmt.Sprintf("%s, on %s", a.Name, on)}
	}
	out = append(out, f)
	if s := r.deciding(); s != nil {
		for _, o := range r.incident().SLOs {
			if o.Name == s.Name && o.Budget.Spent.R > 0 {
				out = append(out, report.Fact{Label: "Budget of " + s.Name, Value: percent(o.Budget.Spent.V) + " spent", Bad: o.Budget.Spent.V > 1, Basis: fmt.Sprintf("of the budget of %s, in %s", report.Span(o.Window), report.Span(clock.Duration(r.span)))})
			}
		}
		out = append(out, report.Fact{Label: "Missed, " + r.Phase, Value: percent(float64(s.Bad.After.V)), Change: "without the launch: " + percent(float64(s.Bad.Before.V)), Bad: s.Status == sim.Missed, Basis: percent(float64(s.Allowed)) + " may"})
	}
	return out
}

// moment is an entry of the timeline.
type moment struct {
	at         clock.Time
	what, kind string
}

// maxMoments bounds the timeline of the page; run's page has all.
const maxMoments = 40

// timeline is everything that happened, in order.
func (r *Review) timeline() report.Grid {
	x := r.incident()
	var list []moment
	add := func(at clock.Time, kind, format string, args ...any) {
		if at >= 0 && at <= r.span {
			list = append(list, moment{at, fmt.Sprintf(format, args...), kind})
		}
	}
	for _, c := range r.after.e.Changes {
		at, ok := r.startOf(c)
		if !ok {
			continue // held back to the end
		}
		add(at, "launch", "%s begins", c.Name)
		if c.Ramp > 0 {
			add(at.Add(c.Ramp), "launch", "%s is fully out", c.Name)
		}
		if c.Until > 0 {
			add(at.Add(c.Until-c.At), "launch", "%s ends", c.Name)
		}
	}
	for _, o := range x.SLOs {
		seen := map[string]bool{}
		for i, a := range o.Alerts {
			if seen[a.Name] { // one that flaps has one line
				continue
			}
			seen[a.Name] = true
			last, times := a, 1
			for _, b := range o.Alerts[i+1:] {
				if b.Name == a.Name {
					last, times = b, times+1
				}
			}
			again := ""
			if times > 1 {
				again = fmt.Sprintf(", the first of %d times", times)
			}
			add(a.Fired, a.Severity, "%s: %s fires%s", o.Name, a.Name, again)
			if last.Resolved != clock.Never {
				add(last.Resolved, a.Severity, "%s: %s is over", o.Name, a.Name)
			}
		}
		for _, p := range o.Policy {
			if !p.Projected {
				add(p.At, "budget", "%s: %s, %s of the budget spent", o.Name, policyWords[p.Kind], percent(p.Spent))
			}
		}
	}
	for _, a := range x.Actions {
		add(a.At, "cluster", "%s", a.Text)
	}
	slices.SortStableFunc(list, func(a, b moment) int { return int(max(-1, min(1, a.at-b.at))) })
	all := len(list)
	if all > maxMoments { // adaptive thresholds move often
		list = slices.DeleteFunc(list, func(m moment) bool {
			return m.kind == "cluster" && strings.HasPrefix(m.what, "threshold of ")
		})
	}
	g := report.Grid{Caption: "What happened when", Left: 4, Head: []string{"when", "since the launch", "kind", "what"}}
	for _, m := range list[:min(len(list), maxMoments)] {
		since := ""
		if d := m.at.Sub(r.began()); d >= 0 {
			since = report.Span(d)
		}
		g.Rows = append(g.Rows, []string{m.at.DayHour(r.start), since, m.kind, m.what})
	}
	if more := all - min(len(list), maxMoments); more > 0 {
		g.Notes = []string{fmt.Sprintf("%d further entries; sim run has them all.", more)}
	}
	return g
}

var policyWords = map[string]string{slo.Warned: "warning", slo.Frozen: "non-essential changes wait", slo.Stopped: "all features wait", slo.Lifted: "the freeze is lifted", slo.NewStart: "a new budget"}

// detection says by which alert each objective was noticed, and when.
func (r *Review) detection() report.Grid {
	g := report.Grid{Caption: "First alerts since the launch began", Left: 2, Head: []string{"objective", "alert", "severity", "after", "budget spent by then", "alerts in all"}}
	for _, o := range r.incident().SLOs {
		row := []string{o.Name, "none", "", "never", "", "0"}
		n, first := 0, clock.Never
		for _, a := range o.Alerts { // pair by pair
			if a.Fired < r.began() {
				continue
			}
			if n++; a.Fired < first {
				first = a.Fired
				row = []string{o.Name, a.Name, a.Severity, report.Span(a.Fired.Sub(r.began())), percent(spentAt(o.Budget.Curve, a.Fired)), ""}
			}
		}
		row[5] = fmt.Sprint(n)
		g.Rows = append(g.Rows, row)
	}
	return g
}

// spentGrid is what the span cost of each budget.
func (r *Review) spentGrid() report.Grid {
	g := report.Grid{Caption: "Error budgets, whole span", Left: 1, Head: []string{"objective", "window", "spent", "bad events", "gone on"}}
	x := r.incident()
	for k := range x.SLOs {
		o := &x.SLOs[k]
		gone := "not in the window"
		if k < len(r.SLOs) && r.SLOs[k].Gone != nil {
			gone = r.SLOs[k].Gone.Text
		}
		spent := "–"
		if o.Budget.Spent.R > 0 {
			spent = percent(o.Budget.Spent.V)
		}
		g.Rows = append(g.Rows, []string{o.Name, report.Span(o.Window), spent, report.Whole(o.Bad), gone})
		if o.BlameText != "" {
			g.Notes = append(g.Notes, o.Name+": "+o.BlameText+".")
		}
	}
	return g
}

// step is a prevention item.
type step struct{ what, why, who string }

// prevention derives from the run what would have kept the incident away, or small.
func (r *Review) prevention() []step {
	var out []step
	if l := r.recommended(); l != nil {
		out = append(out, step{"Before it goes out again: " + l.Name + ", " + l.Dose, "restores " + strings.Join(l.Restores, " and ") + "; tried on " + l.Basis, l.Asks})
	}
	out = append(out, step{"Review launches in CI: sim review, exit status 1 at BLOCK", fmt.Sprintf("this review calls it %s before anything ships", r.Verdict.Call), "platform"})
	for _, c := range r.Canary {
		if c.Shows == "breaks" && float64(c.Share) < 1 {
			out = append(out, step{fmt.Sprintf("A canary at %s of the launch, watched for %s or more", percent(float64(c.Share)), plural(int(c.Minutes), "minute")), "it would have shown the damage on " + c.SLO, "product"})
			break
		}
	}
	if a, on, ok := r.detected(); !ok {
		out = append(out, step{"Burn-rate alerts on the objectives: sim slo export", "nothing alerted", "platform"})
	} else if late := a.Fired.Sub(r.began()); late > clock.Hour {
		out = append(out, step{"A faster alert on " + on, fmt.Sprintf("the first one came after %s", report.Span(late)), "platform"})
	}
	x := r.incident()
	for k := range x.SLOs {
		if n, _ := x.BreakLength(k); n > 0 {
			out = append(out, step{fmt.Sprintf("An alarm on prompt length at %s tokens: sim slo export", report.Whole(int64(n))), "from there on requests miss " + x.SLOs[k].Name, "platform"})
			break
		}
	}
	if len(r.after.e.Rules) == 0 {
		out = append(out, step{"A degradation policy: [[rule]] tables that shed, cap or route while an SLO burns", "nothing in the cluster acted by itself", "platform"})
	}
	if !slices.ContainsFunc(r.after.e.Limits, func(l sim.Limit) bool { return l.Tokens > 0 || l.MaxPrompt > 0 }) {
		out = append(out, step{"A token limit per class at the gateway", "no class has one: any client may bring this load again", "platform"})
	}
	for _, o := range r.SLOs {
		if o.IdleFloor > o.Allowed && !math.IsNaN(float64(o.IdleFloor)) {
			out = append(out, step{fmt.Sprintf("Another promise for long prompts than %s in %s", percent(1-float64(o.Allowed)), secs(o.Threshold)), fmt.Sprintf("%s miss it on an idle replica: no capacity mends that", percent(float64(o.IdleFloor))), "business"})
			break
		}
	}
	return out
}

// recommended is the recommended lever; nil without one.
func (r *Review) recommended() *Lever {
	for i := range r.Levers {
		if l := &r.Levers[i]; l.Name == r.Recommended {
			return l
		}
	}
	return nil
}

// PostMortemMarkdown is the post-mortem for a wiki.
func (r *Review) PostMortemMarkdown() []byte {
	d := r.PostMortem()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n**%s** %s\n\n", escape(d.Title), d.Status, escape(d.Lead))
	for _, f := range d.Facts {
		fmt.Fprintf(&b, "- %s: **%s** (%s)\n", escape(f.Label), escape(f.Value), escape(f.Basis))
	}
	for _, s := range d.Sections {
		fmt.Fprintf(&b, "\n## %s\n\n", escape(s.Title))
		if s.Lead != "" {
			fmt.Fprintf(&b, "%s\n\n", escape(s.Lead))
		}
		for _, g := range s.Grids {
			writeGrid(&b, g, len(g.Head), len(g.Rows))
		}
	}
	fmt.Fprintf(&b, "<sub>%s · `%s`</sub>\n", escape(d.Setting), r.Command)
	return []byte(b.String())
}
