package experiments

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"slosim/sim"
	"slosim/workloads"
)

// sharedTrace returns a public trace that is not part of the repository.
func sharedTrace(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "shared", "data", "traces", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("needs the public traces in ../shared/data, which are not part of the repository")
	}
	return path
}

// All 12,031 requests of the Mooncake conversation trace go through the cluster,
// each counted once, and its prefix reuse with unbounded memory is the published
// 0.366 of the blocks.
func TestMooncakeReplaysEveryRequest(t *testing.T) {
	file := sharedTrace(t, "mooncake_conversation_trace.jsonl")
	text := `
duration = "3537s"
warmup = "0s"
replications = 1
[[pool]]
name = "main"
model = "llama-3.1-8b"
gpu = "h100"
replicas = 16
[[traffic]]
class = "chat"
trace = "` + file + `"
`
	path := filepath.Join(t.TempDir(), "mooncake.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	e, _, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if tr := e.Traffic[0].Trace; tr.Format != "mooncake" || tr.Block != 512 {
		t.Fatalf("resolved to %+v", tr)
	}
	r, err := sim.Run(context.Background(), e, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Phases[0].Classes[0].N; n != 12031 {
		t.Errorf("%d requests counted, the trace has 12,031", n)
	}

	in, err := workloads.OpenTrace(*e.Traffic[0].Trace)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	reuse := workloads.NewReuse(1 << 20)
	for {
		row, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !row.OK {
			break
		}
		reuse.Add(&row)
	}
	if rate := reuse.BlockHitRate(); math.Abs(rate-0.3664) > 0.0001 || reuse.Rows != 12031 || reuse.Distinct() != 182790 {
		t.Errorf("block hit rate %.5f over %d rows with %d distinct blocks, want 0.3664, 12,031 and 182,790", rate, reuse.Rows, reuse.Distinct())
	}
}

// A mixture is tabulated when it is read, not each time that a figure of it is
// asked for.
func TestMixturesAreWorkedOutOnce(t *testing.T) {
	e, _, err := Load("canary")
	if err != nil {
		t.Fatal(err)
	}
	if d := e.Traffic[0].Prompt; d.Kind != "mixture" || len(d.Points) < 1000 {
		t.Errorf("%s with %d points", d.Kind, len(d.Points))
	}
}
