package workloads

import (
	"encoding/json"
	"io"
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
	for _, f := range [3]struct {
		name  string
		value json.Number
	}{{"timestamp", row.At}, {"input_length", row.Prompt}, {"output_length", row.Output}} {
		if f.value == "" {
			return badf("no %q in the line; expected are timestamp, input_length, output_length and hash_ids", f.name)
		}
	}
	var err error
	if r.at, err = decimalTime([]byte(row.At), d.spec.Unit); err != nil {
		return err
	}
	if r.prompt, err = tokenCount([]byte(row.Prompt), "prompt"); err != nil {
		return err
	}
	if r.output, err = tokenCount([]byte(row.Output), "output"); err != nil {
		return err
	}
	r.ids = row.IDs
	return nil
}

// badJSON words a JSON error for a person.
func badJSON(err error) error {
	if err == io.ErrUnexpectedEOF || err.Error() == "unexpected end of JSON input" {
		return badf("the JSON object ends in the middle")
	}
	return badf("not the JSON that is expected: %v", err)
}
