package report

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"slosim/sim"
	"slosim/sim/clock"
)

// requestRow is one request of the first replication. Times are seconds since
// t = 0; null where a request did not get that far.
type requestRow struct {
	Class     string   `parquet:"class,dict"`
	Cohort    string   `parquet:"cohort,dict"`
	Index     int64    `parquet:"index"`
	Attempt   int32    `parquet:"attempt"`
	Replica   int32    `parquet:"replica"` // from 1, all pools in order; 0 = none
	Prompt    int32    `parquet:"prompt_tokens"`
	Output    int32    `parquet:"output_tokens"`
	Outcome   string   `parquet:"outcome,dict"`
	Send      float64  `parquet:"send_s"`
	Ready     *float64 `parquet:"ready_s"`
	Started   *float64 `parquet:"started_s"`
	Prefilled *float64 `parquet:"prefilled_s"`
	First     *float64 `parquet:"first_token_s"`
	Last      *float64 `parquet:"last_token_s"`
	TTFT      *float64 `parquet:"ttft_s"`
	TPOT      *float64 `parquet:"tpot_s"`
	E2E       *float64 `parquet:"e2e_s"`
}

const rowHeader = "class,cohort,index,attempt,replica,prompt_tokens,output_tokens,outcome,send_s,ready_s,started_s,prefilled_s,first_token_s,last_token_s,ttft_s,tpot_s,e2e_s\n"

// rowBatch is how many Parquet rows are written at a time, rowGroup how many form a
// group: memory is bounded by the latter.
const (
	rowBatch = 1024
	rowGroup = 1 << 17
)

// Rows writes one row per request to a file, as CSV or Parquet by its name. The
// file appears when it is complete.
type Rows struct {
	path    string
	temp    *os.File
	buffer  *bufio.Writer
	parquet *parquet.GenericWriter[requestRow]
	rows    []requestRow
	numbers [rowBatch * 8]float64
	used    int
	grouped int
	line    []byte
	e       *sim.Experiment
	csv     [][]string // [class][cohort]: quoted names and a comma
	n       int64
	err     error
}

