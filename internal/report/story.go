package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// The names that every experiment's cohorts have, whatever its changes.
const (
	everyone = "all"      // the whole class
	existing = "existing" // in no cohort
)

// story is a result with the choices that all outputs share: which objective
// decides, which class and cohort it judges, and which phases are compared.
type story struct {
	r *sim.Result
	m Meta

	focus  *sim.SLO // the objective that decided; nil without objectives
	class  string   // of the focus, else the first class
	cohort string   // that the focus judges: "all", "existing" or a change's name

	first *sim.Phase // the phase to compare with; nil when there is only one
	last  *sim.Phase // the phase the headline is about; nil without phases
	index int        // of last
}

func newStory(r *sim.Result, m Meta) *story {
	s := &story{r: r, m: m, cohort: everyone}
	for i := range r.SLOs {
		if s.focus == nil || r.SLOs[i].Name == r.Verdict.SLO {
			s.focus = &r.SLOs[i]
		}
		if r.SLOs[i].Name == r.Verdict.SLO {
			break
		}
	}
	switch {
	case s.focus != nil:
		s.class, s.cohort = s.focus.Class, s.judges(s.focus.Objective)
	case len(r.Experiment.Traffic) > 0:
		s.class = r.Experiment.Traffic[0].Name
	}
	s.pickPhases()
	return s
}

// pickPhases compares the last phase that saw arrivals of the class with the
// first one: a partial run may not have reached the later phases.
func (s *story) pickPhases() {
	for i := range s.r.Phases {
		p := &s.r.Phases[i]
		if c := s.row(p, s.class, everyone); c == nil || c.N == 0 {
			continue
		}
		if s.first == nil {
			s.first = p
		}
		s.last, s.index = p, i
	}
	if s.first == s.last {
		s.first = nil
	}
}

// judges returns the cohort that an objective counts.
func (s *story) judges(o slo.Objective) string {
	if len(o.Only) == 1 {
		return o.Only[0]
	}
	if len(o.Only) > 1 || len(o.Exclude) == 0 {
		return everyone
	}
	for _, c := range s.r.Experiment.Changes {
		if c.Class == o.Class && !slices.Contains(o.Exclude, c.Name) {
			return everyone
		}
	}
	return existing
}

// row returns a class and cohort of a phase. A phase without the "existing"
// cohort had no other yet, so that "all" stands for it.
func (s *story) row(p *sim.Phase, class, cohort string) *sim.ClassPhase {
	if p == nil {
		return nil
	}
	var all *sim.ClassPhase
	for i := range p.Classes {
		switch c := &p.Classes[i]; {
		case c.Class != class:
		case c.Cohort == cohort:
			return c
		case c.Cohort == everyone:
			all = c
		}
	}
	if cohort == existing {
		return all
	}
	return nil
}

// redundant reports a row of existing requests that repeats the row of all: no
// request of the phase was in another cohort.
func redundant(p *sim.Phase, c *sim.ClassPhase) bool {
	if c.Cohort != existing {
		return false
	}
	return slices.ContainsFunc(p.Classes, func(x sim.ClassPhase) bool {
		return x.Class == c.Class && x.Cohort == everyone && x.N == c.N
	})
}

// series returns a class and cohort over time, or nil.
func (s *story) series(class, cohort string) *sim.ClassSeries {
	for i := range s.r.Series.Classes {
		if c := &s.r.Series.Classes[i]; c.Class == class && c.Cohort == cohort {
			return c
		}
	}
	return nil
}

// cohorts returns the class's cohorts over time without "all".
func (s *story) cohorts(class string) []*sim.ClassSeries {
	var out []*sim.ClassSeries
	for i := range s.r.Series.Classes {
		if c := &s.r.Series.Classes[i]; c.Class == class && c.Cohort != everyone {
			out = append(out, c)
		}
	}
	return out
}

// classes returns the names of the classes that have a series, in order.
func (s *story) classes() []string {
	var out []string
	for _, c := range s.r.Series.Classes {
		if !slices.Contains(out, c.Class) {
			out = append(out, c.Class)
		}
	}
	return out
}

