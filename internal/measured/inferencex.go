package measured

import (
	"fmt"
	"strings"
)

// inferencex reads one closed-loop run per row: central TTFT and TPOT.
func (r *reader) inferencex(t *table) {
	for i := range t.rows {
		run := Run{Name: t.text(i, "id"), Line: t.line(i)}
		if run.Name == "" {
			run.Name = fmt.Sprintf("row %d", t.line(i))
		}
		u := &run.Setup
		*u = Setup{Model: t.text(i, "model_path"), GPU: t.text(i, "system"), Engine: t.text(i, "backend"), Version: t.text(i, "backend_version"),
			TP: max(1, t.whole(i, "tp_size")), PP: t.whole(i, "pp_size"), DP: t.whole(i, "attention_dp_size"), EP: t.whole(i, "moe_ep_size"),
			Weights: weightsOf(t, i), MaxSeqs: t.whole(i, "concurrency"), StaticScales: t.text(i, "gemm_quant_mode") == "fp8"}
		inferencexParallel(u, t.whole(i, "moe_tp_size"))
		inferencexSetup(u)
		if t.text(i, "measured") == "" {
			generated(u, t.whole(i, "isl"))
		}
		u.Sampled = t.text(i, "measured") == "" && u.Engine == "vllm"
		if u.Sampled {
			run.Notes = append(run.Notes, sampledNote)
		}
		gpus := t.whole(i, "gpus")
		if per := u.TP * max(1, u.PP); u.DP <= 1 && u.EP <= 1 && gpus > per {
			u.Replicas = gpus / per
		}
		run.Group = fmt.Sprintf("%s %s %s on %s TP%d", u.Engine, u.Model, u.Weights, u.GPU, u.TP)
		isl, osl, c := t.whole(i, "isl"), t.whole(i, "osl"), t.whole(i, "concurrency")
		switch {
		case t.text(i, "mode") != "agg" && t.text(i, "mode") != "":
			run.Reject = "prefill and decode apart: the rows do not give the load per pool"
		case isl < 1 || osl < 1 || c < 1:
			run.Reject = "isl, osl or concurrency is missing"
		case gpus < 1:
			run.Reject = "the row does not say how many GPUs ran, nor the number format"
		case drafted(u, t.text(i, "measured")):
			run.Reject = "a run of InferenceX's MTP recipes (told from engine release and date): how many drafts were accepted is not published"
		default:
			closedLoop(&run, fmt.Sprintf("%d/%d/%d", isl, osl, c), 10*c, c, isl, osl, spreadOf(t, i))
		}
		if v, ok := t.number(i, "silicon_ttft_ms"); ok && v > 0 {
			run.Figures = append(run.Figures, Figure{Metric: TTFTMean, Value: v * ms})
		}
		if v, ok := t.number(i, "silicon_tpot_ms"); ok && v > 0 {
			run.Figures = append(run.Figures, Figure{Metric: TPOTMean, Value: v * ms})
		}
		r.add(run)
	}
}

// generated fills in what AIConfigurator's generator sets (trtllm.rule, vllm.rule)
// for NVIDIA's own runs, which carry no date: a step takes one prompt, hardly two.
func generated(u *Setup, isl int) {
	switch u.Engine {
	case "trtllm":
		u.MaxBatchedTokens = u.MaxSeqs + isl + 1500
	case "vllm":
		u.MaxBatchedTokens = max(512, u.MaxSeqs) + isl + 1500
	}
}

// inferencexParallel mends the parallel degrees of rows with attention split by
// requests: the table multiplies degrees that are one and the same. A row of
// "tp8, ep8, attention DP" has attention_dp_size 64 and moe_tp_size 8 in it, and
// stands there a second time with 8 and 1. Experts whose matrices are split over
// such a group instead are read as dealt out whole: each GPU reads as many weights.
func inferencexParallel(u *Setup, moeTP int) {
	if u.DP <= 1 && moeTP > 1 && moeTP == u.EP && u.TP == moeTP*u.EP {
		u.TP = moeTP
	}
	if u.DP <= 1 || u.TP != 1 {
		return
	}
	if moeTP > 1 && moeTP == u.EP && u.DP == moeTP*u.EP {
		u.DP = moeTP
	}
	u.EP = max(u.EP, u.DP)
}

