package models

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// kernelTables names each GPU's measured tables.
var kernelTables = []kernelTable{
	{gpu: "a100-sxm-80gb", system: "a100_sxm", version: "0.14.0"},
	{gpu: "h100-sxm-80gb", system: "h100_sxm", version: "0.24.0"},
	{gpu: "h200-sxm-141gb", system: "h200_sxm", version: "0.24.0"},
	{gpu: "b200-sxm-180gb", system: "b200_sxm", version: "0.24.0"},
	{gpu: "l40s-48gb", system: "l40s", version: "0.24.0", thinned: true, l2Bytes: 96 << 20},
}

// kernelTable is one GPU's tables. The thinned ones lie in a folder of their own
// and spell some columns differently.
type kernelTable struct {
	gpu, system, version string
	thinned              bool
	l2Bytes              float64 // rows that this cache answers are no part of the fit; 0 = all are
}

func (k kernelTable) rows(t *testing.T, table string) []record {
	folder := "kernels/aic_"
	if k.thinned {
		folder = "kernels/moe/"
	}
	return sharedData(t, fmt.Sprintf("%s%s_%s_vllm%s.csv", folder, table, k.system, k.version))
}

// column returns how the tables spell a dtype.
func (k kernelTable) column(dtype string) string {
	if dtype == BF16 && !k.thinned {
		return "bfloat16"
	}
	return dtype
}

// gemmFromL2 tells whether the benchmark, which takes turns with six copies of the
// weights, reads them from the cache.
func (k kernelTable) gemmFromL2(weightBytes float64) bool { return 6*weightBytes <= k.l2Bytes }

// decodeFromL2 tells whether decode attention, repeated over the same KV, reads it
// from the cache, and enough of it to show beside the launch.
func (k kernelTable) decodeFromL2(kvBytes float64) bool {
	return kvBytes > k.l2Bytes/48 && kvBytes < 2*k.l2Bytes
}

// allReduces calls f with every measured all-reduce over tp GPUs.
func (k kernelTable) allReduces(t *testing.T, tp int, f func(bytes, seconds float64)) {
	file, size, elementBytes := "kernels/aic_comm.csv", "message_size", 2.0
	framework, version := "vllm", k.version
	if k.thinned {
		file, size, elementBytes, framework, version = "kernels/moe/comm_alltoall_l40s.csv", "message_bytes", 1, "vllm0.22.0", ""
	}
	for _, r := range sharedData(t, file) {
		bytes := elementBytes * r.num(t, size)
		if r["system"] == k.system && r["version"] == version && r["framework"] == framework && r["impl"] == "vllm_graph" &&
			r["num_gpus"] == fmt.Sprint(tp) && bytes >= 2048 && bytes <= 600e6 {
			f(bytes, r.num(t, "latency_ms")/1e3)
		}
	}
}

// gemmSamples are the table's matrix products of the shapes that models have.
func (k kernelTable) gemmSamples(t *testing.T, gpu GPU, dtype string) []sample {
	var samples []sample
	var out holdOut
	a := gpu.arithmetic(dtype)
	table := "gemm"
	rows := k.rows(t, table)
	if dtype == NVFP4 {
		rows = sharedData(t, "kernels/moe/gemm_b200_sxm_vllm0.24.0.csv")
	}
	for _, r := range rows {
		m, n, kk := r.num(t, "m"), r.num(t, "n"), r.num(t, "k")
		odd := m > 8 && math.Mod(m, 8) != 0 && k.system != "a100_sxm"
		if r["dtype"] != k.column(dtype) || n < 1024 || kk < 1024 || n*kk < 4e6 || n >= 65536 || m > 16384 || odd {
			continue
		}
		samples = append(samples, sample{
			seconds: r.num(t, "latency_ms") / 1e3,
			held:    out.held("%v %v", n, kk),
			use:     !k.gemmFromL2(n * kk * dtypeBytes(dtype)),
			predicted: func(c any) float64 {
				kernel := newGEMM(c.(GEMM), gpu, a, dtype, false)
				return kernel.seconds(m, n, kk, 1)
			},
		})
	}
	return samples
}

func (k kernelTable) attention(r record, t *testing.T, gpu GPU, dtype string) (kernel func(c any) attentionKernel, ok bool) {
	heads, kv := int(r.num(t, "heads")), int(r.num(t, "kv_heads"))
	kernel = func(c any) attentionKernel { return newAttention(c.(Attention), gpu, heads, kv, 128, dtype) }
	return kernel, r["kv_dtype"] == k.column(dtype) && r["head_dim"] == "128" && heads != kv && (r["window"] == "" || r["window"] == "0")
}

