package workloads

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"slosim/sim/clock"
)

// mooncakeDecoder reads the JSON lines of the Mooncake traces (FAST'25 release):
// timestamp in ms, input_length and output_length in tokens, and hash_ids, one
// per 512-token block of the prompt; equal ids mean equal content up to there.
type mooncakeDecoder struct {
	lines *lines
	spec  *Trace
	row   mooncakeRow
}

type mooncakeRow struct {
	At     json.Number `json:"timestamp"`
	Prompt json.Number `json:"input_length"`
	Output json.Number `json:"output_length"`
	IDs    []uint64    `json:"hash_ids"`
}

func openMooncake(spec Trace, f *traceFile) (decoder, error) {
	return &mooncakeDecoder{lines: newLines(f), spec: &spec}, nil
}

func (d *mooncakeDecoder) line() int { return d.lines.n }

func (d *mooncakeDecoder) decode(r *record) error {
	if err := d.lines.next(); err != nil {
		return err
	}
	row := &d.row
	*row = mooncakeRow{IDs: row.IDs[:0]}
	if err := json.Unmarshal(d.lines.text, row); err != nil {
		return badJSON(err)
	}
	err := fill(r, d.spec.Unit, [3]string{"timestamp", "input_length", "output_length"}, [3]json.Number{row.At, row.Prompt, row.Output})
	r.ids = row.IDs
	return err
}

// fill sets a record from the three numbers of a JSON object.
func fill(r *record, unit clock.Duration, names [3]string, values [3]json.Number) error {
	for i, v := range values {
		if v == "" {
			return badf("no %q; expected are %s", names[i], strings.Join(names[:], ", "))
		}
	}
	var err error
	if r.at, err = decimalTime([]byte(values[0]), unit); err != nil {
		return err
	}
	if r.prompt, err = tokenCount([]byte(values[1]), "prompt"); err != nil {
		return err
	}
	r.output, err = tokenCount([]byte(values[2]), "output")
	return err
}

// badJSON words a JSON error for a person.
func badJSON(err error) error {
	if err == io.ErrUnexpectedEOF || err.Error() == "unexpected end of JSON input" {
		return badf("the JSON object ends in the middle")
	}
	return badf("not the JSON that is expected: %v", err)
}

// pathDecoder reads JSON lines whose numbers lie at dotted paths.
type pathDecoder struct {
	lines *lines
	spec  *Trace
	unit  clock.Duration
	paths [3]string
	skip  func(object map[string]any) error // errOther = no row of the trace
}

// errOther marks an object that is no row of the trace.
var errOther = fmt.Errorf("another kind of object")

func openJSONL(spec Trace, f *traceFile) (decoder, error) {
	return &pathDecoder{lines: newLines(f), spec: &spec, unit: spec.Unit, paths: [3]string{spec.Arrival, spec.Prompt, spec.Output}}, nil
}

// openAIPerf reads AIPerf's profile_export.jsonl: one object per request, written
// as they end. Warm-up requests are no part of the trace.
func openAIPerf(spec Trace, f *traceFile) (decoder, error) {
	d := &pathDecoder{lines: newLines(f), spec: &spec, unit: clock.Nanosecond,
		paths: [3]string{"metadata.request_start_ns", "metrics.input_sequence_length.value", "metrics.output_sequence_length.value"}}
	d.skip = func(object map[string]any) error {
		if phase, _ := at(object, "metadata.benchmark_phase").(string); phase != "" && phase != "profiling" {
			return errOther
		}
		if object["error"] != nil {
			return badf("a failed request: its output is not known")
		}
		return nil
	}
	return &sorted{in: d}, nil
}

func (d *pathDecoder) line() int { return d.lines.n }

func (d *pathDecoder) decode(r *record) error {
	for {
		if err := d.lines.next(); err != nil {
			return err
		}
		object := map[string]any{}
		dec := json.NewDecoder(strings.NewReader(string(d.lines.text)))
		dec.UseNumber()
		if err := dec.Decode(&object); err != nil {
			return badJSON(err)
		}
		if w := &d.spec.Where; w.Column != "" {
			v := at(object, w.Column)
			if v == nil {
				return badf("no %q, by which rows are chosen", w.Column)
			}
			if fmt.Sprint(v) != w.Is {
				continue
			}
		}
		if d.skip != nil {
			if err := d.skip(object); err == errOther {
				continue
			} else if err != nil {
				return err
			}
		}
		var values [3]json.Number
		for i, path := range d.paths {
			switch v := at(object, path).(type) {
			case json.Number:
				values[i] = v
			case string:
				values[i] = json.Number(v)
			}
		}
		return fill(r, d.unit, d.paths, values)
	}
}

// at returns what lies at a dotted path of an object, or nil.
func at(object map[string]any, path string) any {
	head, rest, deeper := strings.Cut(path, ".")
	v := object[head]
	if !deeper {
		return v
	}
	if inner, ok := v.(map[string]any); ok {
		return at(inner, rest)
	}
	return object[path] // a key with a point in its name
}
