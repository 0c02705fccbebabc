package report

import (
	"fmt"
	"math"
	"strings"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// sloCard is one objective on the page.
type sloCard struct {
	Name     string
	Status   sim.Status
	Promise  string
	Reason   string
	Attained string // with interval
	Judged   string // the phase it is about
	Counts   string
	Spent    string // share of the budget within the run
	Outlook  string // date of exhaustion, or why there is none
	Alarm    string
	Minutes  string // the time-based view
	Bar      *budgetBar
	Alerts   *tableView
	Policy   *tableView
	Weeks    *tableView
	Adaptive string
	Adjusted *tableView
	BurnDown *figure
}

// budgetBar is a budget as a horizontal bar; all lengths are percent of its
// width.
type budgetBar struct {
	Before    float64 // the run
	Spent     float64 // in the run, beyond Before
	Projected float64 // beyond both
	Over      bool    // the projection passes the bar's end
	Marks     []barMark
}

// barMark is a line across the bar, with the moment at which it is passed.
type barMark struct {
	At    float64
	Label string
	When  string
}

// barMost is the share of the budget at a bar's end, so that 100 % is visible.
const barMost = 1.2

func (s *story) sloCard(o *sim.SLO) sloCard {
	b := &o.Budget
	c := sloCard{
		Name: clean(o.Name), Status: o.Status, Promise: promise(o.Objective), Reason: clean(o.Reason),
		Attained: attained(o.Attained), Judged: judged(o),
		Counts: fmt.Sprintf("%s of %s %s of the run missed it (%s)", count(o.Bad), count(o.Good+o.Bad), eventNoun(o.Objective), plural(len(s.r.Seeds), "replication")),
		Bar:    s.budgetBar(o), Alerts: s.alertTable(o), Policy: s.policyTable(o), Weeks: s.weekTable(o),
		Adaptive: adaptiveText(o), Adjusted: s.adjustedTable(o),
	}
	if b.Spent.R > 0 {
		c.Spent = inPercent.full(gone(o)) + " of the budget is spent at the run's end"
		if o.Spent > 0 {
			c.Spent += ", of it " + share(o.Spent) + " before the start"
		}
		c.Spent += "."
	}
	if m := mark(b, 100); m == nil || !m.Reached {
		c.Outlook = s.exhaustion(b, o.Window)
	}
	if b.WeekAlarm {
		c.Alarm = "80 % of the budget is spent within one week: an alarm of its own."
	}
	if b.BadMinutes.R > 0 && b.AllowedMinutes > 0 {
		c.Minutes = fmt.Sprintf("By time: %s bad minutes in the run, %s allowed in %s.", minutes(b.BadMinutes), trimZeros(number(b.AllowedMinutes, 1)), span(o.Window))
	}
	if o.Status == sim.Undecided && o.MoreReps > 0 && !strings.Contains(c.Reason, "would decide") {
		c.Reason = joinSentences(c.Reason, fmt.Sprintf("about %s would decide it", plural(o.MoreReps, "replication")))
	}
	return c
}

// minutes writes a count of minutes.
func minutes(e stats.Estimate) string {
	if e.R < 2 {
		return number(e.V, 0)
	}
	return number(e.V, 0) + " [" + number(max(0, e.Lo), 0) + ", " + number(e.Hi, 0) + "]"
}

// judged names the phase that an objective's status is about.
func judged(o *sim.SLO) string {
	if o.Judged == "" {
		return "attained"
	}
	return "attained in phase " + clean(o.Judged)
}

func (s *story) budgetBar(o *sim.SLO) *budgetBar {
	b := &o.Budget
	if b.Spent.R == 0 || math.IsNaN(b.Spent.V) {
		return nil
	}
	length := func(v float64) float64 { return math.Round(1000*max(0, min(v, barMost))/barMost) / 10 }
	beyond := func(v, start float64) float64 { return max(0, math.Round(10*(length(v)-length(start)))/10) }
	bar := &budgetBar{Before: length(o.Spent), Spent: beyond(gone(o).V, o.Spent)}
	if b.Projected.R > 0 {
		bar.Projected = beyond(b.Projected.V, gone(o).V)
		bar.Over = b.Projected.V > barMost
	}
	for _, percent := range []float64{50, 80, 100} {
		m := barMark{At: length(percent / 100), Label: number(percent, 0) + " %"}
		if k := mark(b, percent); k != nil && k.Reached {
			m.When = s.when(k.At) + s.markInterval(k)
			if !k.InSpan {
				m.When += ", projected"
			}
		}
		if goneBefore(o, percent) {
			m.When = "before the run"
		}
		bar.Marks = append(bar.Marks, m)
	}
	return bar
}

func (s *story) alertTable(o *sim.SLO) *tableView {
	if len(o.Alerts) == 0 {
		return nil
	}
	t := &tableView{Head: []cell{text("alert"), text("fired"), text("resolved")}}
	for _, a := range o.Alerts {
		resolved := "still firing at the end"
		if a.Resolved != clock.Never {
			resolved = s.moment(a.Resolved)
		}
		t.Rows = append(t.Rows, []cell{text(clean(a.Name)), text(s.moment(a.Fired)), text(resolved)})
	}
	return t
}

// whyView is the argument of the page's fifth section.
type whyView struct {
	Text      string
	IdleFloor string
	Blame     *tableView
	Findings  []finding
	Stages    *figure
	Cohorts   *figure
}

// any reports whether the section has something to say.
func (v whyView) any() bool {
	return v.Text != "" || v.IdleFloor != "" || len(v.Findings) > 0 || v.Stages != nil || v.Cohorts != nil
}

type finding struct{ Title, Evidence, Share string }

// explains words a finding's share.
func explains(f sim.Finding) string {
	verb := "Explains "
	if f.Coincides {
		verb = "Goes with "
	}
	return verb + share(f.Share) + " of the misses."
}

func (s *story) why() whyView {
	var v whyView
	for _, f := range s.r.Findings {
		out := finding{Title: ended(f.Title), Evidence: sentence(f.Evidence)}
		if f.Share > 0 {
			out.Share = explains(f)
		}
		v.Findings = append(v.Findings, out)
	}
	if s.focus == nil {
		return v
	}
	v.Text, v.IdleFloor = s.blame(), idleFloor(s.focus)
	if len(s.focus.Blame) == 0 {
		return v
	}
	v.Blame = &tableView{Head: []cell{text("cohort"), text("dominant stage"), num("share of the misses"), text(""), num("misses")}}
	for _, b := range s.focus.Blame {
		stage, colour := clean(b.Stage), "--"+b.Stage
		if b.Stage == "" {
			stage, colour = "none: rejected or never answered", "--slo"
		}
		if !knownStage(b.Stage) {
			colour = "--slo"
		}
		v.Blame.Rows = append(v.Blame.Rows, []cell{text(clean(b.Cohort)), text(stage), num(share(b.Share)),
			{Bars: []barPart{{Width: math.Round(1000*b.Share) / 10, Colour: colour}}}, num(count(b.Count))})
	}
	return v
}

func knownStage(name string) bool {
	for _, s := range sim.StageNames {
		if s == name {
			return true
		}
	}
	return false
}