// objective returns the tightest TTFT objective on a class, the focus first.
func (s *story) objective(class string) *sim.SLO {
	if s.focus != nil && s.focus.Class == class && s.focus.Metric == slo.TTFT {
		return s.focus
	}
	for i := range s.r.SLOs {
		if o := &s.r.SLOs[i]; o.Class == class && o.Metric == slo.TTFT {
			return o
		}
	}
	return nil
}

// headline is the quantile that an objective's target speaks of, of one row.
type headline struct {
	Name      string // "TTFT P99"
	Threshold float64
	Of        func(*sim.ClassPhase) stats.Estimate
}

// scale shows a value in the unit of its threshold, unless it is far from it.
func (h headline) scale(v float64) scale {
	if h.Threshold < 1 && v < 1 {
		return inMillis
	}
	return timeScale(v)
}

// decides returns the number that an objective is read by: of the answered
// requests where rejected ones are no events of the objective; ok is false for
// availability, whose number is the attained share itself.
func decides(o slo.Objective) (h headline, ok bool) {
	pick := map[slo.Metric]func(*sim.ClassPhase) *sim.Distribution{
		slo.TTFT: func(c *sim.ClassPhase) *sim.Distribution { return &c.TTFT },
		slo.TPOT: func(c *sim.ClassPhase) *sim.Distribution { return &c.TPOT },
		slo.E2E:  func(c *sim.ClassPhase) *sim.Distribution { return &c.E2E },
	}[o.Metric]
	if pick == nil {
		return headline{}, false
	}
	name, quantile := quantileFor(o.Target)
	if o.Metric == slo.TTFT && slices.Contains(o.Skip, "rejected") {
		pick, name = func(c *sim.ClassPhase) *sim.Distribution { return &c.Answered }, name+" of answered"
	}
	return headline{
		Name:      metricName(o.Metric) + " " + name,
		Threshold: o.Threshold.Seconds(),
		Of:        func(c *sim.ClassPhase) stats.Estimate { return quantile(pick(c)) },
	}, true
}

// quantileFor returns the reported quantile nearest to a target from below;
// P99.9 stands for every stricter target.
func quantileFor(target float64) (string, func(*sim.Distribution) stats.Estimate) {
	switch {
	case target >= .9985:
		return "P99.9", func(d *sim.Distribution) stats.Estimate { return d.P999 }
	case target >= .985:
		return "P99", func(d *sim.Distribution) stats.Estimate { return d.P99 }
	case target >= .945:
		return "P95", func(d *sim.Distribution) stats.Estimate { return d.P95 }
	case target >= .895:
		return "P90", func(d *sim.Distribution) stats.Estimate { return d.P90 }
	}
	return "P50", func(d *sim.Distribution) stats.Estimate { return d.P50 }
}

func metricName(m slo.Metric) string {
	return map[slo.Metric]string{slo.TTFT: "TTFT", slo.TPOT: "TPOT", slo.E2E: "E2E", slo.Availability: "availability", slo.Queue: "time in the queue", slo.ITL: "ITL", slo.Goodput: "goodput"}[m]
}

// promise writes an objective as a sentence's end: "99 % of chat requests get
// their first token within 2 s".
func promise(o slo.Objective) string {
	who := clean(o.Class) + " " + eventNoun(o)
	switch {
	case o.MinPrompt > 0 && o.MaxPrompt > 0:
		who += " with prompts of " + count(o.MinPrompt) + " to " + count(o.MaxPrompt-1) + " tokens"
	case o.MinPrompt > 0:
		who += " with prompts from " + count(o.MinPrompt) + " tokens on"
	case o.MaxPrompt > 0:
		who += " with prompts below " + count(o.MaxPrompt) + " tokens"
	}
	if len(o.Only) > 0 {
		who += " (only " + list(o.Only) + ")"
	}
	if len(o.Exclude) > 0 {
		who += " (without " + list(o.Exclude) + ")"
	}
	within := plainSeconds(o.Threshold.Seconds())
	return target(o.Target) + " of " + who + " " + map[slo.Metric]string{
		slo.TTFT:         "get their first token within " + within,
		slo.TPOT:         "get each further token within " + within + " (mean per request)",
		slo.E2E:          "are complete within " + within,
		slo.Availability: "are answered in full",
		slo.Queue:        "leave the queue within " + within,
		slo.ITL:          "come within " + within + " of the one before",
		slo.Goodput:      "meet all of " + o.All.Text(func(d clock.Duration) string { return plainSeconds(d.Seconds()) }),
	}[o.Metric] + ", over " + span(o.Window)
}

