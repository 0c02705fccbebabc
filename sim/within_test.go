package sim

import (
	"context"
	"testing"

	"slosim/sim/clock"
	"slosim/workloads"
)

// The intervals within one run hold the values of a much longer one, for a class with
// a cohort as for one without; several replications need none.
func TestOneReplicationHasIntervalsFromItsBatches(t *testing.T) {
	e := busyHour(t)
	e.Traffic[0].Client.Timeout = 0
	e.Traffic[0].Rate.Mean = 1.5
	e.SLOs, e.StageBudgets = nil, nil
	e.Duration = 3 * clock.Hour
	run := func(e Experiment) Distribution {
		r, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Phases[len(r.Phases)-1].Classes[0].TTFT
	}
	short := run(e)
	long := e
	long.Duration, long.Seed = 30*clock.Hour, 9
	truth := run(long)
	for name, v := range map[string][2]float64{"mean": {short.Mean.Hi - short.Mean.V, truth.Mean.V - short.Mean.V}, "P50": {short.P50.Hi - short.P50.V, truth.P50.V - short.P50.V}, "P90": {short.P90.Hi - short.P90.V, truth.P90.V - short.P90.V}} {
		half, off := v[0], max(v[1], -v[1])
		t.Logf("%s: ±%.3g s, %.3g s off", name, half, off)
		if half <= 0 || off > 2*half {
			t.Errorf("%s: ±%.3g s, %.3g s off", name, half, off)
		}
	}
	if short.P50.Batches != 20 || short.P50.R != 1 {
		t.Errorf("%+v", short.P50)
	}
	e.Changes = []workloads.Change{{Name: "more", Class: "chat", At: clock.Second, Share: .5, RateFactor: 1}}
	if split := run(e); split.P50.Batches != 20 {
		t.Errorf("%+v", split.P50)
	}
	e.Replications = 2
	if two := run(e); two.P50.Batches != 0 || two.P50.R != 2 {
		t.Errorf("%+v", two.P50)
	}
}
