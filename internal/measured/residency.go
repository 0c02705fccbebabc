package measured

import "fmt"

const us = 1e-6

// residency reads a table with one request per row: Qwen3-14B on vLLM. Arrivals
// are the intended ones; send_lag_us is what the client's own cap added.
func (r *reader) residency(t *table) {
	run := Run{Name: stem(r.path), Setup: Setup{Engine: "vllm", TP: 1, PrefixCache: true}}
	r.residencySetup(&run)
	run.Load.InFlight = 256
	if n := run.Setup.MaxSeqs; n > 0 {
		run.Load.InFlight = n
	}
	for i := range t.rows {
		at, ok := t.number(i, "arrival_us")
		prompt, output := t.whole(i, "input_tokens"), t.whole(i, "output_tokens")
		if !ok || prompt < 1 || output < 1 {
			t.fault(i, "arrival_us", "no arrival or no tokens")
			continue
		}
		q := Request{At: at * us, Prompt: prompt, Output: output}
		lag, _ := t.number(i, "send_lag_us")
		ttft, seen := t.number(i, "ttft_us")
		e2e, ended := t.number(i, "e2e_us")
		q.Lag, q.TTFT, q.E2E = lag*us, ttft*us, e2e*us
		q.Seen = seen && ended
		q.Failed = t.text(i, "status") != "" && t.text(i, "status") != "ok"
		run.Load.Requests = append(run.Load.Requests, q)
	}
	run.order()
	run.fromRequests(0)
	run.rate()
	r.add(run)
}

// residencySetup takes the run's row of the settings, or what all of them were
// published to be.
func (r *reader) residencySetup(run *Run) {
	s := &run.Setup
	t, i := r.found("residency", run.Name)
	if i < 0 {
		*s = Setup{Model: "Qwen/Qwen3-14B", GPU: "H100-80GB", Engine: "vllm", Version: "0.23.0", TP: 1, Weights: "bf16", KV: "bf16",
			MaxSeqs: 256, MaxBatchedTokens: 8192, KVBlocks: 18038, BlockSize: 16, Utilization: 0.9, PrefixCache: true}
		run.Notes = append(run.Notes, "no row in a table of settings: as the data set describes itself (Qwen3-14B, H100, vLLM 0.23.0, 256 sequences, 8192 tokens, 18,038 blocks)")
		if t != nil && len(t.rows) > 0 { // the other runs' settings
			i = 0
		} else {
			run.group()
			return
		}
	}
	s.Model, s.GPU, s.Version = t.text(i, "model"), t.text(i, "gpu"), t.text(i, "vllm")
	s.TP = max(1, t.whole(i, "tp"))
	s.Weights = dtype(t.text(i, "dtype"))
	s.KV = "bf16"
	s.MaxSeqs, s.MaxBatchedTokens = t.whole(i, "max_num_seqs"), t.whole(i, "max_num_batched_tokens")
	s.KVBlocks, s.BlockSize = t.whole(i, "kv_blocks"), t.whole(i, "block_size")
	s.Pool = s.KVBlocks
	s.Utilization, _ = t.number(i, "gpu_memory_utilization")
	s.PrefixCache = t.text(i, "prefix_caching") != "0"
	run.group()
}

// group names the deployment.
func (r *Run) group() {
	s := &r.Setup
	r.Group = fmt.Sprintf("%s %s on %s TP%d", s.Engine, s.Model, s.GPU, s.TP)
}