// eventNoun says what an objective counts.
func eventNoun(o slo.Objective) string {
	if o.Metric == slo.ITL {
		return "tokens"
	}
	return "requests"
}

func list(names []string) string {
	out := ""
	for i, n := range names {
		if i > 0 {
			out += ", "
		}
		out += clean(n)
	}
	return out
}

// gone is the share of an objective's budget that is spent at the span's end:
// before it, and within it.
func gone(o *sim.SLO) stats.Estimate {
	e := o.Budget.Spent
	e.V, e.Lo, e.Hi = o.Spent+e.V, o.Spent+e.Lo, o.Spent+e.Hi
	return e
}

// spent writes gone with the part of it that was gone before: "85 %, of it 60 %
// before the start".
func spent(o *sim.SLO) string {
	text := inPercent.full(gone(o))
	if o.Spent > 0 {
		text += ", of it " + share(o.Spent) + " before the start"
	}
	return text
}

// covered says what a partial run covers: "3 of 5 replications, 20 h of 72 h".
func (s *story) covered() string {
	return fmt.Sprintf("%d of %s, %s of %s", len(s.r.Seeds), plural(max(len(s.r.Seeds), s.r.Experiment.Replications), "replication"), span(s.r.End.Sub(0)), span(s.r.Experiment.Duration))
}

// notes are the warnings of the run and of its experiment.
func (s *story) notes() []string {
	var out []string
	for _, w := range s.r.Warnings {
		out = append(out, clean(w))
	}
	if s.m.Provenance == nil {
		return out
	}
	for _, w := range s.m.Provenance.Warnings {
		text := clean(w.Msg)
		if w.Key != "" {
			text = clean(w.Key) + ": " + text
		}
		if w.Try != "" {
			text += "; try " + clean(w.Try)
		}
		out = append(out, text)
	}
	return out
}

// left is the share of an objective's budget that remains at the span's end.
func left(o *sim.SLO) (v stats.Estimate, ok bool) {
	e := gone(o)
	if e.R == 0 || math.IsNaN(e.V) {
		return stats.Estimate{}, false
	}
	e.V, e.Lo, e.Hi = min(1, 1-e.V), 1-e.Hi, min(1, 1-e.Lo)
	return e, true
}

// goneBefore reports a mark of the budget that was passed before t = 0.
func goneBefore(o *sim.SLO, percent float64) bool { return 100*o.Spent >= percent }

// mark returns the moment at which percent of the budget is gone.
func mark(b *sim.Budget, percent float64) *sim.Mark {
	for i := range b.Marks {
		if b.Marks[i].Percent == percent {
			return &b.Marks[i]
		}
	}
	return nil
}

// label and moment write an instant: "Tue 14:00", "Thu 19:00 (day 4)".
func (s *story) label(t clock.Time) string { return t.Label(s.r.Experiment.Start) }

func (s *story) moment(t clock.Time) string {
	return s.label(t) + " (" + s.day(t) + ")"
}

// day writes "day 4", counted from the experiment's start.
func (s *story) day(t clock.Time) string {
	d, _, _ := strings.Cut(t.DayHour(s.r.Experiment.Start), ", ")
	return d
}

// when writes an instant as the budget reports do: "day 4 at 19:00".
func (s *story) when(t clock.Time) string {
	d, hour, _ := strings.Cut(t.DayHour(s.r.Experiment.Start), ", ")
	return d + " at " + hour
}
