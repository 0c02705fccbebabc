package models

import (
	"compress/gzip"
	"encoding/csv"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// record is one line of a measured table, by column name.
type record map[string]string

func (r record) num(t *testing.T, column string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(r[column], 64)
	if err != nil {
		t.Fatalf("column %q: %v", column, err)
	}
	return v
}

// sharedData reads a file of the measured data that is kept beside the
// repository, and skips the test where it is not at hand.
func sharedData(t *testing.T, name string) []record {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "data", name)
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("measured data is not beside this checkout: %v", err)
	}
	defer f.Close()
	var text io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if text, err = gzip.NewReader(f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	rows, err := csv.NewReader(text).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	records := make([]record, 0, len(rows)-1)
	for _, row := range rows[1:] {
		r := make(record, len(row))
		for i, column := range rows[0] {
			r[column] = row[i]
		}
		records = append(records, r)
	}
	return records
}

// fitErrors collects relative errors of a model against measurements.
type fitErrors []float64

func (e *fitErrors) add(predicted, measured float64) { *e = append(*e, predicted/measured-1) }

func (e fitErrors) mapePct() float64 {
	sum := 0.0
	for _, x := range e {
		sum += math.Abs(x)
	}
	return 100 * sum / float64(len(e))
}

func (e fitErrors) medianPct() float64 {
	s := slices.Sorted(slices.Values(e))
	return 100 * s[len(s)/2]
}
