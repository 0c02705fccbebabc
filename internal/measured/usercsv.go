package measured

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"slosim/sim/rng"
)

// Columns of a plain CSV with one request per row. Times carry their unit in the
// column's name: arrival_s, ttft_ms, e2e_us.
var (
	arrivalNames = []string{"arrival", "arrived_at", "start", "start_time", "send", "timestamp", "request_start"}
	promptNames  = []string{"prompt_tokens", "input_tokens", "prompt", "prompt_len", "input_len", "input_length", "isl"}
	outputNames  = []string{"output_tokens", "generated_tokens", "completion_tokens", "output", "output_len", "output_length", "osl"}
	ttftNames    = []string{"ttft", "time_to_first_token", "first_token"}
	e2eNames     = []string{"e2e", "latency", "e2e_latency", "request_latency", "end_to_end", "e2el"}
	tpotNames    = []string{"tpot", "time_per_output_token", "itl", "inter_token_latency"}
)

// timeSuffixes are the units of a column's name, in seconds.
var timeSuffixes = []struct {
	suffix string
	unit   float64
}{{"_seconds", 1}, {"_sec", 1}, {"_ms", 1e-3}, {"_us", 1e-6}, {"_ns", 1e-9}, {"_s", 1}}

// column finds a column of times and its unit; a name without unit is reported.
func timeColumn(header, names []string) (name string, unit float64, err error) {
	for _, h := range header {
		low := strings.ToLower(h)
		for _, s := range timeSuffixes {
			if base, ok := strings.CutSuffix(low, s.suffix); ok && slices.Contains(names, base) {
				return h, s.unit, nil
			}
		}
		if slices.Contains(names, low) {
			err = fmt.Errorf("column %q has no unit; name it %s_s, %s_ms or %s_us", h, low, low, low)
		}
	}
	return "", 0, err
}

func countColumn(header, names []string) string {
	for _, h := range header {
		if slices.Contains(names, strings.ToLower(h)) {
			return h
		}
	}
	return ""
}

// readUserCSV reads a plain CSV of requests, or AIPerf's CSV of statistics.
func readUserCSV(path string) ([]Run, error) {
	t, err := readTable(path, path)
	if err != nil {
		return nil, err
	}
	if has(t.header, "Metric", "avg") {
		return readAIPerfCSV(t, path)
	}
	prompt, output := countColumn(t.header, promptNames), countColumn(t.header, outputNames)
	arrival, arrivalUnit, errA := timeColumn(t.header, arrivalNames)
	ttft, ttftUnit, errT := timeColumn(t.header, ttftNames)
	e2e, e2eUnit, errE := timeColumn(t.header, e2eNames)
	tpot, tpotUnit, errP := timeColumn(t.header, tpotNames)
	var missing []string
	for _, c := range []struct {
		have bool
		what string
		err  error
	}{
		{prompt != "", "prompt_tokens", nil}, {output != "", "output_tokens", nil}, {arrival != "", "arrival_s (or _ms, _us)", errA},
		{ttft != "", "ttft_ms (or _s, _us)", errT}, {e2e != "" || tpot != "", "e2e_ms or tpot_ms (or _s, _us)", first(errE, errP)},
	} {
		if !c.have {
			missing = append(missing, c.what)
			if c.err != nil {
				missing[len(missing)-1] += ": " + c.err.Error()
			}
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: missing columns: %s; the file has %s", path, strings.Join(missing, "; "), strings.Join(t.header, ", "))
	}
	run := Run{Name: stem(filepath.Base(path))}
	var starts []float64
	for i := range t.rows {
		q := Request{Prompt: t.whole(i, prompt), Output: t.whole(i, output)}
		at, ok := t.number(i, arrival)
		first, seen := t.number(i, ttft)
		q.TTFT = first * ttftUnit
		if e2e != "" {
			last, ended := t.number(i, e2e)
			q.E2E, seen = last*e2eUnit, seen && ended
		} else {
			gap, known := t.number(i, tpot)
			q.E2E, seen = q.TTFT+gap*tpotUnit*float64(q.Output-1), seen && known
		}
		q.Seen = seen
		if s := strings.ToLower(t.text(i, "status") + t.text(i, "error")); s != "" && s != "ok" && s != "0" && s != "success" && s != "false" {
			q.Failed = true
		}
		if !ok || q.Prompt < 1 || q.Output < 1 {
			t.fault(i, arrival, "the row has no arrival, or no tokens")
			continue
		}
		run.Load.Requests = append(run.Load.Requests, q)
		starts = append(starts, at*arrivalUnit)
	}
	if err := t.err(); err != nil {
		return nil, err
	}
	run.arrivals(starts, 0, false, 1, path)
	return []Run{run}, nil
}

func first(errs ...error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

// gammaArrivals draws send times at a rate and, as vllm bench serve does, scales
// them so that the last one lies at n/rate.
func gammaArrivals(r *Run, rate, burstiness float64) {
	gaps := rng.New(1, rng.Gap, r.Name)
	t := 0.0
	for i := range r.Load.Requests {
		t += rng.Gamma(gaps.Float64(int64(i)), burstiness) / rate
		r.Load.Requests[i].At = t
	}
	n := float64(len(r.Load.Requests))
	if t > 0 && !math.IsInf(t, 0) {
		for i := range r.Load.Requests {
			r.Load.Requests[i].At *= n / rate / t
		}
	}
}
