package experiments

import (
	"fmt"
	"slices"

	"slosim/internal/config"
	"slosim/sim"
)

// ranged tells whether a pool takes only prompts of a range.
func ranged(p *sim.Pool) bool { return p.MinPrompt > 0 || p.MaxPrompt > 0 }

// checkFleet checks what pools, classes and rules say of each other.
func (l *loader) checkFleet() {
	reached := map[string]bool{}
	for i := range l.e.Pools {
		if to := l.e.Pools[i].OverflowTo; to != "" {
			reached[to] = true
			l.checkOverflow(i)
		}
	}
	for _, r := range l.e.Rules {
		reached[r.To] = true
	}
	for i := range l.e.Pools {
		if p := &l.e.Pools[i]; p.Standby && !reached[p.Name] {
			l.pools[i].Errorf("standby", "", "let another pool overflow to it, or a rule route to it", "pool %q stands by, and nothing ever comes to it", p.Name)
		}
		l.checkRange(i)
		if p := &l.e.Pools[i]; p.Autoscale != nil && p.Autoscale.Metric == "ttft" && len(l.e.Traffic) > 0 && !l.ttftGoal(p) {
			l.pools[i].Sub("autoscale", "").Errorf("metric", "", `add an [[slo]] with metric = "ttft" for one of its classes, or take metric = "concurrency"`, `metric = "ttft" is a share of an SLO's threshold, and no class of pool %q has an SLO on ttft`, p.Name)
		}
	}
	for i := range l.e.Traffic {
		l.checkGaps(i)
		l.checkLimit(i)
	}
}

// checkOverflow follows the overflow of a pool to its end.
func (l *loader) checkOverflow(i int) {
	p := &l.e.Pools[i]
	sub := l.pools[i].Sub("overflow", "")
	to := l.poolNamed(sub, "to", p.OverflowTo)
	seen := map[string]bool{p.Name: true}
	for q := to; q != nil; q = l.find(q.OverflowTo) {
		if seen[q.Name] {
			sub.Errorf("to", "", "let one of them end it", "overflow goes round: %q comes back to itself", q.Name)
			break
		}
		seen[q.Name] = true
	}
	if to != nil && to.Role != "" {
		sub.Errorf("to", "", `name a pool with role = "both"`, "pool %q has a role: it serves no whole request", to.Name)
	}
}

// mostPrompt stands for no upper bound of a pool's range.
const mostPrompt = 1 << 30

// upTo is the end of a pool's range.
func upTo(p *sim.Pool) int32 {
	if p.MaxPrompt == 0 {
		return mostPrompt
	}
	return p.MaxPrompt
}

// covered returns how far the ranges of pools cover prompts from a length on: the
// first length that is in none.
func covered(from int32, pools []*sim.Pool) int32 {
	for grew := true; grew; {
		grew = false
		for _, p := range pools {
			if p.MinPrompt <= from && upTo(p) > from {
				from, grew = upTo(p), true
			}
		}
	}
	return from
}

// rangesOf returns the pools with a range that serve a class.
func (l *loader) rangesOf(class string) []*sim.Pool {
	var out []*sim.Pool
	for i := range l.e.Pools {
		if p := &l.e.Pools[i]; ranged(p) && p.Role == "" && !p.Standby && slices.Contains(l.served(p), class) {
			out = append(out, p)
		}
	}
	return out
}

// checkRange reports a pool whose range earlier pools take from it, for all of its
// classes, and one that ranges leave nothing to.
func (l *loader) checkRange(i int) {
	p := &l.e.Pools[i]
	if p.Role != "" || p.Standby || p.MinPrompt >= upTo(p) || len(l.e.Traffic) == 0 {
		return
	}
	for _, class := range l.served(p) {
		before := l.rangesOf(class)
		if ranged(p) {
			before = before[:slices.Index(before, p)]
		}
		before = slices.DeleteFunc(before, func(q *sim.Pool) bool { return q.Uncached != p.Uncached && ranged(p) })
		if covered(p.MinPrompt, before) < upTo(p) {
			return // something is left
		}
	}
	if len(l.served(p)) > 0 {
		l.pools[i].Errorf("name", "", "narrow the min_prompt and max_prompt of the others, or remove it", "no request ever comes to pool %q: other pools take every prompt of its classes", p.Name)
	}
}

// checkGaps warns of prompts of a class that lie in no pool's range.
func (l *loader) checkGaps(class int) {
	name := l.e.Traffic[class].Name
	pools := l.rangesOf(name)
	if len(pools) == 0 || slices.ContainsFunc(l.e.Pools, func(p sim.Pool) bool {
		return !ranged(&p) && !p.Standby && p.Role != prefill && slices.Contains(l.served(&p), name)
	}) {
		return
	}
	if from := covered(0, pools); from < mostPrompt {
		l.classes[class].Warnf("class", "add a pool without a range", "prompts of %d tokens of class %q lie in no pool's range: pool %q takes them all the same", from, name, pools[0].Name)
	}
}

// checkLimit reports a limit that rejects every request of a class.
func (l *loader) checkLimit(class int) {
	if l.e.Limits == nil || !l.classes[class].Has("limit") {
		return
	}
	c, x := &l.e.Traffic[class], &l.e.Limits[class]
	lengths, err := c.Prompt.Compile()
	if err != nil || c.Trace != nil || c.Session.On() {
		return
	}
	sub := l.classes[class].Sub("limit", "")
	if least := lengths.Quantile(1e-9); x.MaxPrompt > 0 && least > float64(x.MaxPrompt) {
		sub.Errorf("max_prompt", fmt.Sprintf("at least %.0f", least), "", "max_prompt = %d rejects every request of class %q: its prompts have at least %.0f tokens", x.MaxPrompt, c.Name, least)
	}
	if need := lengths.Quantile(.5); x.Tokens > 0 && x.Tokens*x.Burst < need {
		sub.Warnf("tokens", "", "a full bucket, %.0f tokens, is less than the median prompt of class %q, %.0f: such a request waits for a full bucket and leaves a debt", x.Tokens*x.Burst, c.Name, need)
	}
}

// checkRule reports a rule that never begins.
func (l *loader) checkRule(t *config.Table, r *sim.Rule) {
	most, why := 0.0, ""
	switch r.Signal {
	case "misses", "kv":
		most, why = 1, "a share never exceeds 1"
	case "burn":
		for _, o := range l.e.SLOs {
			if o.Name == r.SLO && o.Target < 1 {
				most = 1 / (1 - o.Target)
				why = fmt.Sprintf("with every event bad the burn rate is %.4g", most)
			}
		}
	case "queue":
		if p := l.find(r.Pool); p != nil && p.Engine.MaxWaiting > 0 && p.Gate.Queue == 0 {
			most = float64(p.Engine.MaxWaiting)
			why = fmt.Sprintf("max_waiting of pool %q is %d, and nothing waits at its gate", p.Name, p.Engine.MaxWaiting)
		}
	}
	if why != "" && r.Above >= most {
		t.Errorf("above", fmt.Sprintf("less than %.4g", most), "", "above = %g: %s, so the rule never begins", r.Above, why)
	}
}
