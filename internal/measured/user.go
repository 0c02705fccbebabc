package measured

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// leastRequests is how many answered requests a result needs to say anything.
const leastRequests = 10

// ReadFile reads the result of a benchmark client: `vllm bench serve` JSON,
// guidellm JSON (one run per benchmark), AIPerf JSON, JSONL or CSV, or a plain CSV
// with one request per row. The runs' Source is "user"; of the deployment they
// know at most the model. The error says what is missing.
func ReadFile(path string) ([]Run, error) {
	runs, err := ReadResult(path)
	for i := range runs {
		if runs[i].NoLoad != nil {
			return nil, runs[i].NoLoad
		}
		if note := runs[i].drawn; note != "" {
			runs[i].Notes = append(runs[i].Notes, note)
		}
	}
	return runs, err
}

// ReadResult is ReadFile for who only compares latencies: the load need not be known.
func ReadResult(path string) ([]Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, plain(err))
	}
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return nil, fmt.Errorf("%s: the file is empty", path)
	}
	var runs []Run
	if trimmed[0] == '{' || trimmed[0] == '[' {
		runs, err = readJSON(trimmed, path)
	} else {
		runs, err = readUserCSV(path)
	}
	if err != nil {
		return nil, err
	}
	for i := range runs {
		if err := runs[i].finish(path); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// readJSON tells the JSON formats apart by their keys.
func readJSON(text []byte, path string) ([]Run, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	var values []map[string]json.RawMessage
	for {
		var v map[string]json.RawMessage
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: no JSON object: %w", path, err)
		}
		values = append(values, v)
	}
	first := values[0]
	switch {
	case first["benchmarks"] != nil:
		return readGuidellm(first["benchmarks"], path)
	case first["metadata"] != nil && first["metrics"] != nil:
		return readAIPerfRecords(values, path)
	case first["time_to_first_token"] != nil || first["request_latency"] != nil:
		return readAIPerfSummary(first, path)
	case first["ttfts"] != nil || first["mean_ttft_ms"] != nil:
		var runs []Run
		for i, v := range values { // vllm appends results to one file
			run, err := readVLLMBench(v, path)
			if err != nil {
				return nil, err
			}
			if len(values) > 1 {
				run.Name = fmt.Sprintf("%s (%d)", run.Name, i+1)
			}
			runs = append(runs, run)
		}
		return runs, nil
	}
	return nil, fmt.Errorf("%s: no known result: expected are vllm bench serve (ttfts or mean_ttft_ms), guidellm (benchmarks), AIPerf (time_to_first_token, or lines with metadata and metrics)", path)
}

// field decodes a key into a value; a missing key leaves it alone.
func field(v map[string]json.RawMessage, key string, into any) bool {
	raw := v[key]
	return raw != nil && string(raw) != "null" && json.Unmarshal(raw, into) == nil
}

// number reads a key that is a number, or a text that is one ("inf").
func numberField(v map[string]json.RawMessage, key string) (float64, bool) {
	var f float64
	if field(v, key, &f) {
		return f, true
	}
	var s string
	if field(v, key, &s) && strings.EqualFold(s, "inf") {
		return math.Inf(1), true
	}
	return 0, false
}

// finish checks a run and computes the figures of its requests.
func (r *Run) finish(path string) error {
	r.Source, r.File = "user", path
	if r.Name == "" {
		r.Name = stem(filepath.Base(path))
	}
	if r.Group == "" {
		r.Group = r.Name
	}
	r.order()
	answered, impossible := 0, 0
	for _, q := range r.Load.Requests {
		if q.Seen && !q.Failed {
			answered++
			if q.E2E < q.TTFT || q.TTFT <= 0 {
				impossible++
			}
		}
	}
	if answered > 0 {
		if answered < leastRequests {
			return fmt.Errorf("%s: %d answered requests are too few to compare with; at least %d are needed", path, answered, leastRequests)
		}
		if impossible*50 > answered {
			return fmt.Errorf("%s: in %d of %d requests the end-to-end latency is shorter than TTFT: are their units mixed?", path, impossible, answered)
		}
		if err := r.checkUnits(path); err != nil {
			return err
		}
		r.fromRequests(0)
		r.rate()
	}
	if len(r.Figures) == 0 {
		return fmt.Errorf("%s: it holds no latencies", path)
	}
	if len(r.Load.Requests) == 0 {
		return fmt.Errorf("%s: it does not say what was sent: request lengths and the rate or concurrency are missing", path)
	}
	return nil
}

