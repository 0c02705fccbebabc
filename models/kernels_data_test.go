package models

import (
	"fmt"
	"math"
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

// matchesFit fails unless the error of the fitted rows found here is the one that
// the catalogue states, up to its rounding: then code and coefficients are those of
// the fit.
func matchesFit(t *testing.T, what string, fitted, all fitErrors, statedPct float64) {
	t.Helper()
	got := fitted.mapePct()
	t.Logf("%s: MAPE %.2f %% over %d points (catalogue: %.1f %%)", what, got, len(fitted), statedPct)
	if len(all) > len(fitted) {
		t.Logf("%s: %.2f %% over all %d points", what, all.mapePct(), len(all))
	}
	if math.Abs(got-statedPct) > 0.07 {
		t.Errorf("%s: MAPE %.2f %%, the catalogue says %.1f %%", what, got, statedPct)
	}
}

func TestGEMMReproducesTheFitErrorOfItsKernelTable(t *testing.T) {
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		rows := k.rows(t, "gemm")
		for _, d := range []struct {
			dtype        string
			coefficients GEMM
		}{{BF16, gpu.GEMM.BF16}, {FP8, gpu.GEMM.FP8}} {
			if d.coefficients == (GEMM{}) {
				continue
			}
			kernel := newGEMM(d.coefficients, gpu, gpu.arithmetic(d.dtype), d.dtype, false)
			var e, all fitErrors
			for _, r := range rows {
				m, n, kk := r.num(t, "m"), r.num(t, "n"), r.num(t, "k")
				odd := m > 8 && math.Mod(m, 8) != 0 && k.system != "a100_sxm"
				if r["dtype"] != k.column(d.dtype) || n < 1024 || kk < 1024 || n*kk < 4e6 || n >= 65536 || m > 16384 || odd {
					continue
				}
				all.add(kernel.seconds(m, n, kk, 1), r.num(t, "latency_ms")/1e3)
				if !k.gemmFromL2(n * kk * dtypeBytes(d.dtype)) {
					e = append(e, all[len(all)-1])
				}
			}
			matchesFit(t, k.gpu+" gemm "+d.dtype, e, all, d.coefficients.MAPEPct)
		}
	}
}

func TestAttentionReproducesTheFitErrorOfItsKernelTables(t *testing.T) {
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		prefill, decode := k.rows(t, "context_attn"), k.rows(t, "generation_attn")
		for _, d := range []struct {
			dtype string
			c     Attention
		}{{BF16, gpu.Attention.BF16}, {FP8, gpu.Attention.FP8}} {
			if d.c == (Attention{}) {
				continue
			}
			kernelOf := func(r record) attentionKernel {
				heads, kv := int(r.num(t, "heads")), int(r.num(t, "kv_heads"))
				return newAttention(d.c, gpu, heads, kv, 128, d.dtype)
			}
			keep := func(r record) bool {
				return r["kv_dtype"] == k.column(d.dtype) && r["head_dim"] == "128" && r["heads"] != r["kv_heads"]
			}
			var pe, de, all fitErrors
			for _, r := range prefill {
				if b, n := r.num(t, "batch"), r.num(t, "isl"); keep(r) && n >= 16 {
					a := kernelOf(r)
					pe.add(a.prefillSeconds(b*n*n/2, b*n, 1), r.num(t, "latency_ms")/1e3)
				}
			}
			for _, r := range decode {
				if b, ctx := r.num(t, "batch"), r.num(t, "isl")+r.num(t, "step"); keep(r) && ctx >= 64 {
					a := kernelOf(r)
					all.add(a.decodeSeconds(b*ctx, b), r.num(t, "latency_ms")/1e3)
					if !k.decodeFromL2(b * ctx * 2 * r.num(t, "kv_heads") * 128 * dtypeBytes(d.dtype)) {
						de = append(de, all[len(all)-1])
					}
				}
			}
			matchesFit(t, k.gpu+" prefill attention "+d.dtype, pe, pe, d.c.PrefillMAPEPct)
			matchesFit(t, k.gpu+" decode attention "+d.dtype, de, all, d.c.DecodeMAPEPct)
		}
	}
}

func TestAllReduceReproducesTheErrorOfItsMeasuredTable(t *testing.T) {
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		for _, tp := range []int{2, 4, 8} {
			c := gpu.AllReduce.of(tp)
			kernel := newAllReduce(gpu, tp)
			var e fitErrors
			k.allReduces(t, tp, func(bytes, seconds float64) { e.add(kernel.seconds(bytes), seconds) })
			matchesFit(t, fmt.Sprintf("%s all-reduce TP%d", k.gpu, tp), e, e, c.MAPEPct)
		}
	}
}
