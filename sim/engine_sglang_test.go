package sim

import (
	"context"
	"math"
	"testing"

	"slosim/sim/clock"
	"slosim/workloads"
)

// The same requests on one replica each: SGLang prefills first and alone, so every
// decoding request stands still for as long as prompts can be admitted: all chunks of
// a long prompt, and of what came meanwhile. vLLM's decoding rows take part in every
// step and wait for one chunk at most. TPOT is a mean over a request's tokens and
// hides a stall in a long answer; requests of a few tokens show it whole. So the
// medians are alike, and the tail beyond P99 is where the two engines differ. With
// enable_mixed_chunk SGLang schedules as vLLM does.
func TestSGLangStallsWhereVLLMDoesNot(t *testing.T) {
	for _, c := range []struct {
		name  string
		long  float64 // prompts of 40,000 tokens per second
		least float64 // SGLang's P99.9 TPOT ÷ vLLM's
	}{{"chat", 0, 1.25}, {"chat with long prompts", .1, 3}} {
		t.Run(c.name, func(t *testing.T) {
			run := func(kind string, mixed bool) Distribution {
				e := referenceDay(t, 1, 40*clock.Minute)
				e.Pools[0].Thermal.Enabled = false
				e.Traffic[0].Rate.Mean = 5
				if c.long > 0 {
					e.Traffic = append(e.Traffic, workloads.Class{
						Name: "long", Stream: "long", Rate: workloads.Rate{Mean: c.long, Shape: "constant", Burstiness: 1},
						Prompt: fixed(40_000), Output: fixed(256),
					})
				}
				if spec := &e.Pools[0].Engine; kind == "sglang" { // pages of one token, the same memory
					spec.Kind, spec.ChunkTokens, spec.Conservativeness, spec.MixedChunk = kind, 8192, 1, mixed
					spec.KVBlocks, spec.BlockSize = (spec.KVBlocks-1)*spec.BlockSize+1, 1
				}
				r, err := Run(context.Background(), e, Options{})
				if err != nil {
					t.Fatal(err)
				}
				tpot := r.Phases[0].Classes[0].TPOT
				t.Logf("%-6s mixed %-5v TPOT P50 %5.1f, P99 %6.1f, P99.9 %7.1f, longest %8.1f ms", kind, mixed, 1e3*tpot.P50.V, 1e3*tpot.P99.V, 1e3*tpot.P999.V, 1e3*tpot.Max)
				return tpot
			}
			vllm, alone, mixed := run("vllm", false), run("sglang", false), run("sglang", true)
			if q := alone.P50.V / vllm.P50.V; q < 1 || q > 1.2 {
				t.Errorf("medians %.4f and %.4f s", vllm.P50.V, alone.P50.V)
			}
			if alone.P999.V < c.least*vllm.P999.V || alone.Max < 2*vllm.Max {
				t.Errorf("P99.9 %.4f and %.4f s, longest %.4f and %.4f s", vllm.P999.V, alone.P999.V, vllm.Max, alone.Max)
			}
			if math.Abs(mixed.P999.V/vllm.P999.V-1) > .02 || math.Abs(mixed.P50.V/vllm.P50.V-1) > .02 {
				t.Errorf("mixed %.4f, %.4f s, vLLM %.4f, %.4f s", mixed.P50.V, mixed.P999.V, vllm.P50.V, vllm.P999.V)
			}
		})
	}
}
