package workloads

import (
	"errors"
	"fmt"
	"io"
	"math"

	"slosim/sim/clock"
)

// Row is one request of a trace.
type Row struct {
	OK             bool // false at the end of the file
	Index          int64
	Arrival        clock.Duration // since the first row
	Prompt, Output int32
	IDs            []uint64 // content of the prompt in units of Block tokens; nobody else holds it
	Block          int32
}

// Bounds of a row.
const (
	maxRowTokens = 10_000_000
	maxTraceSpan = 100 * 366 * clock.Day
)

// TraceError is a broken line.
type TraceError struct {
	File string
	Line int
	Msg  string
}

// CutShort is the Msg of a compressed file without its end.
const CutShort = "the compressed file ends in the middle"

func (e *TraceError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// record is a row as a file has it.
type record struct {
	at             clock.Duration // from the file's own zero
	prompt, output int64
	ids            []uint64 // valid until the next record
}

// decoder reads the records of one format, one per call. It returns io.EOF at the
// end, a badRecord for a record that can be passed over, and any other error when
// nothing more can be read.
type decoder interface {
	decode(r *record) error
	line() int // of the last record; the number of the record where a format has no lines
}

// badRecord says what is wrong with one record.
type badRecord string

func (b badRecord) Error() string { return string(b) }

func badf(format string, args ...any) error { return badRecord(fmt.Sprintf(format, args...)) }

// TraceReader streams the rows of a trace file; memory does not grow with it.
type TraceReader struct {
	spec    Trace
	file    *traceFile
	in      decoder
	index   int64 // of the next row of the file
	first   clock.Duration
	last    clock.Duration // since the first
	skipped int64
	why     string // the first row that was skipped
	r       record

	lap   lap
	scale *rescaler // nil = as in the file
	sent  int64     // rows that Next has returned
}

// OpenTrace opens a trace and reads its header. Gzip and zstd are recognised and
// decompressed on the way. An empty Format stands for the one that DetectFormat
// finds.
func OpenTrace(spec Trace) (*TraceReader, error) {
	if spec.Format == "" {
		format, err := DetectFormat(spec.File)
		if err != nil {
			return nil, err
		}
		spec.Format = format
	}
	t := &TraceReader{spec: spec}
	if err := t.open(); err != nil {
		return nil, err
	}
	if spec.Rate > 0 && spec.Rate != 1 {
		t.scale = &rescaler{factor: spec.Rate}
	}
	return t, nil
}

func (t *TraceReader) open() error {
	var err error
	if t.file, err = openFile(t.spec.File); err != nil {
		return err
	}
	if t.in, err = newDecoder(t.spec, t.file); err != nil {
		t.file.Close()
	}
	return err
}

// Close releases the file.
func (t *TraceReader) Close() error { return t.file.Close() }

// Skipped returns how many broken rows were passed over, and what was wrong with
// the first of them.
func (t *TraceReader) Skipped() (int64, string) { return t.skipped, t.why }

// Next returns the next row; OK is false at the end.
func (t *TraceReader) Next() (Row, error) {
	var row Row
	var err error
	if t.scale != nil {
		row, err = t.scale.next(t.looped)
	} else {
		row, err = t.looped()
	}
	if !row.OK || err != nil {
		return Row{}, err
	}
	if t.spec.Speed > 0 {
		row.Arrival = clock.Duration(math.Round(float64(row.Arrival) / t.spec.Speed))
	}
	row.Index = t.sent
	t.sent++
	return row, nil
}

// fromFile returns the next good row of the file.
func (t *TraceReader) fromFile() (Row, error) {
	for {
		row, err := t.read()
		var bad badRecord
		switch {
		case err == nil:
			return row, nil
		case err == io.EOF:
			return Row{}, nil
		case !errors.As(err, &bad):
			return Row{}, err
		}
		broken := &TraceError{t.spec.File, t.in.line(), string(bad)}
		if t.skipped++; t.skipped > t.spec.SkipBad {
			return Row{}, broken
		}
		if t.why == "" {
			t.why = broken.Error()
		}
	}
}

// read decodes one record and checks it.
func (t *TraceReader) read() (Row, error) {
	r := &t.r
	if err := t.in.decode(r); err != nil {
		return Row{}, err
	}
	for _, n := range [2]struct {
		what   string
		tokens int64
	}{{"prompt", r.prompt}, {"output", r.output}} {
		if n.tokens < 1 || n.tokens > maxRowTokens {
			return Row{}, badf("%d is no number of %s tokens: a whole number from 1 to 10,000,000 is expected", n.tokens, n.what)
		}
	}
	row := Row{OK: true, Prompt: int32(r.prompt), Output: int32(r.output)}
	if t.index == 0 {
		t.first = r.at
	}
	row.Arrival = r.at - t.first
	switch {
	case row.Arrival < t.last:
		return Row{}, badf("the arrival lies %s before the line above; sort the trace by arrival", t.last-row.Arrival)
	case row.Arrival > maxTraceSpan:
		return Row{}, badf("the arrival lies %s after the first one; is the unit right?", row.Arrival)
	}
	if n := len(r.ids); n > 0 {
		if most := (r.prompt + int64(t.spec.Block) - 1) / int64(t.spec.Block); int64(n) > most {
			return Row{}, badf("%d block ids for %d prompt tokens: at most %d are expected with blocks of %d tokens (setting: block)", n, r.prompt, most, t.spec.Block)
		}
		row.IDs = append(make([]uint64, 0, n), r.ids...)
		row.Block = t.spec.Block
	}
	t.last = row.Arrival
	t.index++
	return row, nil
}

// TraceStats says what is in a trace.
type TraceStats struct {
	Rows                   int64
	Span                   clock.Duration
	MeanPrompt, MeanOutput float64
	Skipped                int64  // broken rows passed over
	Why                    string // what was wrong with the first of them
}

// ScanTrace reads a whole trace once, checking every line.
func ScanTrace(spec Trace) (TraceStats, error) {
	var s TraceStats
	spec.Loop = false
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
		return s, &TraceError{spec.File, t.in.line() + 1, "the trace has no rows"}
	}
	s.MeanPrompt /= float64(s.Rows)
	s.MeanOutput /= float64(s.Rows)
	s.Skipped, s.Why = t.Skipped()
	return s, nil
}
