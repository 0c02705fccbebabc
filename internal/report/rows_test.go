package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/workloads"
)

func rowsExperiment() *sim.Experiment {
	return &sim.Experiment{Duration: clock.Hour, Traffic: []workloads.Class{{Name: "chat, long"}}, Changes: []workloads.Change{{Name: "feature"}}}
}

// Both formats hold the same rows, exact to the nanosecond; what was not counted is
// left out, and what did not happen is empty.
func TestRowsHoldEveryRequest(t *testing.T) {
	list := []sim.Served{
		{Index: 7, Replica: 2, Prompt: 100, Output: 5, Outcome: sim.OutcomeOK, Send: 1_500_000_001, Ready: 1_600_000_000, Started: 1_700_000_000, Prefilled: 1_800_000_000, First: 2_000_000_000, Last: 4_000_000_000},
		{Index: 8, Cohort: 1, Attempt: 1, Replica: -1, Prompt: 3, Output: 1, Outcome: sim.OutcomeRejected, Send: 2_000_000_000, Ready: clock.Never, Started: clock.Never, Prefilled: clock.Never, First: clock.Never, Last: clock.Never},
		{Index: 9, Send: -1},
		{Index: 10, Replication: 1},
	}
	dir := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(dir, name)
		r, err := NewRows(path, rowsExperiment())
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			r.Add(&list[i])
		}
		if n, err := r.Close(); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		return path
	}
	text, err := os.ReadFile(write("r.csv"))
	if err != nil {
		t.Fatal(err)
	}
	want := rowHeader + `"chat, long",existing,7,0,3,100,5,ok,1.500000001,1.6,1.7,1.8,2,4,0.499999999,0.5,2.499999999` + "\n" +
		`"chat, long",feature,8,1,0,3,1,rejected,2,,,,,,,,` + "\n"
	if string(text) != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	rows, err := parquet.ReadFile[requestRow](write("r.parquet"))
	if err != nil || len(rows) != 2 || rows[0].Class != "chat, long" || *rows[0].E2E != 2.499999999 || rows[1].TTFT != nil || rows[1].Cohort != "feature" {
		t.Errorf("%+v, %v", rows, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".requests-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := NewRows(filepath.Join(dir, "r.txt"), rowsExperiment()); err == nil || !strings.Contains(err.Error(), ".parquet") {
		t.Error(err)
	}
}

// BenchmarkRows is the cost of a row, which the issue bounds by 1.5 µs: go test
// ./internal/report -run xx -bench Rows
func BenchmarkRows(b *testing.B) {
	for _, name := range []string{"r.csv", "r.parquet"} {
		b.Run(filepath.Ext(name), func(b *testing.B) {
			r, err := NewRows(filepath.Join(b.TempDir(), name), rowsExperiment())
			if err != nil {
				b.Fatal(err)
			}
			s := sim.Served{Prompt: 2000, Output: 256, Outcome: sim.OutcomeOK}
			for i := 0; b.Loop(); i++ {
				t := clock.Time(i%1_000_000) * 1_234_567
				s.Index, s.Send, s.Ready, s.Started, s.Prefilled, s.First, s.Last = int64(i), t, t+7_654_321, t+8_654_321, t+123_456_789, t+133_456_789, t+9_123_456_789
				r.Add(&s)
			}
			if _, err := r.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
