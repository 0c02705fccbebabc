package engine

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/workloads"
)

// A lone request with k drafts and acceptance a needs (O − 1)/E[tokens per step]
// steps after its first token, E = (1 − a^(k+1))/(1 − a).
func TestSpeculationMakesTheExpectedTokensPerStep(t *testing.T) {
	for _, c := range []struct {
		k int32
		a float64
	}{{1, 0.5}, {3, 0.7}, {4, 0.9}, {5, 0}} {
		v := NewVLLM(&Config{
			MaxBatchedTokens: 2048, MaxSeqs: 16, MaxModelLen: 60_000, BlockSize: 16, KVBlocks: 8000, Model: plainToy,
			Spec: Spec{Drafts: c.k, Accept: c.a, Draws: rng.New(1, rng.HitJoin, "x")},
		})
		const output = 50_000
		v.Submit(0, &workloads.Request{ID: 1, Prompt: 100, Output: output})
		for next, ok := v.Next(); ok; next, ok = v.Next() {
			v.Advance(next, nil)
		}
		steps := float64(v.Spent(clock.Time(clock.Week)).Steps - 1)
		want := (1 - math.Pow(c.a, float64(c.k)+1)) / (1 - c.a)
		if got := (output - 1) / steps; math.Abs(got/want-1) > 0.02 {
			t.Errorf("k %d, a %.1f: %.3f tokens per step, want %.3f", c.k, c.a, got, want)
		}
	}
}

// Under any load every request ends with its output, blocks come back, and the
// rows in a step never exceed the budget.
func TestSpeculationLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		s.cfg.Spec = Spec{Drafts: rapid.Int32Range(1, 5).Draw(t, "drafts"), Accept: rapid.Float64Range(0, 0.95).Draw(t, "accept"), DraftPs: 1000, Draws: rng.New(2, rng.HitJoin, "x")}
		s.cfg.Host.Async = false
		v := NewVLLM(&s.cfg)
		in := 0
		for _, a := range s.acts {
			if !a.look && a.req.Prompt > 0 {
				in++
			}
		}
		s.until += clock.Time(1000 * clock.Second)
		ended := 0
		for _, e := range s.play(v, func(now clock.Time) {
			if l := v.Load(now); l.Blocks < 0 || l.Tokens < 0 {
				t.Fatalf("%+v", l)
			}
			for k := range v.steps {
				if v.at(k).batch.Tokens > s.cfg.MaxBatchedTokens {
					t.Fatalf("%+v", v.at(k).batch)
				}
			}
		}) {
			if e.Kind == Finished || e.Kind == Rejected {
				ended++
			}
		}
		l := v.Load(s.until)
		if ended+s.cancelled != in || l.Blocks != 0 || l.Tokens != 0 || l.Running != 0 {
			t.Fatalf("%d in, %d ended, %d cancelled, %+v", in, ended, s.cancelled, l)
		}
	})
}

// With acceptance the same requests take less time, because a memory-bound step
// costs little more with drafts in it.
func TestSpeculationShortensDecode(t *testing.T) {
	run := func(spec Spec) clock.Time {
		v := NewVLLM(&Config{MaxBatchedTokens: 2048, MaxSeqs: 64, MaxModelLen: 4000, BlockSize: 16, KVBlocks: 4000, Model: toy{base: 8_000_000_000, token: 1_000_000, ctx: 1000}, Host: models.Host{}, Spec: spec})
		for i := range int32(20) {
			v.Submit(0, &workloads.Request{ID: i, Prompt: 200, Output: 300})
		}
		var last clock.Time
		for next, ok := v.Next(); ok; next, ok = v.Next() {
			last = next
			v.Advance(next, nil)
		}
		return last
	}
	plain, fast := run(Spec{}), run(Spec{Drafts: 3, Accept: 0.7, Draws: rng.New(3, rng.HitJoin, "x")})
	if ratio := float64(plain) / float64(fast); ratio < 1.8 || ratio > 2.6 {
		t.Errorf("%.2f times as fast, want about E[tokens] = 2.5 less the cost of drafts", ratio)
	}
}
