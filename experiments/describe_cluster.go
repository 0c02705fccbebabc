package experiments

import (
	"fmt"
	"strings"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
)

// describeFleet says how a pool is routed to, held back, scaled and worn, beginning
// with a comma; nothing where it is as by default.
func describeFleet(p *sim.Pool) string {
	var b strings.Builder
	add := func(has bool, format string, args ...any) {
		if has {
			fmt.Fprintf(&b, ", "+format, args...)
		}
	}
	add(p.Router != "least-outstanding", "%s routing", p.Router)
	add(p.MinPrompt > 0, "prompts from %d tokens on", p.MinPrompt)
	add(p.MaxPrompt > 0, "prompts below %d tokens", p.MaxPrompt)
	add(p.Standby, "standby")
	add(p.OverflowTo != "", "overflows to %s at %g per replica", p.OverflowTo, p.OverflowAt)
	add(p.Gate.InFlight > 0, "at most %d in flight", p.Gate.InFlight)
	add(p.Gate.Queue > 0, "%d may wait at the gate", p.Gate.Queue)
	if a := p.Autoscale; a != nil {
		add(true, "%d to %d replicas by %s, serving after %s", a.Min, a.Max, a.Metric, config.SpanText(a.StartUp/clock.Second*clock.Second))
	}
	add(p.Wear.MTBF > 0, "breaks every %s for %s on average", config.SpanText(p.Wear.MTBF), config.SpanText(p.Wear.MTTR))
	return b.String()
}

// describeEvents lists what happens to the cluster, and the degradation policy.
func describeEvents(e *sim.Experiment, line func(what, format string, args ...any)) {
	for _, f := range e.Faults {
		what := count(f.Replicas, "replica")
		if f.Zone > 0 {
			what = fmt.Sprintf("zone %d", f.Zone)
		}
		verb, long := "down", "to the end"
		if f.Slow > 0 {
			verb = fmt.Sprintf("%g times as slow", f.Slow)
		}
		if f.Cut {
			verb = "cut off"
		}
		if f.For > 0 {
			long = "for " + config.SpanText(f.For)
		}
		line("fault", "%s of %s %s at %s %s", what, f.Pool, verb, config.SpanText(f.At), long)
	}
	for _, r := range e.Rollouts {
		line("rollout", "%s from %s on, %d at a time", r.Pool, config.SpanText(r.At), r.Batch)
	}
	for _, r := range e.Rules {
		on := r.SLO
		if on == "" {
			on = r.Pool
		}
		line("rule", "%s: when %s of %s is above %g %s %s, until below %g", r.Name, r.Signal, on, r.Above, r.Action, strings.Join(r.Class, ", "), r.Below)
	}
}
