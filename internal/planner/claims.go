package planner

import (
	"math"

	"slosim/sim"
	"slosim/sim/stats"
)

// claim is a figure that a formula can be about, and what simulation says of it.
type claim struct {
	title string
	unit  string // "s", "requests", "GPUs", "requests/s", "" = share
	// high: a figure above the simulated one errs on the safe side (a longer wait,
	// more GPUs); below it is optimistic. For capacities it is the other way round.
	high   bool
	sizing bool // in GPUs or replicas
	queue  bool // of queues with a closed form
	both   bool // of queues and services
	value  func(*operating) stats.Estimate
}

// operating is what simulation says of one scenario.
type operating struct {
	scenario *Scenario
	inputs   Inputs
	point    *Point // the fleet in its traffic
	full     *Point // one replica, overloaded
	idle     *Point // one replica, at a twentieth of its saturation
	replicas int    // of point
	fewest   int    // replicas that hold every objective; 0 = none does
	why      string // none does
	wait     stats.Estimate
	fault    error
	answers  map[int]*Point // fleets that formulas ask for
}

func at(f func(*sim.Result) float64) func(*operating) stats.Estimate {
	return func(o *operating) stats.Estimate { return o.point.of(f) }
}

// claims by name.
var claims = map[string]claim{
	"concurrency": {title: "requests in the system, mean", unit: "requests", high: true, value: at(concurrency)},
	"gpus":        {title: "fewest GPUs that hold every SLO", unit: "GPUs", high: true, sizing: true, value: func(o *operating) stats.Estimate { return exactly(float64(o.fewest * o.scenario.tp)) }},
	"replicas":    {title: "fewest replicas that hold every SLO", unit: "replicas", high: true, sizing: true, value: func(o *operating) stats.Estimate { return exactly(float64(o.fewest)) }},
	"ttft_mean":   {title: "TTFT, mean", unit: "s", high: true, value: at(ttft(mean))},
	"ttft_p50":    {title: "TTFT P50", unit: "s", high: true, value: at(ttft(p50))},
	"ttft_p95":    {title: "TTFT P95", unit: "s", high: true, value: at(ttft(p95))},
	"ttft_p99":    {title: "TTFT P99", unit: "s", high: true, value: at(ttft(p99))},
	"tpot_mean":   {title: "TPOT, mean", unit: "s", high: true, value: at(tpot(mean))},
	"e2e_mean":    {title: "E2E, mean", unit: "s", high: true, value: at(func(r *sim.Result) float64 { return class(r).E2E.Mean.V })},
	"wait_mean": {title: "wait in the queue, mean", unit: "s", high: true, both: true, value: func(o *operating) stats.Estimate {
		if o.point == nil {
			return o.wait
		}
		return o.point.of(waitMean)
	}},
	"utilisation":     {title: "load: rate ÷ saturation", high: true, value: func(o *operating) stats.Estimate { return exactly(o.inputs["load"]) }},
	"max_rate":        {title: "most that one replica serves", unit: "requests/s", value: func(o *operating) stats.Estimate { return o.full.of(served) }},
	"max_concurrency": {title: "requests that one replica runs when full", unit: "requests", value: func(o *operating) stats.Estimate { return o.full.of(running) }},
	"holds": {title: "every SLO holds (1 = yes)", value: func(o *operating) stats.Estimate {
		if ok, _ := o.point.holds(); ok {
			return exactly(1)
		}
		return exactly(0)
	}},
}

func exactly(v float64) stats.Estimate { return stats.Estimate{V: v, Lo: v, Hi: v, R: 1} }

// Grade says how a figure errs.
type Grade string

// Grades. Safe is right within the tolerance, or the same hardware; optimistic
// promises what does not hold; wasteful is right only in the safe direction.
const (
	Safe       Grade = "safe"
	Optimistic Grade = "optimistic"
	Wasteful   Grade = "wasteful"
)

// grade compares an answer with the simulated figure. Fleets may have a quarter, and
// always one replica, more than needed.
func (c *claim) grade(answer float64, want stats.Estimate, tolerance, tp float64) Grade {
	low, high := Optimistic, Wasteful
	if !c.high {
		low, high = Wasteful, Optimistic
	}
	switch {
	case c.sizing:
		need, have := want.V, answer
		if c.unit == "GPUs" {
			need, have = math.Ceil(need/tp-1e-9), math.Ceil(have/tp-1e-9)
		}
		have = math.Ceil(have - 1e-9)
		switch {
		case have < need:
			return Optimistic
		case have > math.Max(need+1, 1.25*need):
			return Wasteful
		}
		return Safe
	case answer >= want.Lo && answer <= want.Hi:
		return Safe
	case math.IsInf(want.V, 1) && !math.IsInf(answer, 1), answer < want.V*(1-tolerance):
		return low
	case answer > want.V*(1+tolerance):
		return high
	}
	return Safe
}
