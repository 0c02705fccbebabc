package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// asSim makes the test binary the program: its processes are real, their binary is one.
const asSim = "SIM_TEST_IS_SIM"

const tinyExperiment = `duration = "2s"
warmup = "0s"
replications = 1
[[pool]]
name = "main"
model = "llama-3.1-8b"
gpu = "h100"
thermal = { enabled = false }
[[traffic]]
class = "chat"
rate = "10/s"
prompt = 200
output = 10
`

// tinySweep has 100 points on 10 seeds: 1,000 simulations of 20 requests.
const tinySweep = `experiment = "tiny.toml"
[design]
kind = "sobol"
samples = 100
seeds = 10
[[vary]]
set = "traffic.chat.rate"
from = "5/s"
to = "20/s"
[[vary]]
set = "traffic.chat.prompt"
from = 50
to = 500
integer = true
[report]
metrics = ["ttft_p99", "busy"]
`

// workbench is a folder with the files of a test.
type workbench struct {
	*testing.T
	dir string
}

func newWorkbench(t *testing.T, files map[string]string) *workbench {
	t.Helper()
	w := &workbench{t, t.TempDir()}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// sim prepares a process of the program.
func (w *workbench) sim(args ...string) (*exec.Cmd, *bytes.Buffer) {
	w.Helper()
	program, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &out, &out
	cmd.Env = append(os.Environ(), asSim+"=1")
	return cmd, &out
}

// run runs the program and wants an exit status.
func (w *workbench) run(status int, args ...string) string {
	w.Helper()
	cmd, out := w.sim(args...)
	if got := exitStatus(cmd.Run()); got != status {
		w.Fatalf("sim %s: exit status %d, want %d\n%s", strings.Join(args, " "), got, status, out)
	}
	return out.String()
}

func (w *workbench) start(args ...string) (*exec.Cmd, *bytes.Buffer) {
	w.Helper()
	cmd, out := w.sim(args...)
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cmd.Process.Kill() }) // most have ended
	return cmd, out
}

// results are the names of a store's results.
func (w *workbench) results(store string) []string {
	w.Helper()
	list, err := filepath.Glob(filepath.Join(w.dir, store, "*.result"))
	if err != nil {
		w.Fatal(err)
	}
	return list
}

// until waits for a condition.
func (w *workbench) until(what string, ok func() bool) {
	w.Helper()
	for begun := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			w.Fatal("in vain: " + what)
		}
	}
}

