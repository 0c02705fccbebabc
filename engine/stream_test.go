package engine

import (
	"testing"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// flatSteps is a step model in which every step takes as long.
type flatSteps int64

func (f flatSteps) Step(models.Batch, int) models.Cost { return models.Cost{Gemm: int64(f)} }
func (f flatSteps) Slope(int32, int) models.Cost       { return models.Cost{} }

// A serial front end that takes longer per step than the GPU: 8 rows · 2 ms against
// steps of 10 ms. The first request is alone in its step; from the second step's end
// at 20 ms on clients see one token per 2 ms, so the last of 8·50 at 818 ms, while
// the engine was done at about 500 ms.
func TestASerialFrontEndCapsTokens(t *testing.T) {
	const rows, output = 8, 50
	cfg := Config{
		Model: flatSteps(10e9), BlockSize: 32, KVBlocks: 10_000, MaxSeqs: 64, MaxBatchedTokens: 8192, MaxModelLen: 4096,
		Host: models.Host{StreamPerTokenPs: 2e9},
	}
	r := NewTRTLLM(cfg, TRTLLMOptions{})
	for i := range int32(rows) {
		r.Submit(0, &workloads.Request{Prompt: 64, Output: output, Chain: workloads.Private(uint64(i))})
	}
	var last clock.Time
	for {
		at, more := r.Next()
		if !more {
			break
		}
		for _, e := range r.Advance(at, nil) {
			last = max(last, e.At)
		}
	}
	if want := clock.Time((20 + (rows*output-1)*2) * 1e6); last != want {
		t.Errorf("the last token is visible at %v, want %v", last, want)
	}
}
