package workloads

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"slosim/sim/clock"
)

// Row is one request of a trace.
type Row struct {
	OK             bool // false at the end of the file
	Index          int64
	Arrival        clock.Duration // since the first row
	Prompt, Output int32
}

// TraceError is a broken line.
type TraceError struct {
	File string
	Line int
	Msg  string
}

// CutShort is the Msg of a compressed file without its end.
const CutShort = "the compressed file ends in the middle"

func (e *TraceError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// TraceReader streams the rows of a trace file; memory does not grow with it.
type TraceReader struct {
	spec    Trace
	file    *os.File
	lines   *bufio.Scanner
	line    int
	columns [3]int // arrival, prompt, output
	index   int64
	started bool
	first   float64   // csv: arrival of the first row, in units
	origin  time.Time // azure: the same
	last    clock.Duration
	fields  [][]byte
}

// azureLayout is the time stamp of the Azure LLM inference traces.
const azureLayout = "2006-01-02 15:04:05.9999999"

// OpenTrace opens a trace and reads its header. Files whose name ends in .gz are
// decompressed on the way.
func OpenTrace(spec Trace) (*TraceReader, error) {
	f, err := os.Open(spec.File)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	t := &TraceReader{spec: spec, file: f}
	var in io.Reader = bufio.NewReaderSize(f, 1<<16)
	if strings.HasSuffix(spec.File, ".gz") {
		if in, err = gzip.NewReader(in); err != nil {
			f.Close()
			return nil, &TraceError{spec.File, 1, "not a gzip file: " + err.Error()}
		}
	}
	whole := &remembering{Reader: in}
	t.lines = bufio.NewScanner(whole)
	t.lines.Buffer(make([]byte, 1<<16), 1<<20)
	t.lines.Split(whole.line)
	if err := t.header(); err != nil {
		f.Close()
		return nil, err
	}
	return t, nil
}

// remembering is a reader that knows how it ended.
type remembering struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (r *remembering) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// line splits lines like bufio.ScanLines, but the rest of a file that could not
// be read to its end is no line.
func (r *remembering) line(data []byte, atEOF bool) (int, []byte, error) {
	if atEOF && r.err != nil && bytes.IndexByte(data, '\n') < 0 {
		return 0, nil, nil
	}
	return bufio.ScanLines(data, atEOF)
}

// Close releases the file.
func (t *TraceReader) Close() error { return t.file.Close() }

func (t *TraceReader) header() error {
	names := [3]string{t.spec.Arrival, t.spec.Prompt, t.spec.Output}
	if t.spec.Format == "azure" {
		names = [3]string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}
	}
	ok, err := t.scan()
	if err != nil {
		return err
	}
	if !ok {
		return &TraceError{t.spec.File, 1, "the file is empty; a header line with the columns " + strings.Join(names[:], ", ") + " is expected"}
	}
	have := make([]string, len(t.fields))
	for i, f := range t.fields {
		have[i] = strings.TrimPrefix(string(bytes.TrimSpace(f)), "\ufeff")
	}
	for k, want := range names {
		t.columns[k] = -1
		for i, name := range have {
			if name == want {
				t.columns[k] = i
			}
		}
		if t.columns[k] < 0 {
			return &TraceError{t.spec.File, 1, fmt.Sprintf("no column %q; the file has %s", want, strings.Join(have, ", "))}
		}
	}
	return nil
}

// scan reads the next non-empty line into fields.
func (t *TraceReader) scan() (bool, error) {
	for t.lines.Scan() {
		t.line++
		text := bytes.TrimSuffix(t.lines.Bytes(), []byte("\r"))
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		t.fields = t.fields[:0]
		for {
			cut := bytes.IndexByte(text, ',')
			if cut < 0 {
				t.fields = append(t.fields, unquote(text))
				return true, nil
			}
			t.fields = append(t.fields, unquote(text[:cut]))
			text = text[cut+1:]
		}
	}
	if err := t.lines.Err(); err != nil {
		msg := err.Error()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			msg = CutShort
		}
		return false, &TraceError{t.spec.File, t.line + 1, msg}
	}
	return false, nil
}

func unquote(f []byte) []byte {
	if len(f) >= 2 && f[0] == '"' && f[len(f)-1] == '"' {
		return f[1 : len(f)-1]
	}
	return f
}

// Next returns the next row; OK is false at the end.
func (t *TraceReader) Next() (Row, error) {
	ok, err := t.scan()
	if !ok || err != nil {
		return Row{}, err
	}
	fail := func(format string, args ...any) (Row, error) {
		return Row{}, &TraceError{t.spec.File, t.line, fmt.Sprintf(format, args...)}
	}
	most := max(t.columns[0], t.columns[1], t.columns[2])
	if len(t.fields) <= most {
		return fail("%d columns, at least %d expected", len(t.fields), most+1)
	}
	at, err := t.arrival(strings.TrimSpace(string(t.fields[t.columns[0]])))
	if err != nil {
		return fail("%v", err)
	}
	row := Row{OK: true, Index: t.index, Arrival: at}
	for k, into := range []*int32{&row.Prompt, &row.Output} {
		text := strings.TrimSpace(string(t.fields[t.columns[1+k]]))
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != math.Trunc(n) || n < 1 || n > 1e7 {
			return fail("%q is no number of %s tokens: a whole number from 1 to 10,000,000 is expected", text, [2]string{"prompt", "output"}[k])
		}
		*into = int32(n)
	}
	if at < t.last {
		return fail("the arrival lies %s before the line above; sort the trace by arrival", t.last-at)
	}
	t.last = at
	t.index++
	return row, nil
}

// arrival returns a time stamp as the span since the first row's.
func (t *TraceReader) arrival(text string) (clock.Duration, error) {
	if t.spec.Format == "azure" {
		at, err := time.Parse(azureLayout, text)
		if err != nil {
			return 0, fmt.Errorf("%q is no time stamp like 2023-11-16 18:15:46.6805900", text)
		}
		if !t.started {
			t.started, t.origin = true, at
		}
		return clock.Duration(at.Sub(t.origin)), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is no arrival time: a number is expected", text)
	}
	if !t.started {
		t.started, t.first = true, v
	}
	return clock.Duration(math.Round((v - t.first) * float64(t.spec.Unit))), nil
}

// TraceStats says what is in a trace.
type TraceStats struct {
	Rows                   int64
	Span                   clock.Duration
	MeanPrompt, MeanOutput float64
}

// ScanTrace reads a whole trace, checking every line.
func ScanTrace(spec Trace) (TraceStats, error) {
	var s TraceStats
	t, err := OpenTrace(spec)
	if err != nil {
		return s, err
	}
	defer t.Close()
	for {
		row, err := t.Next()
		if err != nil {
			return s, err
		}
		if !row.OK {
			break
		}
		s.Rows++
		s.Span = row.Arrival
		s.MeanPrompt += float64(row.Prompt)
		s.MeanOutput += float64(row.Output)
	}
	if s.Rows == 0 {
		return s, &TraceError{spec.File, t.line + 1, "the trace has no rows"}
	}
	s.MeanPrompt /= float64(s.Rows)
	s.MeanOutput /= float64(s.Rows)
	return s, nil
}
