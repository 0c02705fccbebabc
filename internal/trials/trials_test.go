package trials

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"slosim/experiments"
	"slosim/internal/report"
	"slosim/sim"
)

func small(t *testing.T, sets ...string) sim.Experiment {
	t.Helper()
	e, _, err := experiments.Load("burst", append([]string{"duration=4m", "warmup=1m", "replications=2"}, sets...)...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// summary is all that a report shows of a result.
func summary(t *testing.T, r *sim.Result) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := report.Write(dir, r, report.Meta{}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, text); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// A stored result is the result: same bytes of the report, from any number of
// workers, and nothing is simulated twice. A broken file is simulated anew.
func TestResultsAreRememberedAsTheyWere(t *testing.T) {
	list := []Trial{{"a", small(t)}, {"b", small(t, "traffic.chat.rate.mean=3/s")}, {"c", small(t, "seed=9")}}
	store := t.TempDir()
	var last Progress
	o := Options{Workers: 2, Store: store, Progress: func(p Progress) { last = p }}
	first := Run(context.Background(), list, o)
	if last.Done != 3 || last.Known != 0 || last.Failed != 0 || last.Requests == 0 {
		t.Fatalf("%+v", last)
	}
	second := Run(context.Background(), list, o)
	if last.Known != 3 || last.Requests != 0 {
		t.Fatalf("%+v", last)
	}
	alone := Run(context.Background(), list, Options{Workers: 1})
	for i := range list {
		a, b, c := summary(t, first[i].Result), summary(t, second[i].Result), summary(t, alone[i].Result)
		if !bytes.Equal(a, b) || !bytes.Equal(a, c) {
			t.Errorf("%s differs: stored %v, with one worker %v", list[i].Name, bytes.Equal(a, b), bytes.Equal(a, c))
		}
	}
	files, _ := filepath.Glob(filepath.Join(store, "*.gob"))
	if len(files) != 3 {
		t.Fatal(files)
	}
	if err := os.WriteFile(files[0], []byte("half a fi"), 0o644); err != nil {
		t.Fatal(err)
	}
	if Run(context.Background(), list, o); last.Known != 2 || last.Failed != 0 {
		t.Errorf("%+v", last)
	}
}

// A cancelled run leaves whole results or none.
func TestCancelledTrialsSayso(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	store := t.TempDir()
	for _, o := range Run(ctx, []Trial{{"a", small(t)}}, Options{Store: store}) {
		if o.Err == nil || o.Result != nil {
			t.Errorf("%+v", o)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(store, "*")); len(files) > 0 {
		t.Error(files)
	}
}
