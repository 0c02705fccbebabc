package sim

import (
	"context"
	"math"
	"testing"

	"slosim/sim/clock"
	"slosim/workloads"
)

// A shared system prompt is computed once: with the cache on, the share of tokens
// found is its share of the prompts; the statistical model with the same share
// gives the same TTFT.
func TestSharedSystemPromptIsFound(t *testing.T) {
	e := referenceDay(t, 1, 30*clock.Minute)
	e.Warmup = 5 * clock.Minute
	e.Traffic[0].Rate.Mean = 3
	e.Traffic[0].Prompt = workloads.Dist{Kind: "fixed", Mean: 2000}
	e.Traffic[0].System = workloads.System{Tokens: 1600, Variants: 4}
	run := func() (hit, ttft float64) {
		r, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Pools[0].PrefixHit.V, r.Phases[0].Classes[0].TTFT.P50.V
	}
	off, slow := run()
	e.Pools[0].Engine.PrefixCache = true
	on, fast := run()
	if off != 0 || math.Abs(on-0.8) > 0.01 || fast > 0.6*slow {
		t.Errorf("hit %.3f without, %.3f with the cache (0.8 shared); TTFT %.4f and %.4f s", off, on, slow, fast)
	}
	e.Traffic[0].System = workloads.System{}
	e.Traffic[0].Hit = workloads.Hit{Ratio: 1, Tokens: workloads.Dist{Kind: "fixed", Mean: 1600}}
	drawn, same := run()
	if math.Abs(drawn-0.8) > 0.01 || math.Abs(same/fast-1) > 0.02 {
		t.Errorf("hit model: %.3f found, TTFT %.4f s against %.4f s", drawn, same, fast)
	}
}
