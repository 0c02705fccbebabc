package planner

import (
	"slices"
	"strings"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// goodName marks the objectives that withGoodput adds.
const goodName = "\x00goodput of "

// withGoodput adds an objective per class that counts the requests that meet all its
// thresholds at once. exact says that these are all that the experiment promises: a
// promise to some requests only, or on something else than TTFT, TPOT and E2E, is not
// among them.
func withGoodput(e sim.Experiment) (out sim.Experiment, exact bool) {
	exact = true
	limits := map[string]slo.Limits{}
	for _, o := range e.SLOs {
		if len(o.Only)+len(o.Exclude) > 0 || o.Banded() {
			exact = false
			continue
		}
		l := limits[o.Class]
		switch o.Metric {
		case slo.TTFT:
			l.TTFT = tighter(l.TTFT, o.Threshold)
		case slo.TPOT:
			l.TPOT = tighter(l.TPOT, o.Threshold)
		case slo.E2E:
			l.E2E = tighter(l.E2E, o.Threshold)
		case slo.Goodput:
			l.TTFT, l.TPOT, l.E2E = tighter(l.TTFT, o.All.TTFT), tighter(l.TPOT, o.All.TPOT), tighter(l.E2E, o.All.E2E)
		case slo.Availability: // who is not answered meets no threshold either
		default:
			exact = false
		}
		limits[o.Class] = l
	}
	e.SLOs = slices.Clone(e.SLOs)
	for _, c := range e.Traffic {
		if l := limits[c.Name]; l != (slo.Limits{}) {
			e.SLOs = append(e.SLOs, slo.Objective{Name: goodName + c.Name, Class: c.Name, Metric: slo.Goodput, All: l, Target: .5, Window: e.Duration})
		}
	}
	return e, exact
}

// tighter is the smaller of two thresholds; 0 is none.
func tighter(a, b clock.Duration) clock.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// promised are the objectives of the experiment itself.
func promised(list []sim.SLO) []sim.SLO {
	for i := range list {
		if strings.HasPrefix(list[i].Name, goodName) {
			return list[:i]
		}
	}
	return list
}

// goodput is how many requests per second meet every threshold; those of classes that
// promise nothing count when they end. Without the objectives of withGoodput it is a
// bound: those that end, times the smallest attained share.
func goodput(r *sim.Result) float64 {
	own := promised(r.SLOs)
	if len(own) == len(r.SLOs) {
		return servedAll(r) * leastAttained(own)
	}
	sum := 0.0
	known := map[string]bool{}
	for _, s := range r.SLOs[len(own):] {
		known[s.Class] = true
		last := len(s.Phases) - 1
		sum += float64(s.Phases[last].Good) / r.Phases[last].To.Sub(r.Phases[last].From).Seconds()
	}
	for _, c := range r.Series.Classes {
		if c.Cohort == "all" && !known[c.Class] {
			sum += average(c.Completions, 0)
		}
	}
	return sum
}

func leastAttained(list []sim.SLO) float64 {
	least := 1.0
	for _, s := range list {
		p := s.Phases[len(s.Phases)-1]
		if n := p.Good + p.Bad; n > 0 {
			least = min(least, float64(p.Good)/float64(n))
		}
	}
	return least
}
