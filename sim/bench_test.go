package sim

import (
	"context"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// referenceDay is the load that every speed figure is about: llama-3.3-70b on
// twenty H100 TP8 replicas at two thirds of saturation, everything recorded.
func referenceDay(t testing.TB, replicas int, span clock.Duration) Experiment {
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
	return Experiment{
		Name: "reference-day", Duration: span, Warmup: 0, Seed: 1, Replications: 1,
		Pools: []Pool{{
			Name: "main", Replicas: replicas, Router: "least-outstanding", Deployment: d,
			Engine:  EngineSpec{Kind: "vllm", MaxBatchedTokens: 8192, MaxSeqs: 1024, MaxModelLen: 131072, BlockSize: 16, KVBlocks: m.Blocks, ReserveFullPrompt: true},
			Thermal: ThermalSpec{Enabled: true, AmbientC: 30},
		}},
		Traffic: []workloads.Class{{
			Name: "chat", Stream: "chat",
			Rate:   workloads.Rate{Mean: 6.15 * float64(replicas), Shape: "constant", Burstiness: 1},
			Prompt: workloads.Dist{Kind: "lognormal", Mean: 2000, P99: 6400},
			Output: workloads.Dist{Kind: "exponential", Mean: 256, Max: 4095},
		}},
		SLOs: []slo.Objective{{Name: "TTFT", Class: "chat", Metric: slo.TTFT, Threshold: 2 * clock.Second, Target: .99, Window: 30 * clock.Day}},
	}
}

// BenchmarkReferenceDay is one day of 10.6 M requests: go test ./sim -run xx
// -bench ReferenceDay -benchtime 1x -cpu 1
func BenchmarkReferenceDay(b *testing.B) { benchmarkDay(b, 20, clock.Day) }

// BenchmarkReferenceMonth is thirty of them, five minutes and more: go test ./sim -run xx
// -bench ReferenceMonth -benchtime 1x -cpu 1 -timeout 30m
func BenchmarkReferenceMonth(b *testing.B) {
	if testing.Short() {
		b.Skip("takes minutes")
	}
	benchmarkDay(b, 20, 30*clock.Day)
}

// BenchmarkReferenceDay2Percent is its first 2 %, for CI.
func BenchmarkReferenceDay2Percent(b *testing.B) { benchmarkDay(b, 20, clock.Day/50) }

// BenchmarkReferenceDay4Percent is twice that: what the two differ by is what requests
// cost without what a run costs once.
func BenchmarkReferenceDay4Percent(b *testing.B) { benchmarkDay(b, 20, clock.Day/25) }

func benchmarkDay(b *testing.B, replicas int, span clock.Duration) {
	for b.Loop() {
		e := referenceDay(b, replicas, span)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		r, err := Run(context.Background(), e, Options{Workers: 1})
		if err != nil {
			b.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		seconds := time.Since(start).Seconds()
		b.ReportMetric(float64(r.Requests), "requests")
		b.ReportMetric(float64(r.Requests)/seconds, "requests/s")
		b.ReportMetric(float64(r.Steps)/seconds, "steps/s")
		b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(r.Requests), "allocs/request")
		b.ReportMetric(peakBytes()/1e6, "MB-peak")
	}
}

// peakBytes returns the memory that the Go runtime has mapped and not returned:
// an upper bound of the peak in use.
func peakBytes() float64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64())
}
