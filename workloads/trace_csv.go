package workloads

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slosim/sim/clock"
)

// azureLayout is the time stamp of the Azure LLM inference traces.
const azureLayout = "2006-01-02 15:04:05.9999999"

var azureColumns = [3]string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}

// csvDecoder reads comma-separated values below a header.
type csvDecoder struct {
	lines   *lines
	spec    *Trace
	columns [3]int // arrival, prompt, output
	where   int    // column that rows are chosen by, or −1
	fields  [][]byte
	time    func(text []byte) (clock.Duration, error)
}

func openAzure(spec Trace, f *traceFile) (decoder, error) {
	return openColumns(spec, f, azureColumns, func(text []byte) (clock.Duration, error) {
		at, err := time.Parse(azureLayout, string(text))
		if err != nil {
			return 0, badf("%q is no time stamp like 2023-11-16 18:15:46.6805900", text)
		}
		return clock.Duration(at.UnixNano()), nil
	})
}

// burstColumns are those of BurstGPT (github.com/HPMLL/BurstGPT); time stamps are
// seconds. Failed requests have no response tokens there.
var burstColumns = [3]string{"Timestamp", "Request tokens", "Response tokens"}

func openBurst(spec Trace, f *traceFile) (decoder, error) {
	return openColumns(spec, f, burstColumns, func(text []byte) (clock.Duration, error) {
		return decimalTime(text, clock.Second)
	})
}

func openCSV(spec Trace, f *traceFile) (decoder, error) {
	return openColumns(spec, f, [3]string{spec.Arrival, spec.Prompt, spec.Output}, func(text []byte) (clock.Duration, error) {
		return decimalTime(text, spec.Unit)
	})
}

func openColumns(spec Trace, f *traceFile, names [3]string, time func([]byte) (clock.Duration, error)) (decoder, error) {
	d := &csvDecoder{lines: newLines(f), spec: &spec, time: time}
	switch err := d.lines.next(); {
	case err == io.EOF:
		return nil, &TraceError{spec.File, 1, "the file is empty; a header line with the columns " + strings.Join(names[:], ", ") + " is expected"}
	case err != nil:
		return nil, err
	}
	d.split()
	have := make([]string, len(d.fields))
	for i, f := range d.fields {
		have[i] = string(bytes.TrimSpace(f))
	}
	find := func(want string) (int, error) {
		if k := slices.Index(have, want); k >= 0 {
			return k, nil
		}
		return -1, &TraceError{spec.File, d.lines.n, fmt.Sprintf("no column %q; the file has %s", want, strings.Join(have, ", "))}
	}
	var err error
	for k, want := range names {
		if d.columns[k], err = find(want); err != nil {
			return nil, err
		}
	}
	d.where = -1
	if spec.Where.Column != "" {
		if d.where, err = find(spec.Where.Column); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *csvDecoder) line() int { return d.lines.n }

// split cuts the line at its commas.
func (d *csvDecoder) split() {
	d.fields = d.fields[:0]
	text := d.lines.text
	for {
		cut := bytes.IndexByte(text, ',')
		if cut < 0 {
			d.fields = append(d.fields, unquote(text))
			return
		}
		d.fields = append(d.fields, unquote(text[:cut]))
		text = text[cut+1:]
	}
}

func unquote(f []byte) []byte {
	if len(f) >= 2 && f[0] == '"' && f[len(f)-1] == '"' {
		return f[1 : len(f)-1]
	}
	return f
}

func (d *csvDecoder) decode(r *record) error {
	for {
		if err := d.lines.next(); err != nil {
			return err
		}
		d.split()
		if most := max(d.columns[0], d.columns[1], d.columns[2], d.where); len(d.fields) <= most {
			return badf("%d columns, at least %d expected", len(d.fields), most+1)
		}
		if d.where < 0 || string(bytes.TrimSpace(d.fields[d.where])) == d.spec.Where.Is {
			break
		}
	}
	var err error
	field := func(k int) []byte { return bytes.TrimSpace(d.fields[d.columns[k]]) }
	if r.at, err = d.time(field(0)); err != nil {
		return err
	}
	if r.prompt, err = tokenCount(field(1), "prompt"); err != nil {
		return err
	}
	r.output, err = tokenCount(field(2), "output")
	return err
}