// unitGap is the jump between neighbouring latencies from which two units are the
// better explanation: seconds and milliseconds are 1,000 apart.
const unitGap = 50

// checkUnits reports latencies that fall into two heaps far apart.
func (r *Run) checkUnits(path string) error {
	var perToken []float64
	for _, q := range r.Load.Requests {
		if q.Seen && !q.Failed && q.Output > 0 {
			perToken = append(perToken, q.E2E/float64(q.Output))
		}
	}
	slices.Sort(perToken)
	n := len(perToken)
	for i := n / 20; i+1 < n-n/20; i++ {
		if perToken[i] > 0 && perToken[i+1]/perToken[i] > unitGap {
			return fmt.Errorf("%s: latencies per output token fall into two heaps, %d up to %.3g s and %d from %.3g s on: are their units mixed?", path, i+1, perToken[i], n-i-1, perToken[i+1])
		}
	}
	return nil
}

// readVLLMBench reads a result of `vllm bench serve --save-result`, with or without
// --save-detailed. Times are in seconds in the lists, in ms in the summary.
func readVLLMBench(v map[string]json.RawMessage, path string) (Run, error) {
	run := Run{Setup: Setup{Engine: "vllm"}}
	field(v, "model_id", &run.Setup.Model)
	rate, hasRate := numberField(v, "request_rate")
	limit, _ := numberField(v, "max_concurrency")
	run.Load.InFlight = int(limit)
	burstiness, ok := numberField(v, "burstiness")
	if !ok {
		burstiness = 1
	}
	var inputs, outputs []int
	var ttfts, starts []float64
	var itls [][]float64
	var errs []string
	field(v, "input_lens", &inputs)
	field(v, "output_lens", &outputs)
	field(v, "ttfts", &ttfts)
	field(v, "itls", &itls)
	field(v, "errors", &errs)
	field(v, "start_times", &starts)
	if len(ttfts) == 0 {
		return summarisedVLLM(run, v, path, rate, hasRate, burstiness)
	}
	if len(inputs) != len(ttfts) || len(outputs) != len(ttfts) || len(itls) != len(ttfts) {
		return run, fmt.Errorf("%s: input_lens (%d), output_lens (%d), ttfts (%d) and itls (%d) must be of one length; was it written with --save-detailed?", path, len(inputs), len(outputs), len(ttfts), len(itls))
	}
	for i := range ttfts {
		q := Request{Prompt: inputs[i], Output: max(1, outputs[i]), TTFT: ttfts[i], E2E: ttfts[i], Seen: true}
		for _, gap := range itls[i] {
			q.E2E += gap
		}
		q.Failed = i < len(errs) && errs[i] != "" || outputs[i] == 0 || ttfts[i] == 0
		run.Load.Requests = append(run.Load.Requests, q)
	}
	run.arrivals(starts, rate, hasRate, burstiness, path)
	return run, nil
}

// arrivals sets the send times: as recorded, or drawn at the rate.
func (r *Run) arrivals(starts []float64, rate float64, hasRate bool, burstiness float64, path string) {
	n := len(r.Load.Requests)
	switch {
	case len(starts) == n && n > 0:
		first := math.Inf(1)
		for _, s := range starts {
			first = min(first, s)
		}
		for i, s := range starts {
			r.Load.Requests[i].At = s - first
		}
		r.Load.InFlight = 0 // the real send times already hold the cap's effect
	case hasRate && !math.IsInf(rate, 0) && rate > 0:
		gammaArrivals(r, rate, burstiness)
		r.drawn = fmt.Sprintf("send times are not in the file: drawn at %g requests/s, burstiness %g", rate, burstiness)
	case r.Load.InFlight > 0 || math.IsInf(rate, 0):
		// all wait at the client from the start
	default:
		r.NoLoad = fmt.Errorf("%s: neither start_times nor request_rate nor max_concurrency: the load cannot be replayed", path)
	}
}