// prefillSamples are prompts of at least 16 tokens.
func (k kernelTable) prefillSamples(t *testing.T, gpu GPU, dtype string) []sample {
	var samples []sample
	var out holdOut
	for _, r := range k.rows(t, "context_attn") {
		kernel, ok := k.attention(r, t, gpu, dtype)
		b, n := r.num(t, "batch"), r.num(t, "isl")
		if !ok || n < 16 {
			continue
		}
		samples = append(samples, sample{
			seconds: r.num(t, "latency_ms") / 1e3, use: true,
			held:      out.held("%v", len(samples)),
			predicted: func(c any) float64 { a := kernel(c); return a.prefillSeconds(b*n*n/2, b*n, 1) },
		})
	}
	return samples
}

// decodeSamples are rows with a context of at least 64.
func (k kernelTable) decodeSamples(t *testing.T, gpu GPU, dtype string) []sample {
	var samples []sample
	var out holdOut
	for _, r := range k.rows(t, "generation_attn") {
		kernel, ok := k.attention(r, t, gpu, dtype)
		b, ctx := r.num(t, "batch"), r.num(t, "isl")+r.num(t, "step")
		if !ok || ctx < 64 {
			continue
		}
		samples = append(samples, sample{
			seconds:   r.num(t, "latency_ms") / 1e3,
			use:       !k.decodeFromL2(b * ctx * 2 * r.num(t, "kv_heads") * 128 * dtypeBytes(dtype)),
			held:      out.held("%v", len(samples)),
			predicted: func(c any) float64 { a := kernel(c); return a.decodeSeconds(b*ctx, b) },
		})
	}
	return samples
}

// matchesFit fails unless the error on the shapes left out of the fit is the one
// that the catalogue states, up to its rounding, and no worse than the bar (0 =
// none): then code and coefficients are those of the fit.
func matchesFit(t *testing.T, what string, held, all fitErrors, statedPct, barPct float64) {
	t.Helper()
	got := held.mapePct()
	t.Logf("%s: mean error %.2f %% on %d left-out points, %.2f %% on all %d (catalogue: %.1f %%)", what, got, len(held), all.mapePct(), len(all), statedPct)
	if math.Abs(got-statedPct) > 0.07 {
		t.Errorf("%s: mean error %.2f %%, the catalogue says %.1f %%", what, got, statedPct)
	}
	if barPct > 0 && got > barPct {
		t.Errorf("%s: mean error %.2f %%, the bar is %.1f %%", what, got, barPct)
	}
}

// bars are the errors that the kernels of an H100 must keep on left-out shapes.
var bars = map[string]float64{"gemm bf16": 6, "gemm fp8": 9, "prefill bf16": 8, "decode bf16": 10}

func barOf(gpu, kernel string) float64 {
	if gpu != "h100-sxm-80gb" {
		return 0
	}
	return bars[kernel]
}

func TestGEMMReproducesTheFitErrorOfItsKernelTable(t *testing.T) {
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		for _, dtype := range []string{BF16, FP8, NVFP4} {
			if c, ok := gpu.GEMM.of(dtype); ok {
				held, all := errorsOf(k.gemmSamples(t, gpu, dtype), c)
				matchesFit(t, k.gpu+" gemm "+dtype, held, all, c.MAPEPct, barOf(k.gpu, "gemm "+dtype))
			}
		}
	}
}

func TestAttentionReproducesTheFitErrorOfItsKernelTables(t *testing.T) {
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		for _, dtype := range []string{BF16, FP8} {
			c, ok := gpu.Attention.of(dtype)
			if !ok {
				continue
			}
			held, all := errorsOf(k.prefillSamples(t, gpu, dtype), c)
			matchesFit(t, k.gpu+" prefill attention "+dtype, held, all, c.PrefillMAPEPct, barOf(k.gpu, "prefill "+dtype))
			held, all = errorsOf(k.decodeSamples(t, gpu, dtype), c)
			matchesFit(t, k.gpu+" decode attention "+dtype, held, all, c.DecodeMAPEPct, barOf(k.gpu, "decode "+dtype))
		}
	}
}

func TestAllReduceReproducesTheErrorOfItsMeasuredTable(t *testing.T) {
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		for _, tp := range []int{2, 4, 8} {
			kernel := newAllReduce(gpu, tp)
			var e fitErrors
			k.allReduces(t, tp, func(bytes, seconds float64) { e.add(kernel.seconds(bytes), seconds) })
			matchesFit(t, fmt.Sprintf("%s all-reduce TP%d", k.gpu, tp), e, e, gpu.AllReduce.of(tp).MAPEPct, 0)
		}
	}
}

