package models

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
)

// moeTables names the dtype column of each format's rows: fp8 checkpoints of
// experts are scaled by blocks, but on an L40S by tensors.
func (k kernelTable) moeColumn(dtype string) string {
	switch {
	case dtype == FP8 && k.system != "l40s":
		return "fp8_block"
	case dtype == MXFP4:
		return "w4a16_mxfp4"
	}
	return dtype
}

// moeSamples are the expert layers with balanced routing, and with that of a
// power law where all experts lie on one rank: there the straggler's load is no
// part of the row. Those of the slower of two kernels are left out.
func (k kernelTable) moeSamples(t *testing.T, gpu GPU, dtype string) []sample {
	var samples []sample
	var out holdOut
	a := gpu.arithmetic(dtype)
	if dtype == MXFP4 {
		a = arithmetic{BF16, gpu.peakBF16(), 2}
	}
	for _, r := range sharedData(t, fmt.Sprintf("kernels/moe/moe_%s_vllm%s.csv", k.system, k.version)) {
		tokens, tp, ep := r.num(t, "num_tokens"), int(r.num(t, "tp")), int(r.num(t, "ep"))
		if r["dtype"] != k.moeColumn(dtype) || r["distribution"] != "balanced" && ep > 1 || tp > 8 || ep > 16 {
			continue
		}
		hidden, inter := int(r.num(t, "hidden")), r.num(t, "inter")/float64(tp)
		experts, topK := int(r.num(t, "experts")), int(r.num(t, "topk"))
		samples = append(samples, sample{
			seconds: r.num(t, "latency_ms") / 1e3, use: true,
			held: out.held("%s %d %d", r["model"], tp, ep),
			predicted: func(c any) float64 {
				kernel := newMoEKernel(c.(MoEKernel), a, gpu, dtype, hidden, inter, experts, topK, ep)
				return kernel.seconds(tokens, 1)
			},
		})
	}
	return samples
}

// mlaSamples are whole attention blocks of DeepSeek-V3: decode or prefill.
func (k kernelTable) mlaSamples(t *testing.T, gpu GPU, dtype, kvDtype string, prefill bool) []sample {
	var samples []sample
	file, kernel := "generation", "FLASH_ATTN_MLA"
	switch {
	case prefill:
		file, kernel = "context", "FLASH_ATTN"
	case k.system == "b200_sxm":
		kernel = "FLASHINFER_MLA"
	case kvDtype == FP8:
		kernel = "FLASHMLA"
	}
	column := dtype
	if dtype == FP8 {
		column = "fp8_block"
	}
	for _, r := range sharedData(t, "kernels/moe/mla_module_"+file+".csv") {
		if r["system"] != k.system || r["kernel"] != kernel || r["kv_dtype"] != kvDtype || r["gemm_dtype"] != column {
			continue
		}
		d := deployment(t, "deepseek-v3", k.gpu, 128/int(r.num(t, "heads")))
		d.KVDtype = kvDtype
		a := gpu.arithmetic(dtype)
		b, n := r.num(t, "batch"), r.num(t, "isl")
		ctx := n + r.num(t, "step")
		if prefill && (n < 16 || b*n < 32) {
			continue
		}
		samples = append(samples, sample{
			seconds: r.num(t, "latency_ms") / 1e3, use: true,
			held: len(samples)%5 == 4,
			predicted: func(c any) float64 {
				kernel := newMLAKernel(c.(MLAKernel), a, d, dtype)
				if prefill {
					return kernel.prefillSeconds(b*n*n/2, b*n)
				}
				return kernel.decodeSeconds(b*ctx, b)
			},
		})
	}
	return samples
}

