package report

import (
	"fmt"
	"strings"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// What was sold, what budgets held back, and how thresholds moved: in the terminal,
// on the page, in summary.md and summary.json.

// slaCard is one SLA on the page.
type slaCard struct {
	Name, Promise  string
	Payout         string // expected, with interval
	Broken         bool   // in most replications
	Text           []string
	Periods, Tiers *tableView
}

// money writes an amount with its interval.
func money(e stats.Estimate) string {
	if e.R == 0 {
		return none
	}
	text := usd(e.V)
	switch {
	case e.R > 1 && usd(e.Lo) == usd(e.Hi):
		text += " in every replication"
	case hasInterval(e):
		text += " [" + usd(e.Lo) + ", " + usd(e.Hi) + "]"
	}
	return text
}

// broken counts the periods and replications that attain less than was promised.
func broken(a *sim.SLA) (n, of int) {
	for _, p := range a.Periods {
		n += p.Breached
		for _, k := range p.Tiers {
			of += k
		}
	}
	return n, of
}

// soldText says what was promised to whom.
func (s *story) soldText(a *sim.SLA) string {
	for i := range s.r.SLOs {
		o := s.r.SLOs[i].Objective
		if o.Name != a.SLO {
			continue
		}
		o.Target, o.Window = a.Target, a.Period
		return strings.TrimSuffix(promise(o), ", over "+span(o.Window)) + ", in every " + span(a.Period)
	}
	return ""
}

// marginText compares what was sold with the internal objective.
func marginText(a *sim.SLA) string {
	text := fmt.Sprintf("Internal SLO %s: %s", clean(a.SLO), target(a.Internal))
	switch {
	case a.Internal > a.Target:
		return text + ", tighter than what was sold"
	case a.Internal < a.Target:
		return text + ", looser than what was sold: the SLO can be kept and the SLA broken"
	}
	return text + ", the same as what was sold: there is no margin"
}

func (s *story) slaCards() []slaCard {
	var out []slaCard
	for i := range s.r.SLAs {
		a := &s.r.SLAs[i]
		n, of := broken(a)
		c := slaCard{Name: clean(a.Name), Promise: s.soldText(a), Payout: money(a.Payout), Broken: 2*n > of, Periods: s.periodTable(a), Tiers: tierTable(a)}
		c.Text = append(c.Text, fmt.Sprintf("Of a bill of %s over %s. The promise is broken in %s.", money(a.Bill), plural(len(a.Periods), "period"), brokenText(a)))
		c.Text = append(c.Text, marginText(a)+".")
		if text := excusedText(a); text != "" {
			c.Text = append(c.Text, text)
		}
		c.Text = append(c.Text, sentence(a.Basis))
		out = append(out, c)
	}
	return out
}

// excusedText lists what exemptions take out, with what would be attained without.
func excusedText(a *sim.SLA) string {
	var parts []string
	for _, x := range a.Excused {
		parts = append(parts, fmt.Sprintf("%s %s", strings.ReplaceAll(x.Name, "_", " "), count(x.Bad)))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("Bad events that are exempt (simulated ones, all replications): %s; with them %s would be attained.", strings.Join(parts, ", "), attained(a.Unexempted))
}

// periodTable is the bill, period by period.
func (s *story) periodTable(a *sim.SLA) *tableView {
	t := &tableView{Head: []cell{text("period"), num("simulated"), num("attained"), num("broken in"), num("credit"), num("payout")}}
	for _, p := range a.Periods {
		parts := attainedParts(p.Attained)
		t.Rows = append(t.Rows, []cell{text(s.period(p)), num(share(p.Simulated)), {Text: parts[0], Sub: parts[1], Num: true}, num(brokenIn(p)),
			{Text: inPercent.value(p.Credit), Sub: wide(p.Credit), Num: true}, num(money(p.Payout))})
	}
	return t
}

// wide is an interval, "" where it has no width.
func wide(e stats.Estimate) string {
	if e.Lo == e.Hi {
		return ""
	}
	return inPercent.interval(e)
}

func (s *story) period(p sim.SLAPeriod) string { return s.label(p.From) + " to " + s.label(p.To) }

// brokenText says in how many replications, of one period or of several, a promise
// is broken.
func brokenText(a *sim.SLA) string {
	n, of := broken(a)
	if len(a.Periods) == 1 {
		return fmt.Sprintf("%d of %s", n, plural(of, "replication"))
	}
	return fmt.Sprintf("%d of %s, over all replications", n, plural(of, "period"))
}

func brokenIn(p sim.SLAPeriod) string {
	of := 0
	for _, n := range p.Tiers {
		of += n
	}
	return fmt.Sprintf("%d of %d", p.Breached, of)
}

// tierTable is the table of breaches, with how often each line applies.
func tierTable(a *sim.SLA) *tableView {
	t := &tableView{Head: []cell{text("attained in a period"), num("credit"), num("times")}, Notes: []string{"Times: periods of all replications in which the line applies."}}
	counted := make([]int, len(a.Credits)+1)
	for _, p := range a.Periods {
		for k, n := range p.Tiers {
			counted[k] += n
		}
	}
	above := "any"
	if len(a.Credits) > 0 {
		above = target(a.Credits[0].Below) + " and more"
	}
	t.Rows = append(t.Rows, []cell{text(above), num("none"), num(count(counted[0]))})
	for k, c := range a.Credits {
		t.Rows = append(t.Rows, []cell{text("below " + target(c.Below)), num(share(c.Share)), num(count(counted[k+1]))})
	}
	return t
}

// heldTable lists the changes that error budgets may hold back.
func (s *story) heldTable() *tableView {
	if len(s.r.Held) == 0 {
		return nil
	}
	t := &tableView{Head: []cell{text("change"), text("waits for the budget of"), text("planned"), num("held back in"), num("never started in"), text("starts, mean")}}
	for _, h := range s.r.Held {
		start := none
		if h.Start.R > 0 {
			start = s.moment(atSeconds(h.Start.V))
		}
		by := list(h.SLOs)
		if h.Essential {
			by += " (while it is gone)"
		}
		n := len(s.r.Seeds)
		t.Rows = append(t.Rows, []cell{text(clean(h.Change)), text(clean(by)), text(s.moment(h.Planned)), num(fmt.Sprintf("%d of %d", h.Held, n)), num(fmt.Sprintf("%d of %d", h.Never, n)), text(start)})
	}
	return t
}

// adjustedTable is the log of an adaptive threshold.
func (s *story) adjustedTable(o *sim.SLO) *tableView {
	if o.Adaptive == nil {
		return nil
	}
	t := &tableView{Head: []cell{text("announced"), text("from"), text("to"), text("reason")}}
	for i, a := range o.Adjusted {
		if i == mostAdjustments {
			t.Notes = append(t.Notes, plural(len(o.Adjusted)-i, "more adjustment")+" in summary.json.")
			break
		}
		when := s.label(a.At)
		if a.InForce != a.At {
			when += ", in force " + s.label(a.InForce)
		}
		t.Rows = append(t.Rows, []cell{text(when), text(plainSeconds(a.From.Seconds())), text(plainSeconds(a.To.Seconds())), text(clean(a.Reason))})
	}
	return t
}

const mostAdjustments = 24

// adaptiveText says within which bounds a threshold moves, and where it was.
func adaptiveText(o *sim.SLO) string {
	a := o.Adaptive
	if a == nil {
		return ""
	}
	return fmt.Sprintf("Adaptive by %s, %s to %s: %s in the first replication; %s in the mean over the run. Each request is judged by the threshold that was in force when it was sent.",
		a.By, plainSeconds(a.Min.Seconds()), plainSeconds(a.Max.Seconds()), plural(len(o.Adjusted), "adjustment"), seconds(o.InForce))
}

// sold prints the SLAs, what was held back, and how thresholds moved.
func (t *terminal) sold() {
	if len(t.r.SLAs) > 0 {
		t.section("SLAs")
		table := textTable{columns: []textColumn{{"sold", true, 0}, {"promise", false, 2}, {"attained", false, 0}, {"broken in", false, 1}, {"bill", false, 3}, {"expected credits", false, 0}}}
		for i := range t.r.SLAs {
			a := &t.r.SLAs[i]
			n, of := broken(a)
			table.add(fit(clean(a.Name), t.width*2/5), target(a.Target), attained(a.Periods[len(a.Periods)-1].Attained), fmt.Sprintf("%d of %d", n, of), usd(a.Bill.V), money(a.Payout))
		}
		table.write(t.w, t.width, t.paintStatus(nil, -1))
		said := map[string]bool{}
		for i := range t.r.SLAs {
			if b := t.r.SLAs[i].Basis; !said[b] {
				said[b] = true
				t.paragraph("  ", dim, b+".")
			}
		}
	}
	if len(t.r.Held) > 0 {
		t.section("Held back by error budgets")
		for _, h := range t.r.Held {
			t.paragraph("  ", "", t.heldText(h))
		}
	}
	head := false
	for i := range t.r.SLOs {
		if text := adaptiveText(&t.r.SLOs[i]); text != "" {
			if !head {
				head = true
				t.section("Adaptive thresholds")
			}
			t.paragraph("  ", "", clean(t.r.SLOs[i].Name)+": "+text)
		}
	}
}

// startOf is when a change begins: in the mean, where budgets held it back, and after
// the run where it never does.
func (s *story) startOf(change string, planned clock.Time) clock.Time {
	for _, h := range s.r.Held {
		if h.Change != change || h.Held == 0 {
			continue
		}
		if h.Start.R == 0 {
			return s.r.End + 1
		}
		return atSeconds(h.Start.V)
	}
	return planned
}

// heldText is a sentence on a change.
func (s *story) heldText(h sim.HeldChange) string {
	n := plural(len(s.r.Seeds), "replication")
	if h.Held == 0 && h.Start.R == 0 {
		return fmt.Sprintf("%s, planned for %s, was not due before the run ended.", clean(h.Change), s.moment(h.Planned))
	}
	if h.Held == 0 {
		if len(s.r.Seeds) == 1 {
			return clean(h.Change) + " started as planned."
		}
		return fmt.Sprintf("%s started as planned in all of %s.", clean(h.Change), n)
	}
	text := fmt.Sprintf("%s, planned for %s, was held back in %d of %s", clean(h.Change), s.moment(h.Planned), h.Held, n)
	switch {
	case h.Never == len(s.r.Seeds):
		return text + " and never started."
	case h.Never > 0:
		text += fmt.Sprintf(", to the end in %d", h.Never)
	}
	return text + "; it started on " + s.moment(atSeconds(h.Start.V)) + " in the mean."
}

// markdownSold adds the same to summary.md.
func (s *story) markdownSold(line func(string, ...any)) {
	if len(s.r.SLAs) > 0 {
		line("\n| SLA | promise | attained | broken in | bill | expected credits |\n|---|--:|--:|--:|--:|--:|")
		for i := range s.r.SLAs {
			a := &s.r.SLAs[i]
			n, of := broken(a)
			line("| %s | %s | %s | %d of %d | %s | %s |", markdown(a.Name), target(a.Target), attained(a.Periods[len(a.Periods)-1].Attained), n, of, markdown(money(a.Bill)), markdown(money(a.Payout)))
		}
		line("\n%s", markdown(sentence(s.r.SLAs[0].Basis)))
	}
	if len(s.r.Held) > 0 {
		line("")
	}
	for _, h := range s.r.Held {
		line("- %s", markdown(s.heldText(h)))
	}
}

type summarySLA struct {
	Name       string             `json:"name"`
	SLO        string             `json:"slo"`
	Class      string             `json:"class"`
	Promise    amount             `json:"promise"`
	Internal   amount             `json:"internal_target"`
	PeriodS    amount             `json:"period_s"`
	Bill       *estimate          `json:"bill_usd"`
	Payout     *estimate          `json:"payout_usd"`
	Unexempted *estimate          `json:"attained_without_exemptions"`
	Exempt     []summaryExempt    `json:"exempt"`
	Credits    []summaryCredit    `json:"credits"`
	Periods    []summarySLAPeriod `json:"periods"`
	Basis      string             `json:"basis"`
}

type summaryCredit struct {
	Below  amount `json:"below"`
	Credit amount `json:"credit"`
}

type summaryExempt struct {
	Name string `json:"name"`
	Bad  int64  `json:"bad"`
}

type summarySLAPeriod struct {
	FromS     amount    `json:"from_s"`
	ToS       amount    `json:"to_s"`
	Simulated amount    `json:"simulated_share"`
	Attained  *estimate `json:"attained"`
	Credit    *estimate `json:"credit"`
	Payout    *estimate `json:"payout_usd"`
	Broken    int       `json:"broken_replications"`
	Lines     []int     `json:"replications_by_credit"` // the first: none is due
}

func (s *story) summarySLAs() []summarySLA {
	var out []summarySLA
	for i := range s.r.SLAs {
		a := &s.r.SLAs[i]
		x := summarySLA{Name: a.Name, SLO: a.SLO, Class: a.Class, Promise: amount(a.Target), Internal: amount(a.Internal), PeriodS: amount(a.Period.Seconds()),
			Bill: toEstimate(a.Bill, 0), Payout: toEstimate(a.Payout, 0), Unexempted: toEstimate(a.Unexempted, 0), Exempt: []summaryExempt{}, Basis: a.Basis}
		for _, e := range a.Excused {
			x.Exempt = append(x.Exempt, summaryExempt{e.Name, e.Bad})
		}
		for _, c := range a.Credits {
			x.Credits = append(x.Credits, summaryCredit{amount(c.Below), amount(c.Share)})
		}
		for _, p := range a.Periods {
			x.Periods = append(x.Periods, summarySLAPeriod{amount(p.From.Seconds()), amount(p.To.Seconds()), amount(p.Simulated), toEstimate(p.Attained, 0), toEstimate(p.Credit, 0), toEstimate(p.Payout, 0), p.Breached, p.Tiers})
		}
		out = append(out, x)
	}
	return out
}

type summaryHeld struct {
	Change    string    `json:"change"`
	SLOs      []string  `json:"gated_by"`
	Essential bool      `json:"essential"`
	PlannedS  amount    `json:"planned_s"`
	Held      int       `json:"held_replications"`
	Never     int       `json:"never_started_replications"`
	StartS    *estimate `json:"start_s"` // null: in none
}

func (s *story) summaryHeld() []summaryHeld {
	var out []summaryHeld
	for _, h := range s.r.Held {
		out = append(out, summaryHeld{h.Change, h.SLOs, h.Essential, amount(h.Planned.Seconds()), h.Held, h.Never, toEstimate(h.Start, 0)})
	}
	return out
}

type summaryAdaptive struct {
	By       string              `json:"by"`
	MinS     amount              `json:"min_s"`
	MaxS     amount              `json:"max_s"`
	InForceS *estimate           `json:"mean_threshold_s"`
	Log      []summaryAdjustment `json:"adjustments"` // first replication
}

type summaryAdjustment struct {
	AtS      amount `json:"at_s"`
	InForceS amount `json:"in_force_s"`
	FromS    amount `json:"from_s"`
	ToS      amount `json:"to_s"`
	Reason   string `json:"reason"`
}

func toAdaptive(o *sim.SLO) *summaryAdaptive {
	a := o.Adaptive
	if a == nil {
		return nil
	}
	out := &summaryAdaptive{By: a.By, MinS: amount(a.Min.Seconds()), MaxS: amount(a.Max.Seconds()), InForceS: toEstimate(o.InForce, 0), Log: []summaryAdjustment{}}
	for _, x := range o.Adjusted {
		out.Log = append(out.Log, toAdjustment(x))
	}
	return out
}

func toAdjustment(x slo.Adjustment) summaryAdjustment {
	return summaryAdjustment{amount(x.At.Seconds()), amount(x.InForce.Seconds()), amount(x.From.Seconds()), amount(x.To.Seconds()), x.Reason}
}

// atSeconds is the moment so many seconds after the start.
func atSeconds(v float64) clock.Time { return clock.Time(clock.FromSeconds(v)) }