// NewRows prepares a file of rows; its folder must exist.
func NewRows(path string, e *sim.Experiment) (*Rows, error) {
	ext := strings.ToLower(filepath.Ext(path))
	if ext != ".csv" && ext != ".parquet" {
		return nil, fmt.Errorf("--requests %s has no known ending\n  allowed: .csv, .parquet", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".requests-*")
	if err != nil {
		return nil, fmt.Errorf("--requests %s cannot be written: %w", path, err)
	}
	r := &Rows{path: path, temp: f, buffer: bufio.NewWriterSize(f, 1<<18), e: e}
	if ext == ".parquet" {
		r.parquet = parquet.NewGenericWriter[requestRow](r.buffer, parquet.Compression(&parquet.Snappy))
		return r, nil
	}
	for _, c := range e.Traffic {
		list := []string{quoteCSV(c.Name) + ",existing,"}
		for _, ch := range e.Changes {
			list = append(list, quoteCSV(c.Name)+","+quoteCSV(ch.Name)+",")
		}
		r.csv = append(r.csv, list)
	}
	_, r.err = r.buffer.WriteString(rowHeader)
	return r, nil
}

func quoteCSV(s string) string {
	if strings.ContainsAny(s, ",\"\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// Add writes a request of the counted span of the first replication; others are
// passed over.
func (r *Rows) Add(s *sim.Served) {
	if r.err != nil || s.Replication != 0 || s.Send < 0 || s.Send >= clock.Time(r.e.Duration) {
		return
	}
	r.n++
	if r.parquet != nil {
		r.addParquet(s)
		return
	}
	b := append(r.line[:0], r.csv[s.Class][s.Cohort]...)
	b = append(strconv.AppendInt(b, s.Index, 10), ',')
	b = append(strconv.AppendInt(b, int64(s.Attempt), 10), ',')
	b = append(strconv.AppendInt(b, int64(s.Replica+1), 10), ',')
	b = append(strconv.AppendInt(b, int64(s.Prompt), 10), ',')
	b = append(strconv.AppendInt(b, int64(s.Output), 10), ',')
	b = append(append(b, s.Outcome...), ',')
	b = appendSeconds(b, int64(s.Send))
	for _, t := range [...]clock.Time{s.Ready, s.Started, s.Prefilled, s.First, s.Last} {
		if b = append(b, ','); t != clock.Never {
			b = appendSeconds(b, int64(t))
		}
	}
	for _, d := range derived(s) {
		if b = append(b, ','); d >= 0 {
			b = appendSeconds(b, d)
		}
	}
	r.line = append(b, '\n')
	_, r.err = r.buffer.Write(r.line)
}

// derived returns TTFT, TPOT and E2E in nanoseconds; −1 for none.
func derived(s *sim.Served) [3]int64 {
	out := [3]int64{-1, -1, -1}
	if s.First != clock.Never {
		out[0] = int64(s.First - s.Send)
		if s.Last != clock.Never && s.Output > 1 {
			out[1] = int64(s.Last-s.First) / int64(s.Output-1)
		}
	}
	if s.Last != clock.Never {
		out[2] = int64(s.Last - s.Send)
	}
	return out
}

// appendSeconds writes nanoseconds as seconds, exactly.
func appendSeconds(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1e9, 10)
	frac := ns % 1e9
	if frac == 0 {
		return b
	}
	var digits [10]byte
	digits[0] = '.'
	for k := 9; k > 0; k-- {
		digits[k] = byte('0' + frac%10)
		frac /= 10
	}
	end := 10
	for digits[end-1] == '0' {
		end--
	}
	return append(b, digits[:end]...)
}

func (r *Rows) addParquet(s *sim.Served) {
	number := func(ns int64, ok bool) *float64 {
		if !ok {
			return nil
		}
		p := &r.numbers[r.used]
		r.used++
		*p = float64(ns) / 1e9
		return p
	}
	at := func(t clock.Time) *float64 { return number(int64(t), t != clock.Never) }
	d := derived(s)
	cohort := "existing"
	if s.Cohort > 0 {
		cohort = r.e.Changes[s.Cohort-1].Name
	}
	r.rows = append(r.rows, requestRow{
		Class: r.e.Traffic[s.Class].Name, Cohort: cohort, Index: s.Index, Attempt: s.Attempt, Replica: s.Replica + 1,
		Prompt: s.Prompt, Output: s.Output, Outcome: s.Outcome, Send: s.Send.Seconds(),
		Ready: at(s.Ready), Started: at(s.Started), Prefilled: at(s.Prefilled), First: at(s.First), Last: at(s.Last),
		TTFT: number(d[0], d[0] >= 0), TPOT: number(d[1], d[1] >= 0), E2E: number(d[2], d[2] >= 0),
	})
	if len(r.rows) == rowBatch {
		r.flush()
	}
}

func (r *Rows) flush() {
	if _, err := r.parquet.Write(r.rows); err != nil && r.err == nil {
		r.err = err
	}
	r.grouped += len(r.rows)
	r.rows, r.used = r.rows[:0], 0
	if r.grouped >= rowGroup {
		r.grouped = 0
		if err := r.parquet.Flush(); err != nil && r.err == nil {
			r.err = err
		}
	}
}

// Discard gives the rows up.
func (r *Rows) Discard() {
	r.temp.Close()
	os.Remove(r.temp.Name())
}

// Close completes the file and returns how many rows it has.
func (r *Rows) Close() (int64, error) {
	if r.parquet != nil {
		r.flush()
		if err := r.parquet.Close(); r.err == nil {
			r.err = err
		}
	}
	if err := r.buffer.Flush(); r.err == nil {
		r.err = err
	}
	if err := r.temp.Chmod(0o644); r.err == nil {
		r.err = err
	}
	if err := r.temp.Close(); r.err == nil {
		r.err = err
	}
	if r.err == nil {
		r.err = os.Rename(r.temp.Name(), r.path)
	}
	if r.err != nil {
		os.Remove(r.temp.Name())
		return 0, fmt.Errorf("--requests %s: %w", r.path, r.err)
	}
	return r.n, nil
}
