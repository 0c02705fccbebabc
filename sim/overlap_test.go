package sim

import (
	"context"
	"testing"

	"slosim/sim/clock"
	"slosim/workloads"
)

// A replica that two faults hold is down until the later one lets it go, and of two
// slownesses the greater holds while it lasts.
func TestOverlappingFaultsHoldUntilTheLast(t *testing.T) {
	run := func(faults ...Fault) *Result {
		e := referenceDay(t, 4, 10*clock.Minute)
		e.Warmup, e.Replications = clock.Minute, 1
		e.Traffic[0].Rate.Mean = 4
		e.Faults = faults
		r, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run(Fault{Pool: "main", At: clock.Minute, For: 3 * clock.Minute, Replicas: 1}, Fault{Pool: "main", At: 2 * clock.Minute, For: 5 * clock.Minute, Replicas: 1})
	if got := r.Pools[0].Serving.V; got < 3.39 || got > 3.41 {
		t.Errorf("%.3f replicas serve on average; one of four is down for six of ten minutes", got)
	}
	slow := func(faults ...Fault) float64 { return run(faults...).Phases[0].Classes[0].TPOT.Mean.V }
	long := Fault{Pool: "main", At: 2 * clock.Minute, For: 6 * clock.Minute, Replicas: 4, Slow: 3}
	one, both := slow(long), slow(Fault{Pool: "main", At: clock.Minute, For: 2 * clock.Minute, Replicas: 4, Slow: 2}, long)
	if both < one {
		t.Errorf("TPOT %.4f s, with a further slowness %.4f s", one, both)
	}
}

// A pool of which no replica ever serves gives a result all the same.
func TestNobodyServes(t *testing.T) {
	e := referenceDay(t, 1, 5*clock.Minute)
	e.Warmup, e.Replications = clock.Minute, 1
	e.Faults = []Fault{{Pool: "main", Replicas: 1}}
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if o := r.Phases[0].Classes[0].Outcomes; o.OK != 0 || o.Rejected == 0 {
		t.Errorf("%+v", o)
	}
}

// When the gate's queue is full, who matters more takes the place of who matters
// less.
func TestAFullGateKeepsItsOrder(t *testing.T) {
	e := referenceDay(t, 1, 10*clock.Minute)
	e.Warmup, e.Replications = clock.Minute, 1
	e.Pools[0].Gate = Gate{InFlight: 20, Queue: 50, Order: "priority"}
	e.Traffic[0].Rate.Mean = 30
	e.Traffic[0].Priority = 1
	vip := e.Traffic[0]
	vip.Name, vip.Stream, vip.Priority = "vip", "vip", 0
	vip.Rate = workloads.Rate{Mean: 1, Shape: "constant", Burstiness: 1}
	e.Traffic = append(e.Traffic, vip)
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Phases[0].Classes {
		if o := c.Outcomes; c.Class == "vip" && o.Rejected > 0 || c.Class == "chat" && o.Rejected == 0 {
			t.Errorf("%s: %+v", c.Class, o)
		}
	}
}

// The looks at a pool cover the time that its replicas serve and no more: an outage is
// neither idle time nor, in the look after it, time that passes a second time.
func TestAnOutageIsNotLookedAt(t *testing.T) {
	for _, cut := range []bool{false, true} {
		e := referenceDay(t, 4, 10*clock.Minute)
		e.Replications = 1
		e.Traffic[0].Rate.Mean = 4
		e.Faults = []Fault{{Pool: "main", At: 2 * clock.Minute, For: 5 * clock.Minute, Replicas: 2, Cut: cut}}
		_, c := replication(t, e)
		c.mon.sum()
		got, want := c.mon.pools[0].total.span.Seconds(), float64(4*600-2*300)
		if got < want-4 || got > want+1 { // the last second of each replica may be in a step
			t.Errorf("cut %t: the looks cover %.1f s, the replicas served %.0f s", cut, got, want)
		}
	}
}