func TestMoEAndMLAFit(t *testing.T) {
	if !*fit {
		t.Skip("fits only with -fit")
	}
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		for _, dtype := range []string{BF16, FP8, MXFP4, NVFP4} {
			if c, ok := gpu.MoE.of(dtype); ok {
				s := k.moeSamples(t, gpu, dtype)
				c = fitted(s, MoEKernel{LaunchUs: 30, ComputeEff: 0.6, MemoryEff: 0.85, LocalBytes: 2, GroupBytes: 1})
				held, all := errorsOf(s, c)
				c.MAPEPct = held.mapePct()
				t.Logf("%s experts %s: left out %.2f %%, all %.2f %% of %d: %s", k.gpu, dtype, held.mapePct(), all.mapePct(), len(all), entry(c))
				rewrite(t, k.gpu, "moe", dtype, entry(c))
			}
			c, ok := gpu.MLA.of(dtype)
			if !ok || c.borrowed() {
				continue
			}
			decode, prefill := k.mlaSamples(t, gpu, dtype, BF16, false), k.mlaSamples(t, gpu, dtype, BF16, true)
			start := MLAKernel{DecodeUs: 80, ComputeEff: 0.6, MemoryEff: 0.8, AttnEff: 0.9, KVEff: 0.8, SeqHeadPs: 4000}
			c = fitted(decode, start)
			p := fitted(prefill, MLAKernel{PrefillUs: 90, PrefillEff: 0.5, PrefillAttnEff: 0.9, TokenHeadPs: 100, MemoryEff: c.MemoryEff, ComputeEff: c.ComputeEff, AttnEff: c.AttnEff, KVEff: c.KVEff})
			c.PrefillUs, c.PrefillEff, c.PrefillAttnEff, c.TokenHeadPs = p.PrefillUs, p.PrefillEff, p.PrefillAttnEff, p.TokenHeadPs
			dh, _ := errorsOf(decode, c)
			ph, _ := errorsOf(prefill, c)
			c.DecodeMAPEPct, c.PrefillMAPEPct = dh.mapePct(), ph.mapePct()
			narrow := k.mlaSamples(t, gpu, dtype, FP8, false)
			c.KVEffFP8 = bestKVEff(narrow, c)
			nh, _ := errorsOf(narrow, c)
			t.Logf("%s latent attention %s: left out decode %.2f %%, prefill %.2f %%, decode with fp8 KV %.2f %%: %s", k.gpu, dtype, dh.mapePct(), ph.mapePct(), nh.mapePct(), entry(c))
			rewrite(t, k.gpu, "mla", dtype, entry(c))
		}
		for _, tp := range []int{2, 4, 8} {
			k.fitAllReduce(t, gpu, tp)
		}
	}
}

// bestKVEff searches the share of HBM peak on an FP8 latent.
func bestKVEff(samples []sample, c MLAKernel) float64 {
	best, bestErr := 0.0, math.Inf(1)
	for e := 0.3; e < 1.1; e += 0.01 {
		c.KVEffFP8 = e
		if _, all := errorsOf(samples, c); all.mapePct() < bestErr {
			best, bestErr = e, all.mapePct()
		}
	}
	return best
}

// fitAllReduce writes the measured times at the knots.
func (k kernelTable) fitAllReduce(t *testing.T, gpu GPU, tp int) {
	measured := map[int64]float64{}
	k.allReduces(t, tp, func(bytes, seconds float64) { measured[int64(bytes)] = seconds })
	var c AllReduce
	var knots []string
	for i, bytes := range gpu.Common.AllReduceKnotBytes {
		us, ok := measured[bytes]
		if !ok {
			t.Fatalf("%s TP%d: no row of %d bytes", k.gpu, tp, bytes)
		}
		c.KnotsUs[i] = us * 1e6
		knots = append(knots, strings.TrimSuffix(fmt.Sprintf("%.4g", us*1e6), ".0"))
	}
	kernel := newNodeAllReduce(c, gpu.Common.AllReduceKnotBytes, tp)
	var e fitErrors
	k.allReduces(t, tp, func(bytes, seconds float64) { e.add(kernel.seconds(bytes), seconds) })
	value := fmt.Sprintf("{ knots_us = [%s], mape_pct = %.1f }", strings.Join(knots, ", "), e.mapePct())
	t.Logf("%s all-reduce TP%d: %s", k.gpu, tp, value)
	text, err := os.ReadFile("gpus.toml")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?s)(name = "` + k.gpu + `".*?\[gpu\.all_reduce\]\n.*?)(tp` + fmt.Sprint(tp) + ` = )\{[^}]*\}`)
	if err := os.WriteFile("gpus.toml", line.ReplaceAll(text, []byte("${1}${2}"+value)), 0o644); err != nil {
		t.Fatal(err)
	}
}
