package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if os.Getenv(asSim) != "" { // a test wants real processes of the program
		main()
	}
	testscript.Main(m, map[string]func(){"sim": main})
}

// TestScripts runs the binary as a person would. Beside the usual commands,
// scripts have:
//
//	status N sim ...           runs a command and wants exit status N
//	interrupt AFTER sim ...    sends it Ctrl-C after a time and wants status 130
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":    status,
			"interrupt": interrupt,
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitStatus(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: interrupt AFTER command args...")
	}
	after, err := time.ParseDuration(args[0])
	ts.Check(err)
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	ts.Check(cmd.Start())
	time.Sleep(after)
	ts.Check(cmd.Process.Signal(os.Interrupt))
	err = cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs("interrupted.txt"), out.Bytes(), 0o644))
	if got := exitStatus(err); got != exitInterrupted {
		ts.Fatalf("exit status %d, want %d:\n%s", got, exitInterrupted, out.String())
	}
}

func exitStatus(err error) int {
	var e *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.ExitCode()
	}
	return -1
}

// TestCrashPrintsTheCommandThatReplaysIt: a broken invariant is status 3 with a
// message, not a stack.
func TestCrashPrintsTheCommandThatReplaysIt(t *testing.T) {
	t.Setenv("SIM_STACK", "")
	var b bytes.Buffer
	code := crashed(&b, []string{"run", "x.toml", "--set", `slo."chat TTFT".threshold=3s`}, "blocks < 0")
	want := `sim run x.toml --set 'slo."chat TTFT".threshold=3s'`
	if code != exitInternal || !strings.Contains(b.String(), want) || strings.Contains(b.String(), "goroutine") {
		t.Errorf("status %d\n%s", code, b.String())
	}
}

// TestEveryVerbExplainsItself: each has a line of help and an example or none to
// give.
func TestEveryVerbExplainsItself(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.Short == "" || c.Args == nil {
			t.Errorf("%s: no help or no check of its arguments", c.Name())
		}
	}
}
