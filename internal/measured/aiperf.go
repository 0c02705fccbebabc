package measured

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// value is an AIPerf figure with its unit.
type value struct {
	Value json.Number `json:"value"`
	Unit  string      `json:"unit"`
}

// unitsOfTime are the units that results use, in seconds.
var unitsOfTime = map[string]float64{"s": 1, "sec": 1, "seconds": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

// readAIPerfRecords reads profile_export.jsonl: one request per line.
func readAIPerfRecords(lines []map[string]json.RawMessage, path string) ([]Run, error) {
	var run Run
	var starts []float64
	for i, v := range lines {
		meta, _ := nested(v, "metadata")
		metrics, ok := nested(v, "metrics")
		if !ok || v["error"] != nil && string(v["error"]) != "null" {
			continue
		}
		get := func(key string) (float64, error) {
			var x value
			if !field(metrics, key, &x) {
				return 0, fmt.Errorf("%s: record %d has no %s", path, i+1, key)
			}
			f, err := x.Value.Float64()
			if err != nil {
				return 0, fmt.Errorf("%s: record %d: %s is no number", path, i+1, key)
			}
			if x.Unit == "tokens" {
				return f, nil
			}
			unit, known := unitsOfTime[x.Unit]
			if !known {
				return 0, fmt.Errorf("%s: record %d: the unit %q of %s is not known; expected is s, ms, us or ns", path, i+1, x.Unit, key)
			}
			return f * unit, nil
		}
		var q Request
		var err error
		read := func(key string) float64 {
			f, e := get(key)
			if err == nil {
				err = e
			}
			return f
		}
		q.Prompt, q.Output = int(read("input_sequence_length")), int(read("output_sequence_length"))
		q.TTFT, q.E2E, q.Seen = read("time_to_first_token"), read("request_latency"), true
		if err != nil {
			return nil, err
		}
		start, ok := numberField(meta, "request_start_ns")
		if !ok {
			return nil, fmt.Errorf("%s: record %d has no metadata.request_start_ns", path, i+1)
		}
		run.Load.Requests = append(run.Load.Requests, q)
		starts = append(starts, start*1e-9)
	}
	run.arrivals(starts, 0, false, 1, path)
	return []Run{run}, nil
}

// statistics of a metric in AIPerf's summaries.
type statistics struct {
	Unit          string
	Avg, P50, P99 *float64
}

// summary of a run: what readAIPerfSummary and the CSV have in common.
type summary struct {
	ttft, itl, latency, input, output statistics
	requests, concurrency, rate       float64
}

func readAIPerfSummary(v map[string]json.RawMessage, path string) ([]Run, error) {
	var s summary
	field(v, "time_to_first_token", &s.ttft)
	field(v, "inter_token_latency", &s.itl)
	field(v, "request_latency", &s.latency)
	field(v, "input_sequence_length", &s.input)
	field(v, "output_sequence_length", &s.output)
	var count statistics
	if field(v, "request_count", &count) && count.Avg != nil {
		s.requests = *count.Avg
	}
	if config, ok := nested(v, "input_config"); ok {
		if load, ok := nested(config, "loadgen"); ok {
			s.concurrency, _ = numberField(load, "concurrency")
			s.rate, _ = numberField(load, "request_rate")
		}
	}
	return s.run(path)
}

// run makes a run with mean lengths from a summary.
func (s *summary) run(path string) ([]Run, error) {
	var missing []string
	need := func(name string, p *float64) float64 {
		if p == nil {
			missing = append(missing, name)
			return 0
		}
		return *p
	}
	input, output := need("input_sequence_length", s.input.Avg), need("output_sequence_length", s.output.Avg)
	if s.requests < leastRequests {
		missing = append(missing, fmt.Sprintf("request_count (at least %d)", leastRequests))
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: missing: %s", path, strings.Join(missing, "; "))
	}
	run := Run{Notes: []string{"a summary: every request has the mean lengths"}}
	run.Load.InFlight = int(s.concurrency)
	for range int(s.requests) {
		run.Load.Requests = append(run.Load.Requests, Request{Prompt: max(1, int(input+.5)), Output: max(1, int(output+.5))})
	}
	for _, m := range []struct {
		of    statistics
		names [3]string
	}{{s.ttft, [3]string{TTFTMean, TTFTP50, TTFTP99}}, {s.itl, [3]string{TPOTMean, TPOTP50, TPOTP99}}, {s.latency, [3]string{E2EMean, E2EP50, E2EP99}}} {
		unit, known := unitsOfTime[m.of.Unit]
		for k, p := range []*float64{m.of.Avg, m.of.P50, m.of.P99} {
			if p == nil {
				continue
			}
			if !known {
				return nil, fmt.Errorf("%s: the unit %q of %s is not known; expected is s, ms, us or ns", path, m.of.Unit, m.names[k])
			}
			run.Figures = append(run.Figures, Figure{Metric: m.names[k], Value: *p * unit})
		}
	}
	run.arrivals(nil, s.rate, s.rate > 0, 1, path)
	if run.NoLoad != nil {
		run.NoLoad = fmt.Errorf("%s: missing: concurrency or request_rate (AIPerf's CSV has neither: use its JSON, or profile_export.jsonl)", path)
	}
	return []Run{run}, nil
}

// aiperfMetric is a name with its unit in AIPerf's CSV.
var aiperfMetric = regexp.MustCompile(`^(.+?)(?: \((.+)\))?$`)

// readAIPerfCSV reads the statistics of profile_export_aiperf.csv.
func readAIPerfCSV(t *table, path string) ([]Run, error) {
	var s summary
	into := map[string]*statistics{"Time to First Token": &s.ttft, "Inter Token Latency": &s.itl, "Request Latency": &s.latency,
		"Input Sequence Length": &s.input, "Output Sequence Length": &s.output}
	for i := range t.rows {
		parts := aiperfMetric.FindStringSubmatch(t.text(i, "Metric"))
		if parts == nil {
			continue
		}
		if parts[1] == "Request Count" && len(t.rows[i]) > 1 {
			s.requests, _ = strconv.ParseFloat(strings.TrimSpace(t.rows[i][1]), 64)
		}
		st := into[parts[1]]
		if st == nil {
			continue
		}
		st.Unit = parts[2]
		for column, p := range map[string]**float64{"avg": &st.Avg, "p50": &st.P50, "p99": &st.P99} {
			if v, ok := t.number(i, column); ok {
				*p = &v
			}
		}
	}
	if err := t.err(); err != nil {
		return nil, err
	}
	return s.run(path)
}