// TestALeftOutKnotOfTheAllReduceIsFoundByInterpolation: each inner size of the
// measured table in turn is predicted from the others.
func TestALeftOutKnotOfTheAllReduceIsFoundByInterpolation(t *testing.T) {
	for _, k := range kernelTables {
		var every fitErrors
		for _, tp := range []int{2, 4, 8} {
			var x, y []float64
			k.allReduces(t, tp, func(bytes, seconds float64) { x, y = append(x, math.Log(bytes)), append(y, math.Log(seconds)) })
			var e fitErrors
			for i := 1; i < len(x)-1; i++ {
				kernel := allReduceKernel{logBytes: slices.Concat(x[:i], x[i+1:]), logS: slices.Concat(y[:i], y[i+1:])}
				e.add(kernel.seconds(math.Exp(x[i])), math.Exp(y[i]))
			}
			t.Logf("%s TP%d: mean error %.1f %% over %d left-out sizes", k.gpu, tp, e.mapePct(), len(e))
			every = append(every, e...)
		}
		if k.gpu == "h100-sxm-80gb" && every.mapePct() > 8 {
			t.Errorf("%s: mean error %.1f %%, the bar is 8 %%", k.gpu, every.mapePct())
		}
	}
}

func TestExpertsAndLatentAttentionReproduceTheirFitErrors(t *testing.T) {
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		for _, dtype := range []string{BF16, FP8, MXFP4, NVFP4} {
			if c, ok := gpu.MoE.of(dtype); ok {
				held, all := errorsOf(k.moeSamples(t, gpu, dtype), c)
				matchesFit(t, k.gpu+" experts "+dtype, held, all, c.MAPEPct, 0)
			}
			if c, ok := gpu.MLA.of(dtype); ok && !c.borrowed() {
				held, all := errorsOf(k.mlaSamples(t, gpu, dtype, BF16, false), c)
				matchesFit(t, k.gpu+" latent attention, decode "+dtype, held, all, c.DecodeMAPEPct, 0)
				held, all = errorsOf(k.mlaSamples(t, gpu, dtype, BF16, true), c)
				matchesFit(t, k.gpu+" latent attention, prefill "+dtype, held, all, c.PrefillMAPEPct, 0)
			}
		}
	}
}

// TestBridgedPairsAndNetworkAreNearVidurs: all-reduces over hosts whose GPUs are
// bridged in pairs, and messages between two hosts, above a megabyte; below, NCCL's
// times are bistable in these profiles.
func TestBridgedPairsAndNetworkAreNearVidurs(t *testing.T) {
	far := deployment(t, "llama-3.1-8b", "h100", 8)
	far.PP = 2
	near := far
	near.TP, near.PP = 4, 2
	hop := func(d Deployment) func(float64) float64 { k := newHop(d); return k.seconds }
	ring := func(gpu string, tp int) func(float64) float64 {
		k := newAllReduce(mustGPU(t, gpu), tp)
		return k.seconds
	}
	for _, c := range []struct {
		topology, op     string
		workers, perNode string
		seconds          func(bytes float64) float64
		barPct           float64
	}{
		{"h100_pairwise_nvlink", "all_reduce", "2", "2", ring("h100-nvl", 2), 25},
		{"h100_pairwise_nvlink", "all_reduce", "4", "4", ring("h100-nvl", 4), 12},
		{"a100_pairwise_nvlink", "all_reduce", "4", "4", ring("a100-pcie", 4), 5},
		{"h100_dgx", "send_recv", "2", "1", hop(far), 6},
		{"h100_dgx", "send_recv", "2", "2", hop(near), 25},
	} {
		var e fitErrors
		for _, r := range sharedData(t, "kernels/vidur_collectives.csv") {
			bytes := r.num(t, "bytes")
			if r["topology"] == c.topology && r["op"] == c.op && r["num_workers"] == c.workers && r["devices_per_node"] == c.perNode && bytes >= 1<<20 {
				e.add(c.seconds(bytes), r.num(t, "time_ms")/1e3)
			}
		}
		t.Logf("%s %s over %s: mean error %.1f %%, median %+.1f %% over %d messages", c.topology, c.op, c.workers, e.mapePct(), e.medianPct(), len(e))
		if e.mapePct() > c.barPct {
			t.Errorf("%s %s over %s: mean error %.1f %%", c.topology, c.op, c.workers, e.mapePct())
		}
	}
}
