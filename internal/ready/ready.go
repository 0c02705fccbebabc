package ready

import (
	"fmt"
	"math"
	"strings"

	"slosim/internal/config"
	"slosim/internal/promrules"
	"slosim/sim"
	"slosim/sim/slo"
)

// Enough is how many items must be met before a promise is made.
const Enough = 4

// headroom is the load at the peak, with one replica less, that still counts as
// planned: the upper end of the field's rule of 70–80 % utilisation.
const headroom = 0.80

// Item is one of the checklist.
type Item struct {
	Name     string
	Met      bool
	Evidence []string // why, or what is missing
}

// Check judges an experiment by its settings, where they come from, and its run.
// The run may be nil: then capacity counts as not planned.
func Check(e *sim.Experiment, p *config.Provenance, r *sim.Result) []Item {
	return []Item{promise(e), monitored(e), budget(e, p, r), capacity(e, r), degradation(e), postmortem(e)}
}

// Met counts the items that are met.
func Met(items []Item) int {
	n := 0
	for _, i := range items {
		if i.Met {
			n++
		}
	}
	return n
}

func (i *Item) say(format string, args ...any) {
	i.Evidence = append(i.Evidence, fmt.Sprintf(format, args...))
}

// lack adds what is missing.
func (i *Item) lack(format string, args ...any) {
	i.Met = false
	i.say(format, args...)
}

// promise: every class has an objective.
func promise(e *sim.Experiment) Item {
	item := Item{Name: "SLO defined in writing", Met: true}
	for _, c := range e.Traffic {
		var names []string
		for _, o := range e.SLOs {
			if o.Class == c.Name {
				names = append(names, fmt.Sprintf("%q (%s, %.5g %%)", o.Name, o.Metric, 100*o.Target))
			}
		}
		if len(names) == 0 {
			item.lack("class %q has no [[slo]]", c.Name)
		} else {
			item.say("class %q: %s", c.Name, strings.Join(names, ", "))
		}
	}
	return item
}

// monitored: each class with objectives has one that production metrics show.
func monitored(e *sim.Experiment) Item {
	item := Item{Name: "Metrics monitored", Met: len(e.SLOs) > 0}
	if !item.Met {
		item.say("there is no [[slo]] to monitor")
	}
	seen := map[string]bool{}
	for _, o := range e.SLOs {
		if _, _, _, ok := promrules.Ratio(&o, "", "5m"); ok {
			seen[o.Class] = true
			metric := "http_requests_total"
			if h, ok := promrules.HistogramOf(o.Metric); ok {
				metric = h.Name
			}
			item.say("%q is watched by %s: sim slo export --format prometheus writes its rules", o.Name, metric)
		} else {
			item.say("%q is not shown by vLLM's metrics", o.Name)
		}
	}
	for _, o := range e.SLOs {
		if !seen[o.Class] {
			seen[o.Class] = true
			item.lack("no objective on class %q can be watched", o.Class)
		}
	}
	return item
}

// budget: each objective states its window, and its budget allows at least a few
// bad events.
func budget(e *sim.Experiment, p *config.Provenance, r *sim.Result) Item {
	item := Item{Name: "Error budget configured", Met: len(e.SLOs) > 0}
	if !item.Met {
		item.say("there is no [[slo]]")
	}
	for k, o := range e.SLOs {
		if origin(p, "slo."+o.Name+".window", "slo.\""+o.Name+"\".window") == "default" {
			item.lack("%q: its window is the default, %s: state it", o.Name, config.SpanText(o.Window))
			continue
		}
		text := fmt.Sprintf("%q: window %s, %d burn-rate alerts", o.Name, config.SpanText(o.Window), len(o.Pairs()))
		if r != nil {
			total := r.SLOs[k].Budget.Total
			text += fmt.Sprintf(", %.0f bad events allowed", total)
			if total < slo.MinEvents {
				item.Met = false
				text += ": too few for alerts to mean something"
			}
		}
		item.say("%s", text)
	}
	return item
}