// same wants two files, or all files of two folders, to be the same bytes.
func (w *workbench) same(a, b string) {
	w.Helper()
	names := func(dir string) (out []string) {
		list, err := os.ReadDir(filepath.Join(w.dir, dir))
		if err != nil {
			w.Fatal(err)
		}
		for _, e := range list {
			out = append(out, e.Name())
		}
		return out
	}
	left, right := names(a), names(b)
	if strings.Join(left, " ") != strings.Join(right, " ") {
		w.Fatalf("%s has %d files, %s %d", a, len(left), b, len(right))
	}
	for _, name := range left {
		x, errX := os.ReadFile(filepath.Join(w.dir, a, name))
		y, errY := os.ReadFile(filepath.Join(w.dir, b, name))
		if err := errors.Join(errX, errY); err != nil {
			w.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			w.Errorf("%s differs between %s and %s", name, a, b)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// 1,000 tasks on three worker processes, one of which is killed at a random time, and
// the coordinator killed and started again: 1,000 results, none twice, none lost, and
// every byte as from goroutines of one process.
func TestAThousandTasksSurviveTheirProcesses(t *testing.T) {
	w := newWorkbench(t, map[string]string{"tiny.toml": tinyExperiment, "thousand.toml": tinySweep})
	w.run(exitDone, "sweep", "thousand.toml", "-q", "--out", "local", "--store", "local-results")

	seed := uint64(time.Now().UnixNano())
	t.Logf("times from seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	address := freeAddress(t)
	sweep := []string{"sweep", "thousand.toml", "-q", "--out", "spread", "--store", "spread-results", "--workers", "1", "--listen", address, "--ack-wait", "1s"}
	first, firstOut := w.start(sweep...)
	token := filepath.Join(w.dir, "out", ".queue", "thousand-sweep", "token")
	w.until("the token's file", func() bool { _, err := os.Stat(token); return err == nil })
	var workers []*exec.Cmd
	for range 2 {
		worker, _ := w.start("worker", "--nats", "nats://"+address, "--token-file", token, "--parallel", "1", "--idle", "20s")
		workers = append(workers, worker)
	}

	atResult := func(n int) {
		w.until(fmt.Sprintf("%d results: %s", n, firstOut), func() bool { return len(w.results("spread-results")) >= n })
	}
	atResult(50 + random.IntN(200))
	if err := workers[0].Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = workers[0].Wait() // it was killed
	atResult(350 + random.IntN(300))
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	before := len(w.results("spread-results"))
	if before < 350 || before >= 1000 {
		t.Fatalf("%d results when the coordinator was killed:\n%s", before, firstOut)
	}
	out := w.run(exitDone, sweep...)
	t.Logf("%d results when the coordinator was killed\n%s%s", before, firstOut, out)

	if n := len(w.results("spread-results")); n != 1000 {
		t.Fatalf("%d results", n)
	}
	w.same("local-results", "spread-results")
	w.same("local", "spread")
	seen := map[[2]int64]bool{}
	for _, row := range w.rows("spread/results.parquet") {
		seen[row] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d different rows of results.parquet", len(seen))
	}
	if _, err := os.Stat(filepath.Join(w.dir, "out", ".queue", "thousand-sweep")); err == nil {
		t.Error("the queue's folder was left behind")
	}
}

// rows reads point and seed of every row.
func (w *workbench) rows(path string) (out [][2]int64) {
	w.Helper()
	f, err := os.Open(filepath.Join(w.dir, path))
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	r := parquet.NewGenericReader[struct {
		Point int32 `parquet:"point"`
		Seed  int64 `parquet:"seed"`
	}](f)
	defer r.Close()
	rows := make([]struct {
		Point int32 `parquet:"point"`
		Seed  int64 `parquet:"seed"`
	}, r.NumRows())
	if n, err := r.Read(rows); n != len(rows) || err != nil && !errors.Is(err, io.EOF) {
		w.Fatal(n, err)
	}
	for _, x := range rows {
		out = append(out, [2]int64{int64(x.Point), x.Seed})
	}
	return out
}

// A wrong token, an old binary and a missing server are told, with status 2; a worker
// that has nothing to do ends by itself.
func TestWorkersThatDoNotFitAreToldSo(t *testing.T) {
	const endless = "set = [\"duration=365d\", \"pool.main.replicas=20\"]\n" // nothing ends while we look
	w := newWorkbench(t, map[string]string{"tiny.toml": tinyExperiment, "endless.toml": endless + tinySweep, "wrong": "not the token\n"})
	address := freeAddress(t)
	sweep, sweepOut := w.start("sweep", "endless.toml", "-q", "--workers", "1", "--listen", address)
	token := filepath.Join(w.dir, "out", ".queue", "endless-sweep", "token")
	w.until("the token's file", func() bool { _, err := os.Stat(token); return err == nil })

	out := w.run(exitInput, "worker", "--nats", "nats://"+address, "--token-file", "wrong")
	if !strings.Contains(out, "refuses the credentials") {
		t.Error(out)
	}
	out = w.run(exitInput, "worker", "--nats", "nats://"+address, "--token-file", "nowhere")
	if !strings.Contains(out, "--token-file: ") {
		t.Error(out)
	}
	out = w.run(exitInput, "worker", "--nats", "nats://token@"+address)
	if !strings.Contains(out, "SIM_NATS_TOKEN") {
		t.Error(out)
	}
	// Another binary: the same program with a byte more.
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(w.dir, "old-sim")
	if err := os.WriteFile(old, append(text, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, old, "worker", "--nats", "nats://"+address, "--token-file", token)
	cmd.Env = append(os.Environ(), asSim+"=1")
	told, err := cmd.CombinedOutput()
	if exitStatus(err) != exitInput || !bytes.Contains(told, []byte("refused: the coordinator is sim")) {
		t.Errorf("status %d\n%s", exitStatus(err), told)
	}
	if err := sweep.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if got := exitStatus(sweep.Wait()); got != exitInterrupted || !strings.Contains(sweepOut.String(), "is refused: it is sim") {
		t.Errorf("status %d\n%s", got, sweepOut)
	}
	out = w.run(exitInternal, "worker", "--nats", "nats://"+address, "--token-file", "wrong", "--idle", "1s")
	if !strings.Contains(out, "cannot be reached") {
		t.Error(out)
	}
}
