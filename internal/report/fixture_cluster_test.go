package report

import (
	"bytes"
	"strings"
	"testing"

	"slosim/sim"
	"slosim/sim/clock"
)

// clusterRun has replicas that come and go, rejections with reasons, and costs.
func clusterRun() *sim.Result {
	r := promptGrowth()
	p := &r.Series.Pools[0]
	for i := range r.Series.T {
		serving := 4.0
		if i > 330 && i < 500 {
			serving = 3
		}
		p.Serving, p.Paid = append(p.Serving, serving), append(p.Paid, 4)
	}
	for i := range 45 {
		r.Actions = append(r.Actions, sim.Action{At: clock.Time(clock.Duration(33*60+i) * clock.Minute), Text: "pool main: 1 fewer, 3 serve"})
	}
	for i := range r.Phases {
		o := &r.Phases[i].Classes[0].Outcomes
		o.Refused[sim.RefusedRate], o.Refused[sim.RefusedDown] = o.Rejected/2, o.Rejected-o.Rejected/2
	}
	r.Pools[0].IdleGPUHours, r.Pools[0].IdleUSD, r.Pools[0].Unused = 62.2, 183.5, .62
	r.Costs = []sim.ClassCost{
		{Class: "chat", Pool: "main", Requests: 1_389_502, TokensIn: 6.4e9, TokensOut: 3.5e8, GPUHours: 2100, USD: 6195, USDPerRequest: .00446, USDPerMIn: .61, USDPerMOut: 6.5},
		{Class: "batch", Pool: "main", Requests: 1203, TokensIn: 2.4e8, TokensOut: 1.5e6, GPUHours: 204, USD: 601.8, USDPerRequest: .5, USDPerMIn: .61, USDPerMOut: 6.5},
	}
	return r
}

// The cluster's part of each report says what happened, why requests were turned
// away, and what the classes cost; long lists are cut, with a note.
func TestReportsTellTheCluster(t *testing.T) {
	f := fixtures()["cluster"]
	s := newStory(f.result, f.meta)
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
	Terminal(&terminal, f.result, f.meta)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"page":     {string(html), []string{"Between 3.0 and 4.0 replicas of main serve", "5 more actions in summary.json", "no replica up", "$0.61"}},
		"markdown": {string(md), []string{"Turned away of chat: rate limit", "45 actions", "| main | batch |"}},
		"terminal": {terminal.String(), []string{"turned away of chat: rate limit", "35 more actions in summary.json", "per 1 M tokens in"}},
		"JSON":     {string(data), []string{"no replica up", `"per_million_out_usd": 6.5`, "pool main: 1 fewer, 3 serve"}},
	} {
		for _, w := range c.want {
			if !strings.Contains(strings.ReplaceAll(c.text, "\u00a0", " "), w) {
				t.Errorf("%s: no %q", name, w)
			}
		}
	}
}