// summarisedVLLM takes a result without per-request lists.
func summarisedVLLM(run Run, v map[string]json.RawMessage, path string, rate float64, hasRate bool, burstiness float64) (Run, error) {
	var n, in, out float64
	field(v, "completed", &n)
	field(v, "total_input_tokens", &in)
	field(v, "total_output_tokens", &out)
	if n < leastRequests || in == 0 || out == 0 {
		return run, fmt.Errorf("%s: completed, total_input_tokens and total_output_tokens are needed, with at least %d requests", path, leastRequests)
	}
	for range int(n) {
		run.Load.Requests = append(run.Load.Requests, Request{Prompt: int(in/n + .5), Output: max(1, int(out/n+.5))})
	}
	run.Notes = append(run.Notes, "without --save-detailed: every request has the mean lengths")
	for _, m := range []struct{ key, metric string }{{"mean_ttft_ms", TTFTMean}, {"median_ttft_ms", TTFTP50}, {"p99_ttft_ms", TTFTP99}, {"mean_tpot_ms", TPOTMean},
		{"median_tpot_ms", TPOTP50}, {"p99_tpot_ms", TPOTP99}, {"mean_e2el_ms", E2EMean}, {"median_e2el_ms", E2EP50}, {"p99_e2el_ms", E2EP99}} {
		var f float64
		if field(v, m.key, &f) {
			run.Figures = append(run.Figures, Figure{Metric: m.metric, Value: f / 1000})
		}
	}
	run.arrivals(nil, rate, hasRate, burstiness, path)
	return run, nil
}

// readGuidellm reads guidellm's benchmarks. Its own TPOT includes TTFT, so only
// times of single requests are taken.
func readGuidellm(raw json.RawMessage, path string) ([]Run, error) {
	var benchmarks []struct {
		Requests struct {
			Successful []map[string]json.RawMessage `json:"successful"`
		} `json:"requests"`
	}
	if err := json.Unmarshal(raw, &benchmarks); err != nil {
		return nil, fmt.Errorf("%s: benchmarks are not as guidellm writes them: %w", path, err)
	}
	var runs []Run
	for k, b := range benchmarks {
		run := Run{Name: fmt.Sprintf("%s benchmark %d", stem(filepath.Base(path)), k+1)}
		var starts []float64
		for _, v := range b.Requests.Successful {
			if info, ok := nested(v, "info", "scheduler_info"); ok { // newer versions keep times there
				for key, value := range info {
					if v[key] == nil {
						v[key] = value
					}
				}
			}
			q, start, ok := guidellmRequest(v)
			if ok {
				run.Load.Requests = append(run.Load.Requests, q)
				starts = append(starts, start)
			}
		}
		if len(run.Load.Requests) == 0 {
			return nil, fmt.Errorf("%s: benchmark %d has no successful requests with request_start_time, time_to_first_token_ms, prompt_tokens and output_tokens; was it written without --output-extras requests?", path, k+1)
		}
		run.arrivals(starts, 0, false, 1, path)
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: it has no benchmarks", path)
	}
	return runs, nil
}

// nested returns the first of the keys that is an object.
func nested(v map[string]json.RawMessage, keys ...string) (map[string]json.RawMessage, bool) {
	for _, k := range keys {
		var inner map[string]json.RawMessage
		if field(v, k, &inner) {
			return inner, true
		}
	}
	return nil, false
}

func guidellmRequest(v map[string]json.RawMessage) (q Request, start float64, ok bool) {
	first := func(keys ...string) (float64, bool) {
		for _, k := range keys {
			if f, ok := numberField(v, k); ok {
				return f, true
			}
		}
		return 0, false
	}
	start, okStart := first("request_start_time", "request_start", "start_time")
	prompt, okPrompt := first("prompt_tokens", "input_tokens")
	output, okOutput := first("output_tokens", "generated_tokens")
	ttft, okTTFT := first("time_to_first_token_ms")
	end, okEnd := first("request_end_time", "request_end", "end_time")
	latency, okLatency := first("request_latency")
	if okEnd && !okLatency {
		latency, okLatency = end-start, true
	}
	q = Request{Prompt: int(prompt), Output: int(output), TTFT: ttft / 1000, E2E: latency, Seen: true}
	return q, start, okStart && okPrompt && okOutput && okTTFT && okLatency && prompt >= 1 && output >= 1
}
