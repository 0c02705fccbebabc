package sim

import (
	"context"
	"math"
	"testing"

	"slosim/sim/clock"
	"slosim/workloads"
)

// The fluid saturation rate against what an overloaded replica completes: short
// prompts, the launch's mixture, and a KV-bound mix.
func TestSaturationRateIsWhatAnOverloadedReplicaServes(t *testing.T) {
	for name, c := range map[string]struct {
		prompt, output workloads.Dist
		blocks         int32
	}{
		"chat":     {workloads.Dist{Kind: "lognormal", Mean: 2000, P99: 8000}, workloads.Dist{Kind: "lognormal", Mean: 256, P99: 1024}, 0},
		"long":     {workloads.Dist{Kind: "lognormal", Mean: 20000, P99: 60000}, workloads.Dist{Kind: "lognormal", Mean: 256, P99: 1024}, 0},
		"little":   {workloads.Dist{Kind: "fixed", Mean: 100}, workloads.Dist{Kind: "fixed", Mean: 400}, 0},
		"kv-bound": {workloads.Dist{Kind: "fixed", Mean: 1000}, workloads.Dist{Kind: "fixed", Mean: 300}, 9000},
	} {
		e := referenceDay(t, 1, 40*clock.Minute)
		e.Warmup = 20 * clock.Minute
		e.Pools[0].Thermal.Enabled = false
		e.Traffic[0].Prompt, e.Traffic[0].Output = c.prompt, c.output
		if c.blocks > 0 {
			e.Pools[0].Engine.KVBlocks, e.Pools[0].Engine.MaxModelLen = c.blocks, 100_000
		}
		p, err := newPlan(e)
		if err != nil {
			t.Fatal(err)
		}
		m, ok := p.mixAt(0, 0, func(*workloads.Intensity) float64 { return 1 })
		if !ok {
			t.Fatal("no mix")
		}
		want := p.saturation(0, m)
		e.Traffic[0].Client = workloads.Client{Users: 3000}
		r, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		done := 0.0
		for _, x := range r.Series.Classes[0].Arrivals { // a closed loop sends what it completes
			done += x * r.Series.Width.Seconds()
		}
		got := done / e.Duration.Seconds()
		t.Logf("%s: fluid %.3f/s, simulated %.3f/s (%+.1f %%), preemptions %.0f", name, want, got, 100*(want/got-1), r.Pools[0].Preemptions.V)
		if math.Abs(want/got-1) > 0.1 {
			t.Errorf("%s: fluid %.3f/s, simulated %.3f/s", name, want, got)
		}
	}
}
