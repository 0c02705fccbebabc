package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slosim/sim"
)

// The cluster in reports: replicas over time, what the control plane did, why
// requests were turned away, and what each class cost.

// Bounds of what is listed; all of it is in summary.json.
const (
	mostActions         = 40 // on the page
	mostTerminalActions = 10
)

// clusterView is the page's section on the cluster.
type clusterView struct {
	Replicas []*figure
	Actions  *tableView
	Refused  *tableView
	Costs    *tableView
}

func (v *clusterView) any() bool {
	return len(v.Replicas) > 0 || v.Actions != nil || v.Refused != nil || v.Costs != nil
}

// cluster builds the section, without its charts.
func (s *story) cluster() clusterView {
	return clusterView{Actions: s.actionTable(), Refused: s.refusedTable(), Costs: s.costTable()}
}

// replicaChart shows how many replicas of a pool serve and are paid for, where that
// varies.
func (s *story) replicaChart(i int, p *sim.PoolSeries) *chart {
	varies := false
	for k := range p.Serving {
		varies = varies || p.Serving[k] != p.Serving[0] || p.Serving[k] != get(p.Paid, k)
	}
	if !varies {
		return nil
	}
	c := s.runChart(fmt.Sprintf("replicas%d", i), "")
	c.Unit, c.labels = "replicas", 60
	c.draw("paid for", "", p.Paid, line{colour: "--ink", dash: "dotted", label: "paid"})
	c.draw("serving", "", p.Serving, line{colour: "--line", label: "serving", fill: .15})
	if c.empty() {
		return nil
	}
	c.Title = fmt.Sprintf("Between %s and %s replicas of %s serve", oneDecimal(lowest(p.Serving)), oneDecimal(largest(p.Serving)), short(p.Name, 30))
	c.Aid = "Mean over replications and within each window. What is paid for and does not serve is starting, draining, broken, or kept warm."
	return c
}

// actionTable lists what the control plane did in the first replication.
func (s *story) actionTable() *tableView {
	if len(s.r.Actions) == 0 {
		return nil
	}
	t := &tableView{Head: []cell{text("time"), text("what happened (first replication)")}}
	for i, a := range s.r.Actions {
		if i == mostActions {
			t.Notes = append(t.Notes, plural(len(s.r.Actions)-mostActions, "more action")+" in summary.json.")
			break
		}
		t.Rows = append(t.Rows, []cell{text(s.label(a.At)), text(clean(a.Text))})
	}
	return t
}

// refusals adds up the rejections of the whole run by class and reason.
func (s *story) refusals() (classes []string, by map[string]*[sim.Refusals]int64) {
	by = map[string]*[sim.Refusals]int64{}
	for i := range s.r.Phases {
		for j := range s.r.Phases[i].Classes {
			c := &s.r.Phases[i].Classes[j]
			if c.Cohort != everyone || c.Outcomes.Refused == [sim.Refusals]int64{} {
				continue
			}
			if by[c.Class] == nil {
				by[c.Class] = &[sim.Refusals]int64{}
				classes = append(classes, c.Class)
			}
			for k, n := range c.Outcomes.Refused {
				by[c.Class][k] += n
			}
		}
	}
	return classes, by
}