// origin returns where the first of some paths comes from.
func origin(p *config.Provenance, paths ...string) string {
	for _, entry := range p.Entries {
		for _, path := range paths {
			if entry.Path == path {
				return entry.Origin
			}
		}
	}
	return ""
}

// capacity: the run meets every objective, and each pool bears its peak with one
// replica less.
func capacity(e *sim.Experiment, r *sim.Result) Item {
	item := Item{Name: "Capacity planned", Met: true}
	if r == nil {
		item.lack("not simulated")
		return item
	}
	if len(r.SLOs) == 0 {
		item.lack("there is no [[slo]] to hold the capacity against")
	}
	for i := range r.SLOs {
		s := &r.SLOs[i]
		if s.Status != sim.Met {
			item.lack("%q is %s in phase %q: %.4g %% attained, %.5g %% promised", s.Name, s.Status, s.Judged, 100*s.Attained.V, 100*s.Target)
		} else {
			item.say("%q is MET: %.4g %% attained", s.Name, 100*s.Attained.V)
		}
	}
	for i := range r.Pools {
		p := &r.Pools[i]
		n := float64(p.Replicas)
		switch less := p.PeakLoad * n / (n - 1); {
		case e.Pools[i].Autoscale != nil:
			item.say("pool %q scales: its peak is in the run", p.Name)
		case n < 2:
			item.lack("pool %q has one replica: none may fail", p.Name)
		case p.PeakLoad == 0 || math.IsNaN(p.PeakLoad):
			item.lack("pool %q: its load has no closed form; rehearse a [[fault]] instead", p.Name)
		case less > headroom:
			item.lack("pool %q: with one replica less its peak is %.0f %% of saturation, more than %.0f %%", p.Name, 100*less, 100*headroom)
		default:
			item.say("pool %q: with one replica less its peak is %.0f %% of saturation", p.Name, 100*less)
		}
	}
	return item
}

// degradation: there is a way to degrade, and something in the experiment that
// makes it needed.
func degradation(e *sim.Experiment) Item {
	item := Item{Name: "Degradation path rehearsed"}
	var ways, trials []string
	for _, r := range e.Rules {
		ways = append(ways, fmt.Sprintf("rule %q (%s)", r.Name, r.Action))
	}
	for _, l := range e.Limits {
		if l != (sim.Limit{}) {
			ways = append(ways, "rate limits of a class")
			break
		}
	}
	for _, p := range e.Pools {
		if p.Gate.InFlight > 0 {
			ways = append(ways, fmt.Sprintf("gateway of pool %q", p.Name))
		}
		if p.OverflowTo != "" {
			ways = append(ways, fmt.Sprintf("overflow of pool %q to %q", p.Name, p.OverflowTo))
		}
		if p.Wear.MTBF > 0 {
			trials = append(trials, fmt.Sprintf("replicas of pool %q break by chance", p.Name))
		}
	}
	for _, f := range e.Faults {
		trials = append(trials, fmt.Sprintf("fault in pool %q", f.Pool))
	}
	for _, c := range e.Traffic {
		if len(c.Rate.Bursts) > 0 {
			trials = append(trials, fmt.Sprintf("bursts of class %q", c.Name))
		}
	}
	item.Met = len(ways) > 0 && len(trials) > 0
	if len(ways) == 0 {
		item.say("nothing degrades: no [[rule]], limit, gate or overflow")
	} else {
		item.say("ways: %s", strings.Join(ways, ", "))
	}
	if len(trials) == 0 {
		item.say("nothing needs it: no [[fault]], wear or bursts in the experiment")
	} else {
		item.say("rehearsed by: %s", strings.Join(trials, ", "))
	}
	return item
}

// postmortem: the experiment says where incidents are reviewed.
func postmortem(e *sim.Experiment) Item {
	item := Item{Name: "Post-mortem practice", Met: e.Postmortem != ""}
	if item.Met {
		item.say("stated, not checked: %s", e.Postmortem)
	} else {
		item.say("postmortem is not set: say where incidents are reviewed")
	}
	return item
}