// drafted tells whether a row is of InferenceX's MTP recipes, which the table
// does not mark. Its perf-changelog.yaml says with which images they ran:
// TensorRT-LLM 1.2.0rc6.post3 (changes 632 and 642; the plain recipes ran post2),
// and 1.1.0rc2.post2 on the day that brought them (change 392).
func drafted(u *Setup, measured string) bool {
	if u.Engine != "trtllm" || !strings.Contains(strings.ToLower(u.Model), "deepseek") {
		return false
	}
	return u.Version == "1.2.0rc6.post3" || u.Version == "1.1.0rc2.post2" && strings.HasPrefix(measured, "2026-01-14")
}

// sampledNote is said of vLLM runs whose clients leave sampling to the checkpoint.
const sampledNote = "vLLM runs of clients that leave sampling to the checkpoint: top-k and top-p by its generation config, a sort of the vocabulary per token; InferenceX's own rows are greedy"

// spreadOf returns the shortest length of a row's requests as a share of the
// stated one. InferenceX draws from [0.8 L, L]. NVIDIA's own runs, which carry no
// date, have nominally fixed lengths. Equal requests then end and come back
// together: SGLang, which stops decoding for prefill, keeps such groups (its rows'
// TTFT is that of whole bursts); where chunks of prompts run beside decoding they
// fall apart, for which a few percent of length stand here (assumption).
func spreadOf(t *table, i int) float64 {
	switch {
	case t.text(i, "measured") != "":
		return 0.8
	case t.text(i, "backend") == "sglang" || t.text(i, "backend") == "vllm":
		return 1
	}
	return 0.97
}

// weightsOf returns the weight format of a row: its GEMM mode, else its
// precision.
func weightsOf(t *table, i int) string {
	if mode := strings.TrimSuffix(strings.TrimSuffix(t.text(i, "gemm_quant_mode"), "_wo"), "_block"); mode != "" {
		return dtype(mode)
	}
	return dtype(t.text(i, "precision"))
}

// inferencexSetup fills in the published settings of the benchmark's recipes.
func inferencexSetup(u *Setup) {
	u.KV = "bf16"
	u.Utilization = 0.9
	checkpoint := strings.ToLower(u.Model)
	if u.Engine == "trtllm" && u.Weights != "bf16" || strings.HasPrefix(checkpoint, "nvidia/") && strings.Contains(checkpoint, "fp") {
		u.KV = "fp8" // TensorRT-LLM's recipes, and NVIDIA's checkpoints, quantise it
	}
	blackwell := strings.HasPrefix(u.GPU, "b200") || strings.HasPrefix(u.GPU, "gb200")
	if u.Engine == "trtllm" && !blackwell && strings.Contains(checkpoint, "gpt-oss") {
		u.KV = "bf16" // kv_cache_config: dtype: auto
	}
	if blackwell && (u.Engine == "sglang" || strings.Contains(checkpoint, "gpt-oss")) {
		u.KV = "fp8" // their B200 recipes set it
	}
	if u.Engine == "vllm" && strings.Contains(checkpoint, "gpt-oss") {
		u.ExpertKernel = expertKernelOf(u, blackwell)
	}
	switch {
	case u.Engine == "vllm":
		u.MaxBatchedTokens = 8192
	case u.Engine == "trtllm" && strings.Contains(checkpoint, "gpt-oss"):
		u.MaxBatchedTokens = 20000
	}
	if u.MaxBatchedTokens > 0 && u.MaxSeqs > u.MaxBatchedTokens {
		u.MaxBatchedTokens = u.MaxSeqs
	}
}

// expertKernelOf returns the kernel that InferenceX's gpt-oss recipes choose:
// VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8 on Blackwell, and VLLM_MXFP4_USE_MARLIN on
// Hopper since the image of vLLM 0.13 (perf-changelog.yaml, change 327).
func expertKernelOf(u *Setup, blackwell bool) string {
	var minor int
	fmt.Sscanf(strings.TrimPrefix(u.Version, "v"), "0.%d", &minor)
	switch {
	case blackwell:
		return "mxfp8"
	case minor >= 13 && (strings.HasPrefix(u.GPU, "h100") || strings.HasPrefix(u.GPU, "h200")):
		return "marlin"
	}
	return ""
}
