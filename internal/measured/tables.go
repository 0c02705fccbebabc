package measured

import (
	"fmt"
	"strings"
)

const ms = 1e-3

// nim reads NVIDIA NIM's documentation tables: closed loop, averages.
func (r *reader) nim(t *table) {
	for i := range t.rows {
		u := Setup{Model: t.text(i, "model"), GPU: t.text(i, "gpu"), Engine: "trtllm", Frontend: "nim", Version: t.text(i, "engine"), TP: max(1, t.whole(i, "tp")),
			Weights: dtype(t.text(i, "precision")), KV: "bf16", StaticScales: true, Utilization: 0.9}
		if u.Weights == "fp8" {
			u.KV = "fp8"
		}
		isl, osl, c := t.whole(i, "isl"), t.whole(i, "osl"), t.whole(i, "concurrency")
		run := Run{Name: fmt.Sprintf("%s TP%d %d/%d C%d", u.Model, u.TP, isl, osl, c), Line: t.line(i), Setup: u}
		run.Group = fmt.Sprintf("NIM %s %s on %s TP%d", u.Model, u.Weights, u.GPU, u.TP)
		if isl < 1 || osl < 1 || c < 1 {
			run.Reject = "isl, osl or concurrency is missing"
			r.add(run)
			continue
		}
		closedLoop(&run, run.Name, max(20, nimRounds*c), c, isl, osl, 1)
		for _, m := range []struct {
			metric, column string
			unit           float64
		}{{TTFTMean, "ttft_ms_avg", ms}, {TPOTMean, "itl_ms_avg", ms}, {TokenRate, "output_tok_s", 1}} {
			if v, ok := t.number(i, m.column); ok {
				run.Figures = append(run.Figures, Figure{Metric: m.metric, Value: v * m.unit})
			}
		}
		r.add(run)
	}
}

// nimRounds is how many requests each client slot sends. It is not published; the
// mean TTFT beyond the KV limit, a mix of the first burst's wait and the steady
// one, gives 4.7.
const nimRounds = 5

// mlenergy reads steady batches: ITL quantiles over all tokens.
func (r *reader) mlenergy(t *table) {
	for i := range t.rows {
		batch := t.whole(i, "max_num_seqs")
		u := Setup{Model: t.text(i, "model_id"), GPU: t.text(i, "gpu_model"), Engine: "vllm", Version: "0.11.1", TP: max(1, t.whole(i, "tensor_parallel")),
			DP: t.whole(i, "data_parallel"), EP: t.whole(i, "expert_parallel"), Weights: dtype(t.text(i, "weight_precision")), KV: "bf16", MaxSeqs: batch, Utilization: 0.9, Sampled: true}
		task := t.text(i, "task")
		gpus := max(1, t.whole(i, "num_gpus"))
		if u.TP*max(1, u.DP) < gpus { // experts are dealt out, attention is split
			u.TP = gpus / max(1, u.DP)
		}
		run := Run{Name: fmt.Sprintf("%s %s %s %d GPU batch %d", task, u.Model, u.Weights, gpus, batch), Line: t.line(i), Setup: u}
		run.Group = fmt.Sprintf("vllm %s %s on %s, %d GPU", u.Model, u.Weights, u.GPU, gpus)
		output, _ := t.number(i, "avg_output_len")
		prompt, known := energyPrompts[task]
		switch {
		case batch < 1 || output < 1:
			run.Reject = "max_num_seqs or avg_output_len is missing"
		case !known:
			run.Reject = fmt.Sprintf("the prompts of task %q are not published", task)
		default:
			run.Notes = append(run.Notes, fmt.Sprintf("prompts are not published: mean %g tokens assumed", prompt))
			steadyLoad(&run, run.Name, max(3*batch, 64), batch, prompt, output, 0.7)
		}
		for _, m := range []struct{ metric, column string }{{ITLP50, "median_itl_ms"}, {ITLP99, "p99_itl_ms"}} {
			if v, ok := t.number(i, m.column); ok {
				run.Figures = append(run.Figures, Figure{Metric: m.metric, Value: v * ms})
			}
		}
		r.add(run)
	}
}

// energyPrompts are mean prompt lengths by task, assumed: none is published with
// the data.
var energyPrompts = map[string]float64{"lm-arena-chat": 200, "gpqa": 250}

// trtllm reads saturation throughputs: all requests wait from the start.
func (r *reader) trtllm(t *table) {
	for i := range t.rows {
		u := Setup{Model: t.text(i, "model"), GPU: t.text(i, "gpu"), Engine: "trtllm", TP: parallel(t.text(i, "parallel"), "TP"), EP: parallel(t.text(i, "parallel"), "EP"),
			DP: parallel(t.text(i, "parallel"), "DP"), Weights: dtype(t.text(i, "precision")), KV: "fp8", StaticScales: true, Utilization: 0.9}
		isl, osl := t.whole(i, "isl"), t.whole(i, "osl")
		run := Run{Name: fmt.Sprintf("%s %s on %s %s %d/%d", u.Model, u.Weights, u.GPU, t.text(i, "parallel"), isl, osl), Line: t.line(i), Setup: u}
		run.Group = fmt.Sprintf("trtllm %s %s on %s %s", u.Model, u.Weights, u.GPU, t.text(i, "parallel"))
		if isl < 1 || osl < 1 {
			run.Reject = "isl or osl is missing"
		} else {
			closedLoop(&run, run.Name, queuedRequests, 0, isl, osl, 1)
			run.Notes = append(run.Notes, fmt.Sprintf("the number of requests is not published: %d", queuedRequests))
		}
		if v, ok := t.number(i, "total_out_tok_s"); ok {
			run.Figures = append(run.Figures, Figure{Metric: TokenRate, Value: v})
		}
		r.add(run)
	}
}

// queuedRequests is how many requests the throughput benchmark is assumed to
// queue; enough for several turns of the batch.
const queuedRequests = 3000

// parallel reads "TP4" or "TP8EP2": the number behind a key, 1 without TP.
func parallel(text, key string) int {
	_, rest, found := strings.Cut(strings.ToUpper(text), key)
	n := 0
	for _, c := range rest {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int(c-'0')
	}
	if !found && key == "TP" {
		return 1
	}
	return n
}

// mlperf reads MLPerf results. The prompts' lengths are not published, so there
// is nothing to replay.
func (r *reader) mlperf(t *table) {
	for i := range t.rows {
		if t.text(i, "scenario_dir") != "Server" {
			continue
		}
		run := Run{Name: fmt.Sprintf("%s %s %s", t.text(i, "submitter"), t.text(i, "system"), t.text(i, "benchmark")), Line: t.line(i)}
		run.Setup = Setup{Model: t.text(i, "benchmark"), GPU: t.text(i, "accelerator"), Engine: t.text(i, "framework")}
		run.Group = "MLPerf " + run.Setup.Model + " on " + run.Setup.GPU
		run.Reject = "prompt and output lengths, replicas and parallelism are not published"
		for _, m := range []struct{ metric, column string }{{TTFTP50, "ttft_p50_ms"}, {TTFTP99, "ttft_p99_ms"}, {TPOTP50, "tpot_p50_ms"}, {TPOTP99, "tpot_p99_ms"}} {
			if v, ok := t.number(i, m.column); ok {
				run.Figures = append(run.Figures, Figure{Metric: m.metric, Value: v * ms})
			}
		}
		r.add(run)
	}
}
