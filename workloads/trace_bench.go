package workloads

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"slosim/sim/clock"
)

// vllmDecoder reads the result of "vllm bench serve --save-result
// --save-detailed": one JSON object with the arrays input_lens, output_lens and
// start_times (s). Each is read by a decoder of its own, side by side.
type vllmDecoder struct {
	arrays [3]*jsonArray // arrival, prompt, output
	n      int
}

var vllmArrays = [3]string{"start_times", "input_lens", "output_lens"}

func openVLLM(spec Trace, f *traceFile) (decoder, error) {
	d := &vllmDecoder{}
	for i, name := range vllmArrays {
		in := f
		if i > 0 {
			var err error
			if in, err = openFile(spec.File); err != nil {
				return nil, err
			}
			f.also = append(f.also, in)
		}
		d.arrays[i] = newJSONArray(in)
		if err := d.arrays[i].enter(name); err != nil {
			if errors.Is(err, errNoKey) {
				err = &TraceError{spec.File, 1, fmt.Sprintf("no %q: expected is a result of vllm bench serve with --save-result and --save-detailed", name)}
			}
			return nil, err
		}
	}
	return &sorted{in: d}, nil
}

func (d *vllmDecoder) line() int { return d.n }

func (d *vllmDecoder) decode(r *record) error {
	d.n++
	var values [3]json.Number
	ended := 0
	for i, a := range d.arrays {
		switch err := a.next(&values[i]); {
		case err == io.EOF:
			ended++
		case err != nil:
			return err
		}
	}
	switch {
	case ended == len(d.arrays):
		return io.EOF
	case ended > 0:
		return &TraceError{d.arrays[0].file.name, d.n, "start_times, input_lens and output_lens are not equally long"}
	}
	if values[2] == "0" {
		return badf("request %d failed: its output is not known", d.n)
	}
	return fill(r, clock.Second, vllmArrays, values)
}

// guideDecoder reads guidellm's JSON report: benchmarks[].requests.successful[].
type guideDecoder struct {
	array *jsonArray
	n     int
	open  bool
}

// guideRow has the names of guidellm's releases, new and old.
type guideRow struct {
	Info struct {
		Timings struct {
			Start json.Number `json:"request_start"`
		} `json:"timings"`
	} `json:"info"`
	Input struct {
		Tokens json.Number `json:"text_tokens"`
	} `json:"input_metrics"`
	Generated struct {
		Tokens json.Number `json:"text_tokens"`
	} `json:"output_metrics"`
	Scheduler struct {
		Timings struct {
			Start json.Number `json:"request_start"`
		} `json:"request_timings"`
	} `json:"scheduler_info"`
	RequestStart json.Number `json:"request_start_time"`
	Start        json.Number `json:"start_time"`
	Prompt       json.Number `json:"prompt_tokens"`
	Output       json.Number `json:"output_tokens"`
}

func openGuide(spec Trace, f *traceFile) (decoder, error) {
	d := &guideDecoder{array: newJSONArray(f)}
	if err := d.array.enter("benchmarks", "requests", "successful"); err != nil {
		if errors.Is(err, errNoKey) {
			err = &TraceError{spec.File, 1, "no benchmarks[].requests.successful[]: expected is guidellm's report as JSON, with its requests"}
		}
		return nil, err
	}
	d.open = true
	return &sorted{in: d}, nil
}

func (d *guideDecoder) line() int { return d.n }

func (d *guideDecoder) decode(r *record) error {
	for {
		var row guideRow
		if d.open {
			switch err := d.array.next(&row); err {
			case nil:
				d.n++
				first := func(values ...json.Number) json.Number {
					for _, v := range values {
						if v != "" {
							return v
						}
					}
					return ""
				}
				return fill(r, clock.Second, [3]string{"info.timings.request_start", "input_metrics.text_tokens", "output_metrics.text_tokens"}, [3]json.Number{
					first(row.Info.Timings.Start, row.Scheduler.Timings.Start, row.RequestStart, row.Start),
					first(row.Input.Tokens, row.Prompt), first(row.Generated.Tokens, row.Output)})
			case io.EOF:
				d.open = false
			default:
				return err
			}
		}
		// The next benchmark of the report.
		switch err := d.array.enter("requests", "successful"); {
		case errors.Is(err, errNoKey):
			return io.EOF
		case err != nil:
			return err
		}
		d.open = true
	}
}

// jsonArray walks one JSON document to an array and reads its elements.
type jsonArray struct {
	file *traceFile
	dec  *json.Decoder
}

var errNoKey = errors.New("no such key")

func newJSONArray(f *traceFile) *jsonArray {
	a := &jsonArray{file: f, dec: json.NewDecoder(f)}
	a.dec.UseNumber()
	return a
}

// enter moves on to the array below the named keys, one within the other, and
// into it.
func (a *jsonArray) enter(keys ...string) error {
	for k := 0; ; {
		token, err := a.dec.Token()
		if err == io.EOF {
			return errNoKey
		}
		if err != nil {
			return a.broken(err)
		}
		if token != keys[k] {
			continue
		}
		if k++; k < len(keys) {
			continue
		}
		switch token, err = a.dec.Token(); {
		case err != nil:
			return a.broken(err)
		case token == json.Delim('['):
			return nil
		}
		k--
	}
}

// next decodes the next element; io.EOF at the array's end.
func (a *jsonArray) next(v any) error {
	if !a.dec.More() {
		if _, err := a.dec.Token(); err != nil {
			return a.broken(err)
		}
		return io.EOF
	}
	err := a.dec.Decode(v)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return badJSON(err)
	case err != nil:
		return a.broken(err)
	}
	return nil
}

func (a *jsonArray) broken(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		if a.file.packed {
			return a.file.broken(1, io.ErrUnexpectedEOF)
		}
		return &TraceError{a.file.name, 1, "the JSON document ends in the middle"}
	}
	return a.file.broken(1, fmt.Errorf("no JSON from byte %d on: %w", a.dec.InputOffset(), err))
}
