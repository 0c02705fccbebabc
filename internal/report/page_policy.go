package report

import (
	"slosim/sim"
	"slosim/sim/slo"
)

// policyWords say what a policy's event is.
var policyWords = map[string]string{
	slo.Warned: "warning", slo.Frozen: "freeze: non-essential changes wait", slo.Stopped: "stop: all features wait",
	slo.Lifted: "freeze lifted", slo.NewStart: "new window: the budget is whole again",
}

// policyTable lists what the budget policy does, and when.
func (s *story) policyTable(o *sim.SLO) *tableView {
	if len(o.Policy) == 0 {
		return nil
	}
	t := &tableView{Head: []cell{text("policy"), text("when"), num("budget spent"), text("")}}
	for i, e := range o.Policy {
		if i == mostPolicyRows {
			t.Notes = append(t.Notes, plural(len(o.Policy)-i, "more event")+" in summary.json.")
			break
		}
		how := "simulated"
		if e.Projected {
			how = "projected"
		}
		t.Rows = append(t.Rows, []cell{text(policyWords[e.Kind]), text(s.moment(e.At)), num(share(e.Spent)), text(how)})
	}
	return t
}

// mostPolicyRows bounds the table.
const mostPolicyRows = 12

// weekTable is an objective's weekly review; nothing for a span within one week.
func (s *story) weekTable(o *sim.SLO) *tableView {
	if len(o.Weeks) < 2 {
		return nil
	}
	t := &tableView{Head: []cell{text("week"), num("events"), num("bad"), num("budget spent"), num("burn rate"), text("")}}
	for _, w := range o.Weeks {
		alarm := ""
		if w.Alarm {
			alarm = "80 % of the budget in a week"
		}
		t.Rows = append(t.Rows, []cell{text(s.label(w.From) + " to " + s.label(w.To)), num(count(w.Good + w.Bad)), num(count(w.Bad)),
			{Text: inPercent.value(w.Spent), Sub: inPercent.interval(w.Spent), Num: true}, num(scale{1, "×"}.value(w.Burn)), text(alarm)})
	}
	return t
}

type summaryPolicy struct {
	Event     string `json:"event"`
	AtS       amount `json:"at_s"`
	When      string `json:"when"`
	Spent     amount `json:"spent"`
	Projected bool   `json:"projected"`
}

type summaryWeek struct {
	FromS amount    `json:"from_s"`
	ToS   amount    `json:"to_s"`
	Good  int64     `json:"good"`
	Bad   int64     `json:"bad"`
	Spent *estimate `json:"spent"`
	Burn  *estimate `json:"burn_rate"`
	Alarm bool      `json:"alarm"`
}

func (s *story) summaryPolicies(o *sim.SLO) []summaryPolicy {
	var out []summaryPolicy
	for _, e := range o.Policy {
		out = append(out, summaryPolicy{e.Kind, amount(e.At.Seconds()), s.when(e.At), amount(e.Spent), e.Projected})
	}
	return out
}

func summaryWeeks(o *sim.SLO) []summaryWeek {
	var out []summaryWeek
	for _, w := range o.Weeks {
		out = append(out, summaryWeek{amount(w.From.Seconds()), amount(w.To.Seconds()), w.Good, w.Bad, toEstimate(w.Spent, 0), toEstimate(w.Burn, 0), w.Alarm})
	}
	return out
}

type summaryLimits struct {
	TTFTS amount `json:"ttft_s,omitempty"`
	TPOTS amount `json:"tpot_s,omitempty"`
	E2ES  amount `json:"e2e_s,omitempty"`
}

func toLimits(l slo.Limits) *summaryLimits {
	if l == (slo.Limits{}) {
		return nil
	}
	return &summaryLimits{amount(l.TTFT.Seconds()), amount(l.TPOT.Seconds()), amount(l.E2E.Seconds())}
}
