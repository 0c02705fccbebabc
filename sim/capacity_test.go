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
		tolerance      float64 // preemption and head-of-line waits are no part of the fluid limit
	}{
		"chat":     {workloads.Dist{Kind: "lognormal", Mean: 2000, P99: 8000}, workloads.Dist{Kind: "lognormal", Mean: 256, P99: 1024}, 0, 0.02},
		"long":     {workloads.Dist{Kind: "lognormal", Mean: 20000, P99: 60000}, workloads.Dist{Kind: "lognormal", Mean: 256, P99: 1024}, 0, 0.12},
		"little":   {workloads.Dist{Kind: "fixed", Mean: 100}, workloads.Dist{Kind: "fixed", Mean: 400}, 0, 0.02},
		"kv-bound": {workloads.Dist{Kind: "fixed", Mean: 1000}, workloads.Dist{Kind: "fixed", Mean: 300}, 9000, 0.25},
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
		m, ok := p.mixAt(0, 0, 0, func(*workloads.Intensity) float64 { return 1 })
		if !ok {
			t.Fatal("no mix")
		}
		want := p.saturation(0, m, 0)
		e.Traffic[0].Rate.Mean = 2 * want
		e.Traffic[0].Client = workloads.Client{MaxInFlight: 1500}
		r, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		done := 0.0
		for _, x := range r.Series.Classes[0].Arrivals { // behind its cap the client sends what completes
			done += x * r.Series.Width.Seconds()
		}
		got := done / e.Duration.Seconds()
		t.Logf("%s: fluid %.3f/s, simulated %.3f/s (%+.1f %%), preemptions %.0f", name, want, got, 100*(want/got-1), r.Pools[0].Preemptions.V)
		if math.Abs(want/got-1) > c.tolerance {
			t.Errorf("%s: fluid %.3f/s, simulated %.3f/s", name, want, got)
		}
	}
}
