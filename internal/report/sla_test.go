package report

import (
	"bytes"
	"strings"
	"testing"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// soldRun has two SLAs, a change that was held back and one that was not, and an
// adaptive threshold.
func soldRun() *sim.Result {
	r := promptGrowth()
	est := func(v, lo, hi float64) stats.Estimate { return stats.Estimate{V: v, Lo: lo, Hi: hi, N: 5, R: 5} }
	a := slo.SLA{Name: "enter<b>prise", SLO: r.SLOs[0].Name, Target: .98, Period: 30 * clock.Day, FeeUSD: 1e4, Credits: []slo.Credit{{Below: .98, Share: .1}, {Below: .9, Share: .3}}, Exempt: []string{slo.Cancelled}}
	x := sim.SLA{SLA: a, Class: "chat", Internal: .99, Bill: est(1e4, 1e4, 1e4), Payout: est(1400, 0, 2600), Unexempted: est(.89, .88, .9),
		Excused: []sim.Excused{{Name: slo.Cancelled, Bad: 1234}}, Basis: "3d of 30d simulated; for the rest the run's last day repeats",
		Periods: []sim.SLAPeriod{{To: clock.Time(30 * clock.Day), Simulated: .1, Attained: est(.91, .89, .93), Credit: est(.14, 0, .26), Payout: est(1400, 0, 2600), Breached: 5, Tiers: []int{0, 4, 1}}}}
	y := x
	y.Name, y.Internal, y.Payout, y.Excused = "standard", .97, est(0, 0, 0), nil
	r.SLAs = []sim.SLA{x, y}
	r.Held = []sim.HeldChange{
		{Hold: sim.Hold{Change: "feature", SLOs: []string{"chat TTFT"}}, Planned: clock.Time(32 * clock.Hour), Held: 3, Never: 1, Start: est(40*3600, 39*3600, 41*3600)},
		{Hold: sim.Hold{Change: "other", SLOs: []string{"chat TTFT"}, Essential: true}, Planned: clock.Time(33 * clock.Hour), Start: est(33*3600, 33*3600, 33*3600)},
	}
	o := &r.SLOs[0]
	o.Adaptive = &slo.Adaptive{By: "budget", Min: clock.Second, Max: 4 * clock.Second}
	o.InForce = est(2.2, 2.1, 2.3)
	for i := range 30 {
		o.Adjusted = append(o.Adjusted, slo.Adjustment{At: clock.Time(i) * clock.Time(clock.Hour), InForce: clock.Time(i)*clock.Time(clock.Hour) + clock.Time(10*clock.Minute), From: 2 * clock.Second, To: 2200 * clock.Millisecond, Reason: "91 % of the budget is spent, more than 75 %: relaxed"})
	}
	return r
}

// Each report says what was sold and what it pays back, what was held back, and how
// thresholds moved; names stay text; long logs are cut, with a note.
func TestReportsTellWhatWasSold(t *testing.T) {
	m := fixtures()["prompt-growth"].meta
	s := newStory(soldRun(), m)
	html, err := page(s)
	if err != nil {
		t.Fatal(err)
	}
	md, err := summaryMarkdown(s)
	if err != nil {
		t.Fatal(err)
	}
	data, err := summaryJSON(s)
	if err != nil {
		t.Fatal(err)
	}
	var terminal bytes.Buffer
	Terminal(&terminal, soldRun(), m)
	held := "feature, planned for Tue 08:00 (day 2), was held back in 3 of 5 replications, to the end in 1"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"page": {string(html), []string{"What was sold", "enter&lt;b&gt;prise", "$1,400 [$0.00, $2,600]", "tighter than what was sold", "the SLO can be kept and the SLA broken", "cancelled 1,234", "below 98 %",
			"$0.00 in every replication", "3 of 5", "(while it is gone)", "Adaptive by budget, 1 s to 4 s", "6 more adjustments in summary.json", "in force Mon 00:10", "last day repeats"}},
		"markdown": {string(md), []string{"enter&lt;b&gt;prise | 98 % | 91 % [89, 93] | 5 of 5", "last day repeats", held}},
		"terminal": {terminal.String(), []string{"$1,400 [$0.00, $2,600]", "last day repeats", "other started as planned in all of 5 replications", "Adaptive by budget"}},
		"JSON":     {string(data), []string{`"payout_usd"`, `"replications_by_credit"`, `"held_replications": 3`, `"mean_threshold_s"`, `"in_force_s": 600`}},
	} {
		text := strings.ReplaceAll(c.text, "\u00a0", " ")
		for _, w := range c.want {
			if !strings.Contains(text, w) && !strings.Contains(strings.Join(strings.Fields(text), " "), w) {
				t.Errorf("%s: no %q", name, w)
			}
		}
	}
	if strings.Contains(string(html), "enter<b>") {
		t.Error("a name became markup")
	}
}
