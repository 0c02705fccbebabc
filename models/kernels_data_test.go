package models

import (
	"fmt"
	"math"
	"testing"
)

// kernelTables names each GPU's measured tables.
var kernelTables = []struct{ gpu, system, version string }{
	{"a100-sxm-80gb", "a100_sxm", "0.14.0"},
	{"h100-sxm-80gb", "h100_sxm", "0.24.0"},
	{"h200-sxm-141gb", "h200_sxm", "0.24.0"},
	{"b200-sxm-180gb", "b200_sxm", "0.24.0"},
}

// matchesFit fails unless the error found here is the one that the catalogue
// states, up to its rounding: then code and coefficients are those of the fit.
func matchesFit(t *testing.T, what string, e fitErrors, statedPct float64) {
	t.Helper()
	got := e.mapePct()
	t.Logf("%s: MAPE %.2f %% over %d points (catalogue: %.1f %%)", what, got, len(e), statedPct)
	if math.Abs(got-statedPct) > 0.07 {
		t.Errorf("%s: MAPE %.2f %%, the catalogue says %.1f %%", what, got, statedPct)
	}
}

func TestGEMMReproducesTheFitErrorOfItsKernelTable(t *testing.T) {
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		rows := sharedData(t, fmt.Sprintf("kernels/aic_gemm_%s_vllm%s.csv", k.system, k.version))
		for _, d := range []struct {
			dtype, column string
			coefficients  GEMM
		}{{BF16, "bfloat16", gpu.GEMM.BF16}, {FP8, "fp8", gpu.GEMM.FP8}} {
			if d.coefficients == (GEMM{}) {
				continue
			}
			kernel := newGEMM(d.coefficients, gpu, d.dtype, false)
			var e fitErrors
			for _, r := range rows {
				m, n, kk := r.num(t, "m"), r.num(t, "n"), r.num(t, "k")
				odd := m > 8 && math.Mod(m, 8) != 0 && k.system != "a100_sxm"
				if r["dtype"] != d.column || n < 1024 || kk < 1024 || n*kk < 4e6 || n >= 65536 || m > 16384 || odd {
					continue
				}
				e.add(kernel.seconds(m, n, kk, 1), r.num(t, "latency_ms")/1e3)
			}
			matchesFit(t, k.gpu+" gemm "+d.dtype, e, d.coefficients.MAPEPct)
		}
	}
}

func TestAttentionReproducesTheFitErrorOfItsKernelTables(t *testing.T) {
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		prefill := sharedData(t, fmt.Sprintf("kernels/aic_context_attn_%s_vllm%s.csv", k.system, k.version))
		decode := sharedData(t, fmt.Sprintf("kernels/aic_generation_attn_%s_vllm%s.csv", k.system, k.version))
		for _, d := range []struct {
			dtype, column string
			c             Attention
		}{{BF16, "bfloat16", gpu.Attention.BF16}, {FP8, "fp8", gpu.Attention.FP8}} {
			if d.c == (Attention{}) {
				continue
			}
			kernelOf := func(r record) attentionKernel {
				heads, kv := int(r.num(t, "heads")), int(r.num(t, "kv_heads"))
				return newAttention(d.c, gpu, heads, kv, 128, d.dtype)
			}
			keep := func(r record) bool {
				return r["kv_dtype"] == d.column && r["head_dim"] == "128" && r["heads"] != r["kv_heads"]
			}
			var pe, de fitErrors
			for _, r := range prefill {
				if b, n := r.num(t, "batch"), r.num(t, "isl"); keep(r) && n >= 16 {
					a := kernelOf(r)
					pe.add(a.prefillSeconds(b*n*n/2, b*n, 1), r.num(t, "latency_ms")/1e3)
				}
			}
			for _, r := range decode {
				if b, ctx := r.num(t, "batch"), r.num(t, "isl")+r.num(t, "step"); keep(r) && ctx >= 64 {
					a := kernelOf(r)
					de.add(a.decodeSeconds(b*ctx, b), r.num(t, "latency_ms")/1e3)
				}
			}
			matchesFit(t, k.gpu+" prefill attention "+d.dtype, pe, d.c.PrefillMAPEPct)
			matchesFit(t, k.gpu+" decode attention "+d.dtype, de, d.c.DecodeMAPEPct)
		}
	}
}

func TestAllReduceReproducesTheErrorOfItsMeasuredTable(t *testing.T) {
	rows := sharedData(t, "kernels/aic_comm.csv")
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		for _, tp := range []int{2, 4, 8} {
			c := gpu.AllReduce.of(tp)
			kernel := newAllReduce(c, gpu.Common.AllReduceKnotBytes, tp)
			var e fitErrors
			for _, r := range rows {
				bytes := 2 * r.num(t, "message_size")
				if r["system"] == k.system && r["version"] == k.version && r["framework"] == "vllm" && r["impl"] == "vllm_graph" &&
					r["num_gpus"] == fmt.Sprint(tp) && bytes >= 2048 && bytes <= 600e6 {
					e.add(kernel.seconds(bytes), r.num(t, "latency_ms")/1e3)
				}
			}
			matchesFit(t, fmt.Sprintf("%s all-reduce TP%d", k.gpu, tp), e, c.MAPEPct)
		}
	}
}
