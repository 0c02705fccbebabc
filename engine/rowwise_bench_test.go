package engine

import (
	"math"
	"math/rand/v2"
	"testing"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// chat is a load like the reference day's on one replica of llama-3.3-70b on H100
// TP8: Poisson arrivals, lognormal prompts of mean 2000 (P99 6400), exponential
// outputs of mean 256.
type chat struct {
	rng     *rand.Rand
	perSec  float64
	now     clock.Time
	id      int32
	limit   int32
	prompts [2]float64 // mu, sigma of the logarithm

	longEvery int32 // > 0: every so many requests one of 40,000 tokens
}

func newChat(perSec float64) *chat {
	const sigma = 0.5644 // P99 ÷ mean = 3.2
	return &chat{rng: rand.New(rand.NewPCG(1, 2)), perSec: perSec, limit: 1 << 16, prompts: [2]float64{math.Log(2000) - sigma*sigma/2, sigma}}
}

// next draws the next request; ids come round, as slots in a cluster do.
func (c *chat) next() (clock.Time, workloads.Request) {
	c.now = c.now.Add(clock.FromSeconds(c.rng.ExpFloat64() / c.perSec))
	c.id = (c.id + 1) % c.limit
	r := workloads.Request{
		ID:     c.id,
		Prompt: max(1, int32(math.Exp(c.prompts[0]+c.prompts[1]*c.rng.NormFloat64()))),
		Output: 1 + min(4094, int32(256*c.rng.ExpFloat64())),
	}
	if c.longEvery > 0 && c.id%c.longEvery == 0 {
		r.Prompt = 40_000
	}
	return c.now, r
}

// chatConfig is that replica, with its step model.
func chatConfig(t testing.TB) Config {
	t.Helper()
	llm, err := models.FindLLM("llama-3.3-70b")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := models.FindGPU("h100-sxm-80gb")
	if err != nil {
		t.Fatal(err)
	}
	d := models.Deployment{
		LLM: llm, GPU: gpu, TP: 8, WeightDtype: "bf16", KVDtype: "bf16",
		MemoryUtilization: 0.92, OverheadGiB: models.DefaultOverheadGiB(llm, 8, 8192), MaxBatchedTokens: 8192, Host: models.DefaultHost(8),
	}
	m, err := d.Memory(16)
	if err != nil {
		t.Fatal(err)
	}
	model, err := models.NewStepper(d)
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		MaxBatchedTokens: 8192, MaxSeqs: 1024, MaxModelLen: 131072, BlockSize: 16, KVBlocks: m.Blocks,
		ReserveFullPrompt: true, Model: model, Host: d.Host,
	}
}

// BenchmarkKinds is the reference load on one replica of each kind: one operation
// is one request. go test ./engine -run xx -bench Kinds -cpu 1
func BenchmarkKinds(b *testing.B) {
	kinds := append(kindsAsking(0), kind{"vllm", func(c Config) (Replica, *rowwise) { return NewVLLM(&c), nil }})
	for _, k := range kinds {
		if k.name == "sglang-mixed" || k.name == "trtllm-static" {
			continue // one is set up for small tests, the other cannot carry this load
		}
		b.Run(k.name, func(b *testing.B) {
			cfg := chatConfig(b)
			perSec := 8.0
			if k.name == "static" {
				cfg.MaxSeqs, perSec = 64, 2
			}
			r, _ := k.make(cfg)
			load := newChat(perSec)
			var out []Event
			finished := 0
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				at, req := load.next()
				for t, ok := r.Next(); ok && t <= at; t, ok = r.Next() {
					out = r.Advance(t, out[:0])
					for k := range out {
						if out[k].Kind == Finished {
							finished++
						}
					}
				}
				r.Submit(at, &req)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric(float64(r.Spent(load.now).Steps)/float64(b.N), "steps/request")
			b.ReportMetric(float64(b.N-finished), "unfinished")
		})
	}
}
