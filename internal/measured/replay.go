package measured

import (
	"fmt"
	"strconv"
	"strings"
)

// promptsInTurn is how many distinct prompts the replay16 client sends in turn.
const promptsInTurn = 100

// coldRequests are left out of comparison: the prefix cache fills.
const coldRequests = 200

// replay reads a table with one request per row of a run in stages, with few
// distinct prompts: vLLM 0.15.1 with a prefix cache.
func (r *reader) replay(t *table) {
	run := Run{Name: stem(r.path)}
	s, i := r.found("replay16", run.Name)
	if i < 0 {
		run.Reject = "no row in experiments.csv says how it was set up"
		run.Group = "replay16"
		r.add(run)
		return
	}
	output := replaySetup(&run, s, i)
	stages := stagesOf(s.text(i, "stage_rates"), s.text(i, "stage_durations_s"))
	usual := usualPrompts(t)
	failed := 0
	for k := range t.rows {
		at, ok := t.number(k, "arrival_us")
		if !ok {
			t.fault(k, "arrival_us", "no arrival")
			continue
		}
		q := Request{At: at * us, Output: output, Prompt: t.whole(k, "input_tokens")}
		id := t.whole(k, "index") % promptsInTurn
		if q.Prompt == usual[id] || q.Prompt == 0 {
			q.Prompt = usual[id]
			q.Content = uint64(id) + 1
		}
		if q.Prompt < 1 {
			continue
		}
		ttft, seen := t.number(k, "ttft_us")
		e2e, ended := t.number(k, "e2e_us")
		q.TTFT, q.E2E, q.Seen = ttft*us, e2e*us, seen && ended
		q.Failed = t.text(k, "error") != "0" && t.text(k, "error") != ""
		if q.Failed {
			failed++
		}
		q.Skip = k < coldRequests
		for _, st := range stages {
			if k >= st.first {
				q.Phase = st.index
			}
		}
		run.Load.Requests = append(run.Load.Requests, q)
	}
	run.order()
	for _, st := range stages {
		run.Phases = append(run.Phases, fmt.Sprintf("%g req/s", st.rate))
		run.fromRequests(st.index)
	}
	if n := len(run.Load.Requests); n > 0 && failed*10 > n {
		run.Reject = fmt.Sprintf("%d %% of the requests timed out at the client, which cancels them in the engine: cancellations are not modelled", 100*failed/n)
	}
	r.add(run)
}

// replaySetup fills in the deployment and returns the output length.
func replaySetup(run *Run, s *table, i int) int {
	u := &run.Setup
	u.Model, u.GPU, u.TP = s.text(i, "model"), s.text(i, "gpu"), max(1, s.whole(i, "tp"))
	u.Engine, u.Version = "vllm", s.text(i, "vllm_version")
	u.Weights, u.KV = dtype(s.text(i, "dtype")), "bf16"
	u.MaxSeqs, u.MaxBatchedTokens, u.MaxModelLen = s.whole(i, "max_num_seqs"), s.whole(i, "max_num_batched_tokens"), s.whole(i, "max_model_len")
	u.KVBlocks, u.BlockSize = s.whole(i, "kv_blocks_gpu"), s.whole(i, "block_size")
	u.Pool = u.KVBlocks
	u.Utilization = 0.9
	u.PrefixCache = true
	if u.Sampled = samples(u.Model); u.Sampled {
		run.Notes = append(run.Notes, sampledNote)
	}
	run.group()
	return max(1, s.whole(i, "output_len"))
}

// stage is a span of constant rate.
type stage struct {
	index, first    int // first: number of its first request
	rate, durationS float64
}

func stagesOf(rates, durations string) []stage {
	var out []stage
	ds := strings.Split(durations, ";")
	first := 0.0
	for i, text := range strings.Split(rates, ";") {
		rate, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || i >= len(ds) {
			break
		}
		d, err := strconv.ParseFloat(strings.TrimSpace(ds[i]), 64)
		if err != nil {
			break
		}
		out = append(out, stage{index: i, first: int(first + 0.5), rate: rate, durationS: d})
		first += rate * d
	}
	if len(out) == 0 {
		out = []stage{{}}
	}
	return out
}

// usualPrompts returns the most frequent length of each prompt: a request whose
// length differs was another prompt.
func usualPrompts(t *table) [promptsInTurn]int {
	var counts [promptsInTurn]map[int]int
	var usual [promptsInTurn]int
	for k := range t.rows {
		id, n := t.whole(k, "index")%promptsInTurn, t.whole(k, "input_tokens")
		if n < 1 {
			continue
		}
		if counts[id] == nil {
			counts[id] = map[int]int{}
		}
		counts[id][n]++
		if c := counts[id]; usual[id] == 0 || c[n] > c[usual[id]] || c[n] == c[usual[id]] && n < usual[id] {
			usual[id] = n
		}
	}
	return usual
}

