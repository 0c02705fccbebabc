package measured

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// table is a CSV file with a header, read whole. Cells that cannot be read are
// collected as errors with their place.
type table struct {
	file    string // for messages
	columns map[string]int
	header  []string
	rows    [][]string
	errs    []error
}

// maxErrors bounds how many faults of one file are listed.
const maxErrors = 8

// readTable reads a CSV file, compressed when its name ends in .gz.
func readTable(path, shown string) (*table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown, plain(err))
	}
	defer f.Close()
	var in io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(in); err != nil {
			return nil, fmt.Errorf("%s: not a gzip file: %w", shown, err)
		}
	}
	return parseTable(in, shown)
}

func parseTable(in io.Reader, shown string) (*table, error) {
	r := csv.NewReader(in)
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	t := &table{file: shown, columns: map[string]int{}}
	for {
		row, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", shown, err)
		}
		if t.header == nil {
			row[0] = strings.TrimPrefix(row[0], "\ufeff")
			for i, name := range row {
				row[i] = strings.TrimSpace(name)
				if _, twice := t.columns[row[i]]; !twice {
					t.columns[row[i]] = i
				}
			}
			t.header = row
			continue
		}
		t.rows = append(t.rows, row)
	}
	if t.header == nil {
		return nil, fmt.Errorf("%s: the file is empty; a header line is expected", shown)
	}
	return t, nil
}

// header reads only the first line's columns.
func headerOf(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var in io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(in); err != nil {
			return nil
		}
	}
	line, err := bufio.NewReader(io.LimitReader(in, 1<<16)).ReadString('\n')
	if err != nil && line == "" {
		return nil
	}
	row, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(line, "\ufeff"))).Read()
	if err != nil {
		return nil
	}
	for i := range row {
		row[i] = strings.TrimSpace(row[i])
	}
	return row
}

// has tells whether the table has all these columns.
func has(header []string, columns ...string) bool {
	for _, c := range columns {
		if !slices.Contains(header, c) {
			return false
		}
	}
	return true
}

// line returns the line of a row in the file, the header being line 1.
func (t *table) line(row int) int { return row + 2 }

// text returns a cell, "" when the row or the table does not have it.
func (t *table) text(row int, column string) string {
	i, ok := t.columns[column]
	if !ok || i >= len(t.rows[row]) {
		return ""
	}
	return strings.TrimSpace(t.rows[row][i])
}

// number returns a cell as a number; a cell that is empty is 0 and not ok, one
// that is no number is an error besides.
func (t *table) number(row int, column string) (float64, bool) {
	text := t.text(row, column)
	if text == "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v != v {
		t.fault(row, column, "%q is no number", text)
		return 0, false
	}
	return v, true
}

// whole is number without the ok, as an int.
func (t *table) whole(row int, column string) int {
	v, _ := t.number(row, column)
	return int(v)
}

func (t *table) fault(row int, column, format string, args ...any) {
	if len(t.errs) < maxErrors {
		t.errs = append(t.errs, fmt.Errorf("%s:%d: column %s: %s", t.file, t.line(row), column, fmt.Sprintf(format, args...)))
	}
}

func (t *table) err() error { return errors.Join(t.errs...) }

// plain drops the path that a file error repeats.
func plain(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// stem returns a file's name without folder and endings.
func stem(path string) string {
	base := filepath.Base(path)
	for _, end := range []string{".gz", ".csv", ".json", ".jsonl"} {
		base = strings.TrimSuffix(base, end)
	}
	return base
}
