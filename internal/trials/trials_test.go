package trials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	files, _ := filepath.Glob(filepath.Join(store, "*.result"))
	if len(files) != 3 {
		t.Fatal(files)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for _, broken := range [][]byte{[]byte("half a fi"), whole[:len(whole)/2], flipped, nil} {
		if err := os.WriteFile(files[0], broken, 0o644); err != nil {
			t.Fatal(err)
		}
		if Run(context.Background(), list, o); last.Known != 2 || last.Failed != 0 {
			t.Errorf("%+v", last)
		}
		if again, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(again, whole) {
			t.Errorf("not the same bytes again: %v", err)
		}
	}
}

// A full disk is an error of the trial that says where, and what to do; what was
// stored before is whole.
func TestAFullDiskIsAnErrorOfTheTrial(t *testing.T) {
	defer func(f func(io.Writer, []byte) error) { writeTo = f }(writeTo)
	writeTo = func(w io.Writer, data []byte) error {
		_, err := w.Write(data[:len(data)/2])
		return errors.Join(err, syscall.ENOSPC)
	}
	store := t.TempDir()
	o := Run(context.Background(), []Trial{{"a", small(t)}}, Options{Store: store})[0]
	var e *StoreError
	if !errors.As(o.Err, &e) || !errors.Is(o.Err, syscall.ENOSPC) || !strings.Contains(o.Err.Error(), "make room") || o.Result != nil {
		t.Error(o.Err)
	}
	if files, _ := filepath.Glob(filepath.Join(store, "*")); len(files) > 0 {
		t.Error(files)
	}
}

// An experiment that travels is the one that was sent: every shipped one has the same
// hash, and all its fields, on the other side.
func TestExperimentsTravelWhole(t *testing.T) {
	for _, name := range experiments.Names() {
		e, _, err := experiments.Load(name)
		if err != nil {
			continue // its trace is not here
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(name, err)
		}
		var got sim.Experiment
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(e, got); diff != "" || Key(e) != Key(got) {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// A trace counts by its content: a worker reads its own copy, and the result names the
// one that the experiment names.
func TestATraceMayLieElsewhere(t *testing.T) {
	dir := t.TempDir()
	var rows strings.Builder
	rows.WriteString("arrival,prompt,output\n")
	for i := range 100 {
		fmt.Fprintf(&rows, "%d,300,20\n", i)
	}
	for _, name := range []string{"a.csv", "b.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(rows.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e, _, err := experiments.Parse("x.toml", dir, `duration = "1m"
warmup = "10s"
replications = 1
[[pool]]
name = "main"
model = "llama-3.1-8b"
gpu = "h100"
[[traffic]]
class = "chat"
trace = { file = "a.csv", format = "csv" }`)
	if err != nil {
		t.Fatal(err)
	}
	task, err := encode(Key(e), Trial{"a", e})
	if err != nil || len(task.Files) != 1 {
		t.Fatal(task.Files, err)
	}
	here, err := Work(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a.csv")); err != nil {
		t.Fatal(err)
	}
	task.Files[0].Path = filepath.Join(dir, "b.csv")
	there, err := Work(context.Background(), task)
	if err != nil || !bytes.Equal(here, there) {
		t.Fatalf("not the same bytes: %v", err)
	}
	r, err := decodeResult(there, &e)
	if err != nil || r.Experiment.Traffic[0].Trace.File != e.Traffic[0].Trace.File || r.Requests == 0 {
		t.Errorf("%v, %+v", err, r.Experiment.Traffic[0].Trace)
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

// A folder that cannot hold results is told before anything is simulated, with what
// helps; the check leaves nothing behind.
func TestAStoreIsCheckedBeforehand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := CheckStore(dir); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var e *StoreError
	if err := CheckStore(file); !errors.As(err, &e) || !strings.Contains(err.Error(), "--store") || strings.Contains(err.Error(), "room") {
		t.Error(err)
	}
	if err := CheckStore(""); err != nil {
		t.Error(err)
	}
}

// What an interruption cuts off has not failed, and is not done either.
func TestCutOffTrialsHaveNotFailed(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var last Progress
	out := Run(ctx, make([]Trial, 3), Options{Workers: 1, Progress: func(p Progress) { last = p }})
	if want := (Progress{Total: 3}); last != want {
		t.Errorf("%+v", last)
	}
	for _, o := range out {
		if !errors.Is(o.Err, context.Canceled) {
			t.Error(o.Err)
		}
	}
}