// sim2real reads aggregates of further runs of the same kind; the arrivals are
// known only as the profile's rates.
func (r *reader) sim2real(t *table) {
	settings := r.setup["replay16"]
	for i := range t.rows {
		name, stageName := t.text(i, "experiment"), t.text(i, "stage")
		if stageName == "summary" || strings.Contains(name, "#") || r.hasRequests(name) {
			continue
		}
		run := Run{Name: name + " stage " + stageName, Line: t.line(i)}
		u := &run.Setup
		*u = Setup{Model: t.text(i, "model"), GPU: t.text(i, "gpu"), TP: max(1, t.whole(i, "tp")), DP: t.whole(i, "dp"), Engine: "vllm", Version: "0.15.1",
			Weights: dtype(t.text(i, "precision")), KV: "bf16", MaxSeqs: 128, MaxBatchedTokens: t.whole(i, "max_num_batched_tokens"), MaxModelLen: 4096,
			Utilization: 0.9, PrefixCache: true, BlockSize: 16}
		if v, ok := t.number(i, "gpu_memory_utilization"); ok {
			u.Utilization = v
		}
		run.group()
		if strings.Contains(name, "-lite") && !strings.HasSuffix(t.text(i, "workload"), "-lite") {
			run.Reject = "its name says that it ran a lite profile, whose rates are not published in experiments.csv"
		} else {
			r.sim2realLoad(&run, settings, t.text(i, "workload"), stageName)
		}
		if u.Sampled = samples(u.Model); u.Sampled {
			run.Notes = append(run.Notes, sampledNote)
		}
		if t.text(i, "cpu_offload") == "True" {
			run.Notes = append(run.Notes, "ran with CPU offload of the KV cache, which is not simulated")
		}
		ttft, _ := t.number(i, "ttft_mean_ms")
		if e2e, ok := t.number(i, "e2e_mean_ms"); ok && run.Reject == "" {
			output := run.Load.Requests[0].Output
			run.Figures = append(run.Figures, Figure{Metric: TPOTMean, Value: (e2e - ttft) / float64(max(1, output-1)) / 1000})
			last := run.Load.Requests[len(run.Load.Requests)-1]
			run.Full = float64(len(run.Load.Requests))/last.At*e2e/1000 >= float64(u.MaxSeqs)
			run.Notes = append(run.Notes, "time per token = (end − first token)/(output − 1) of the profile's output: the tables' own counts the client's re-tokenised text")
		}
		for _, m := range []struct{ metric, column string }{{TTFTMean, "ttft_mean_ms"}, {TTFTP90, "ttft_p90_ms"}, {TTFTP99, "ttft_p99_ms"},
			{E2EMean, "e2e_mean_ms"}, {E2EP90, "e2e_p90_ms"}, {E2EP99, "e2e_p99_ms"}} {
			if v, ok := t.number(i, m.column); ok {
				run.Figures = append(run.Figures, Figure{Metric: m.metric, Value: v / 1000})
			}
		}
		r.add(run)
	}
}

// hasRequests tells whether a run's requests are known one by one.
func (r *reader) hasRequests(name string) bool {
	for i := range r.out.Runs {
		if r.out.Runs[i].Name == name {
			return true
		}
	}
	return false
}

// sim2realLoad draws Poisson arrivals at the rate that the settings give for the
// profile; runs of other profiles are rejected.
func (r *reader) sim2realLoad(run *Run, s *table, profile, stageName string) {
	at, err := strconv.Atoi(stageName)
	for i := 0; s != nil && err == nil && i < len(s.rows); i++ {
		stages := stagesOf(s.text(i, "stage_rates"), s.text(i, "stage_durations_s"))
		if s.text(i, "profile") != profile || at >= len(stages) {
			continue
		}
		st := stages[at]
		prompt := s.whole(i, "system_prompt_len") + s.whole(i, "question_len")
		run.Notes = append(run.Notes, fmt.Sprintf("arrivals are not published: Poisson at the profile's %g req/s, prompts of %d tokens", st.rate, prompt))
		poisson(run, run.Name, st.rate, st.durationS, prompt, s.whole(i, "output_len"))
		if at > 0 { // the cache is warm
			run.Notes = append(run.Notes, "earlier stages are not replayed")
		}
		return
	}
	run.Reject = fmt.Sprintf("the rates of profile %q are not published in experiments.csv", profile)
}

// samples tells whether vLLM draws a checkpoint's tokens by top-p unless the client
// says otherwise: those of Llama 3 and Qwen 3 have it in generation_config.json.
func samples(model string) bool {
	model = strings.ToLower(model)
	return strings.Contains(model, "llama-3") || strings.Contains(model, "qwen3")
}