func (s *story) refusedTable() *tableView {
	classes, by := s.refusals()
	if len(classes) == 0 {
		return nil
	}
	var reasons []int
	for k := range sim.Refusals {
		if slices.ContainsFunc(classes, func(c string) bool { return by[c][k] > 0 }) {
			reasons = append(reasons, k)
		}
	}
	t := &tableView{Head: []cell{text("class")}, Notes: []string{"Requests turned away, all replications; HTTP 429, and 400 where they are too long for the engine."}}
	for _, k := range reasons {
		t.Head = append(t.Head, num(sim.RefusalNames[k]))
	}
	for _, c := range classes {
		row := []cell{text(clean(c))}
		for _, k := range reasons {
			row = append(row, num(count(by[c][k])))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// refusedText says in a line why a class's requests were turned away.
func refusedText(reasons *[sim.Refusals]int64) string {
	var parts []string
	for k, n := range reasons {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", sim.RefusalNames[k], count(n)))
		}
	}
	return strings.Join(parts, ", ")
}

// costHead names the columns of the cost table.
var costHead = []string{"pool", "class", "requests", "GPU hours", "cost", "per 1,000 requests", "per 1 M tokens in", "per 1 M tokens out"}

// costRows are the costs by pool and class, and each pool's sum with what idled.
func (s *story) costRows() (rows [][]string) {
	for i := range s.r.Pools {
		p := &s.r.Pools[i]
		money := func(v float64) string {
			if p.USD == 0 {
				return none
			}
			return usd(v)
		}
		for _, c := range s.r.Costs {
			if c.Pool == p.Name {
				rows = append(rows, []string{clean(p.Name), clean(c.Class), count(int64(math.Round(c.Requests))), hours(c.GPUHours),
					money(c.USD), money(1000 * c.USDPerRequest), money(c.USDPerMIn), money(c.USDPerMOut)})
			}
		}
		if spare := p.Unused; !math.IsNaN(spare) {
			rows = append(rows, []string{clean(p.Name), "of which unused", share(spare), hours(spare * p.GPUHours), money(spare * p.USD), "", "", ""})
		} else {
			rows = append(rows, []string{clean(p.Name), "of which no step ran", "", hours(p.IdleGPUHours), money(p.IdleUSD), "", "", ""})
		}
	}
	return rows
}

func hours(v float64) string { return number(v, decimals(v, 0)) }

const costNote = "Of the counted span, mean over replications. A pool's whole cost is dealt out to its classes by their tokens, weighted with the time that a token takes there; unused capacity, 1 − mean rate ÷ what the paid replicas can serve, is a part of it and listed once more."

func (s *story) costTable() *tableView {
	if len(s.r.Costs) == 0 {
		return nil
	}
	t := &tableView{Notes: []string{costNote}}
	for i, h := range costHead {
		t.Head = append(t.Head, cell{Text: h, Num: i > 1})
	}
	for _, r := range s.costRows() {
		var row []cell
		for i, v := range r {
			row = append(row, cell{Text: v, Num: i > 1})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// cluster prints the same in the terminal, where there is something to tell.
func (t *terminal) cluster() {
	classes, by := t.refusals()
	if len(t.r.Actions) > 0 || len(classes) > 0 {
		t.section("Cluster")
	}
	for _, c := range classes {
		t.paragraph("  ", "", "turned away of "+clean(c)+": "+refusedText(by[c]))
	}
	for i, a := range t.r.Actions {
		if i == mostTerminalActions {
			t.paragraph("  ", dim, plural(len(t.r.Actions)-i, "more action")+" in summary.json.")
			break
		}
		t.paragraph("  "+t.label(a.At)+"  ", dim, a.Text)
	}
	if len(t.r.Costs) < 2 {
		return
	}
	t.section("Cost of the run")
	table := textTable{columns: []textColumn{{costHead[0], true, 0}, {costHead[1], true, 0}, {costHead[2], false, 1}, {costHead[3], false, 2}, {costHead[4], false, 0}, {costHead[5], false, 3}, {costHead[6], false, 4}, {costHead[7], false, 5}}}
	for _, r := range t.costRows() {
		table.add(r...)
	}
	table.write(t.w, t.width, t.paintStatus(nil, -1))
}

// markdownCluster adds rejections, the number of actions and costs to summary.md.
func (s *story) markdownCluster(line func(string, ...any)) {
	classes, by := s.refusals()
	if len(classes)+len(s.r.Actions) > 0 {
		line("")
	}
	for _, c := range classes {
		line("- Turned away of %s: %s.", markdown(c), markdown(refusedText(by[c])))
	}
	if n := len(s.r.Actions); n > 0 {
		line("- %s of the control plane; the first at %s: %s.", plural(n, "action"), s.label(s.r.Actions[0].At), markdown(s.r.Actions[0].Text))
	}
	if len(s.r.Costs) < 2 {
		return
	}
	line("\n| %s |\n|---|---|%s", strings.Join(costHead, " | "), strings.Repeat("--:|", len(costHead)-2))
	for _, r := range s.costRows() {
		for i := range r {
			r[i] = markdown(r[i])
		}
		line("| %s |", strings.Join(r, " | "))
	}
}

type summaryAction struct {
	TS   amount `json:"t_s"`
	Text string `json:"text"`
}

type summaryCost struct {
	Pool          string `json:"pool"`
	Class         string `json:"class"`
	Requests      amount `json:"requests"`
	TokensIn      amount `json:"tokens_in"`
	TokensOut     amount `json:"tokens_out"`
	GPUHours      amount `json:"gpu_hours"`
	USD           amount `json:"usd"`
	USDPerRequest amount `json:"per_request_usd"`
	USDPerMIn     amount `json:"per_million_in_usd"`
	USDPerMOut    amount `json:"per_million_out_usd"`
}

// summaryOutcomesOf converts outcomes; reasons that did not occur are left out.
func summaryOutcomesOf(o sim.Outcomes) summaryOutcomes {
	out := summaryOutcomes{OK: o.OK, Rejected: o.Rejected, TimedOut: o.TimedOut, Failed: o.Failed, Late: o.Late, Young: o.Young, Retries: o.Retries, Lost: o.Lost}
	for k, n := range o.Refused {
		if n > 0 {
			out.Refused = append(out.Refused, summaryRefusal{sim.RefusalNames[k], n})
		}
	}
	return out
}

type summaryRefusal struct {
	Reason string `json:"reason"`
	N      int64  `json:"n"`
}

func (s *story) summaryCluster() (actions []summaryAction, costs []summaryCost) {
	actions, costs = []summaryAction{}, []summaryCost{}
	for _, a := range s.r.Actions {
		actions = append(actions, summaryAction{amount(a.At.Seconds()), a.Text})
	}
	for _, c := range s.r.Costs {
		costs = append(costs, summaryCost{c.Pool, c.Class, amount(c.Requests), amount(c.TokensIn), amount(c.TokensOut), amount(c.GPUHours),
			unknownIfZero(c.USD), unknownIfZero(c.USDPerRequest), unknownIfZero(c.USDPerMIn), unknownIfZero(c.USDPerMOut)})
	}
	return actions, costs
}
