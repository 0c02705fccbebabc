package experiments

import (
	"fmt"
	"slices"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// warnCluster reports settings of the cluster that never act.
func (l *loader) warnCluster() {
	for i := range l.e.Pools {
		l.warnFleet(i)
		l.warnScale(i)
		l.warnRare(i)
	}
	for i := range l.e.Traffic {
		l.warnLimit(i)
	}
	for i := range l.rollouts {
		l.warnRollout(i)
	}
	for i := range l.e.Rules {
		l.warnRule(i)
	}
}

// warnFleet reports what a pool is told about itself without effect.
func (l *loader) warnFleet(i int) {
	p, t := &l.e.Pools[i], l.pools[i]
	if p.Zones > p.Limit() {
		t.Warnf("zones", "", "zones = %d, but pool %q has %s: some zones are empty", p.Zones, p.Name, count(p.Limit(), "replica"))
	}
	if p.Uncached && !ranged(p) {
		t.Warnf("uncached", "add min_prompt or max_prompt", "uncached says how a prompt range counts, and pool %q has none: it changes nothing", p.Name)
	}
	if g := &p.Gate; t.Has("gate") {
		sub := t.Sub("gate", "")
		switch {
		case g.Queue == 0 && g.Timeout > 0:
			sub.Warnf("timeout", "add queue", "queue = 0 of pool %q lets nobody wait: timeout = %s never counts", p.Name, config.SpanText(g.Timeout))
		case g.Queue == 0 && g.Order != "fcfs":
			sub.Warnf("order", "add queue", "queue = 0 of pool %q lets nobody wait: order = %q changes nothing", p.Name, g.Order)
		case g.Queue == 0 && g.InFlight == 0:
			t.Warnf("gate", "add in_flight or queue", "the gate of pool %q holds nobody back: it has neither in_flight nor queue", p.Name)
		}
	}
	if to := l.find(p.OverflowTo); to != nil && to.Engine.MaxModelLen < p.Engine.MaxModelLen {
		t.Sub("overflow", "").Warnf("to", "", "pool %q takes requests of up to %d tokens, and pool %q, which it overflows to, of %d: longer ones are rejected there",
			p.Name, p.Engine.MaxModelLen, to.Name, to.Engine.MaxModelLen)
	}
}

// warnScale reports what an autoscaler never looks at.
func (l *loader) warnScale(i int) {
	p, a := &l.e.Pools[i], l.e.Pools[i].Autoscale
	if a == nil {
		return
	}
	sub := l.pools[i].Sub("autoscale", "")
	if a.Min == a.Max && a.Metric != "schedule" {
		sub.Warnf("max", "", "min and max of pool %q are both %d: it never scales", p.Name, a.Max)
	}
	if a.Warm == 0 && a.WarmUp != defaultWarmUp {
		sub.Warnf("warm_up", "add warm", "without a warm pool (warm = 0) warm_up = %s never counts", config.SpanText(a.WarmUp))
	}
	if a.Metric != "rate" && a.Lead != a.StartUp {
		sub.Warnf("lead", `take metric = "rate"`, "lead = %s belongs to metric = \"rate\": %q looks at what is, not ahead", config.SpanText(a.Lead), a.Metric)
	}
	for _, s := range a.Schedule {
		if s.Replicas < a.Min || s.Replicas > a.Max {
			sub.Warnf("schedule", "", "the schedule asks for %s, and min and max hold it to %d to %d", count(s.Replicas, "replica"), a.Min, a.Max)
		}
	}
}

// warnRare reports a pool with a prompt range that next to no prompt of its classes
// lies in.
func (l *loader) warnRare(i int) {
	p := &l.e.Pools[i]
	if !ranged(p) || p.Uncached || p.Standby {
		return
	}
	most := 0.0
	for _, name := range l.served(p) {
		c := &l.e.Traffic[slices.IndexFunc(l.e.Traffic, func(c workloads.Class) bool { return c.Name == name })]
		if c.Trace != nil || c.Session.On() {
			return
		}
		prompts := []workloads.Dist{c.Prompt}
		for _, change := range l.e.Changes {
			if change.Class == name && change.Prompt != nil {
				prompts = append(prompts, *change.Prompt)
			}
		}
		for _, d := range prompts {
			prompt, err := d.Compile()
			if err != nil {
				return
			}
			share := prompt.ShareAtLeast(max(p.MinPrompt, 1))
			if p.MaxPrompt > 0 {
				share -= prompt.ShareAtLeast(p.MaxPrompt)
			}
			most = max(most, share)
		}
	}
	key := "min_prompt"
	if p.MinPrompt == 0 {
		key = "max_prompt"
	}
	if most < 1e-6 {
		l.pools[i].Warnf(key, "", "fewer than one in a million prompts of its classes lie in the range of pool %q: it stands idle", p.Name)
	}
}

// warnLimit reports a limit of a class, or a part of it, that holds nothing.
func (l *loader) warnLimit(class int) {
	t := l.classes[class]
	if !t.Has("limit") || l.e.Limits == nil {
		if t.Has("limit") {
			t.Warnf("limit", "give it requests, tokens, in_flight or max_prompt", "the limit of class %q limits nothing", l.e.Traffic[class].Name)
		}
		return
	}
	sub, x := t.Sub("limit", ""), &l.e.Limits[class]
	if x.Burst != 1 && x.Requests == 0 && x.Tokens == 0 {
		sub.Warnf("burst", "add requests or tokens", "burst belongs to a rate limit, and class %q has none", l.e.Traffic[class].Name)
	}
	if x.Weight != 1 && !slices.ContainsFunc(l.e.Pools, func(p sim.Pool) bool { return p.Gate.Order == "fair" }) {
		sub.Warnf("weight", `set gate = { in_flight = 200, queue = 500, order = "fair" } there`, "weight = %g of class %q counts at a gate with order = \"fair\", and no pool has one", x.Weight, l.e.Traffic[class].Name)
	}
}

// warnRollout reports a rollout that never happens, or not to the end.
func (l *loader) warnRollout(i int) {
	x := &l.e.Rollouts[i]
	p := l.find(x.Pool)
	if p == nil {
		return
	}
	batches := clock.Duration((p.Replicas + x.Batch - 1) / x.Batch)
	switch least := batches * x.Down; {
	case x.At >= l.e.Duration:
		l.rollouts[i].Warnf("at", "", "at = %s is after the end of the run: it never happens", config.SpanText(x.At))
	case x.At+least > l.e.Duration:
		l.rollouts[i].Warnf("at", "run longer, or start it earlier", "the run ends before the rollout does: %d × %s need at least %s from %s on",
			batches, config.SpanText(x.Down), config.SpanText(least), config.SpanText(x.At))
	}
}

// warnRule reports a rule whose action changes nothing, and rules that contradict
// each other.
func (l *loader) warnRule(i int) {
	r, t := &l.e.Rules[i], l.rules[i]
	switch r.Action {
	case "cap":
		if !slices.ContainsFunc(r.Class, func(c string) bool { return l.mostOutput(c) > float64(r.Cap) }) {
			t.Warnf("cap", "", "cap = %d never binds: no output of these classes is longer", r.Cap)
		}
	case "route":
		to := l.find(r.To)
		if !slices.ContainsFunc(r.Class, func(c string) bool {
			own := l.rangesOf(c)
			return len(own) > 0 || l.poolOf(c) != to
		}) {
			t.Warnf("to", "name another pool", "pool %q serves these classes as it is: the rule changes nothing", r.To)
		}
	}
	for k := range i {
		if o := &l.e.Rules[k]; o.Action == r.Action && r.Action != "shed" && overlap(o.Class, r.Class) && (o.To != r.To || o.Cap != r.Cap) {
			t.Warnf("action", "", "rules %q and %q both %s class %q: while both are in force the first of them, %q, decides", o.Name, r.Name, r.Action, common(o.Class, r.Class), o.Name)
		}
	}
}

// common returns the first name that two lists share.
func common(a, b []string) string {
	return a[slices.IndexFunc(a, func(s string) bool { return slices.Contains(b, s) })]
}

// mostOutput returns the longest output that a class has any day, in tokens; where
// nobody knows ahead, more than any.
func (l *loader) mostOutput(class string) float64 {
	const unknown = 1 << 40
	c := &l.e.Traffic[slices.IndexFunc(l.e.Traffic, func(c workloads.Class) bool { return c.Name == class })]
	if c.Trace != nil || c.Session.On() {
		return unknown
	}
	output, err := c.Output.Compile()
	if err != nil {
		return unknown
	}
	most := output.Quantile(1 - 1e-6)
	for _, change := range l.e.Changes {
		if change.Class == class && change.Output != nil {
			if d, err := change.Output.Compile(); err == nil {
				most = max(most, d.Quantile(1-1e-6))
			}
		}
	}
	return min(most, float64(l.poolOf(class).Engine.MaxModelLen))
}

// ttftGoal tells whether any class of a pool has an objective on TTFT.
func (l *loader) ttftGoal(p *sim.Pool) bool {
	return slices.ContainsFunc(l.e.SLOs, func(o slo.Objective) bool {
		return o.Metric == slo.TTFT && slices.Contains(l.served(p), o.Class)
	})
}

// unique times of a schedule: two sizes at one time contradict each other.
func checkSchedule(t *config.Table, a *sim.Autoscale) {
	for i := 1; i < len(a.Schedule); i++ {
		if a.Schedule[i].At == a.Schedule[i-1].At {
			t.Errorf("schedule", "", "remove one of them", "the schedule has two sizes from %s on", fmt.Sprintf("%02d:%02d", a.Schedule[i].At/clock.Hour, a.Schedule[i].At%clock.Hour/clock.Minute))
		}
	}
}
