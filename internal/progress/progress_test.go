package progress

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// clocked returns a meter whose clock the test moves.
func clocked(mode Mode) (*Meter, *bytes.Buffer, *time.Time) {
	var b bytes.Buffer
	at := time.Unix(1000, 0)
	m := New(&b, mode)
	m.now = func() time.Time { return at }
	m.begun, m.stage = at, at
	return m, &b, &at
}

// Anything but a terminal gets a plain line now and then, none from a short job.
func TestPlainLinesComeNowAndThen(t *testing.T) {
	m, b, at := clocked(Auto)
	for i := range 30 {
		*at = at.Add(time.Second)
		m.Update(State{Stage: "sweep", Done: i + 1, Total: 60, Unit: "simulations", Requests: int64(100_000 * (i + 1)), Known: 0, Failed: i / 20})
	}
	m.Done()
	want := `sim: sweep: 5 of 60 simulations, 500 K requests, 100 K/s, 55s left
sim: sweep: 15 of 60 simulations, 1.50 M requests, 100 K/s, 45s left
sim: sweep: 25 of 60 simulations, 1 failed, 2.50 M requests, 100 K/s, 35s left
sim: sweep: 30 of 60 simulations, 1 failed, 3.00 M requests, 100 K/s, 30s left
`
	if b.String() != want {
		t.Errorf("\n%s", b.String())
	}
	m, b, at = clocked(Auto)
	m.Update(State{Stage: "short", Done: 1, Total: 2})
	*at = at.Add(2 * time.Second)
	m.Update(State{Stage: "short", Done: 2, Total: 2})
	if m.Done(); b.Len() > 0 {
		t.Error(b.String())
	}
}

// What was found in the store says nothing about how long the rest takes.
func TestKnownResultsCostNoTime(t *testing.T) {
	m, _, at := clocked(Auto)
	*at = at.Add(10 * time.Second)
	m.Update(State{Stage: "sweep", Done: 90, Known: 80, Total: 100})
	if got := m.eta(*at); got != 10*time.Second {
		t.Error(got)
	}
}

// A program reads one object per line; the last one says that it is.
func TestJSONLinesAreForPrograms(t *testing.T) {
	m, b, at := clocked(JSON)
	for i := range 25 {
		*at = at.Add(100 * time.Millisecond)
		m.Update(State{Stage: "plan", Done: i + 1, Total: 50, Unit: "simulations", Requests: 1000})
	}
	m.Say("a worker is gone")
	m.Done()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d lines:\n%s", len(lines), b)
	}
	var last struct {
		Done, Total int
		Share       float64
		ETA         float64 `json:"eta_s"`
		Finished    bool
	}
	if err := json.Unmarshal([]byte(lines[4]), &last); err != nil || !last.Finished || last.Done != 25 || last.Share != .5 || last.ETA != 2.5 {
		t.Errorf("%+v, %v", last, err)
	}
	if lines[3] != `{"message":"a worker is gone"}` {
		t.Error(lines[3])
	}
}

func TestQuietSaysNothingButMessages(t *testing.T) {
	m, b, at := clocked(Quiet)
	*at = at.Add(time.Minute)
	m.Update(State{Stage: "x", Done: 1, Total: 2})
	if m.Done(); b.Len() > 0 {
		t.Error(b.String())
	}
}

// The line of a terminal fits it.
func TestTheLineTellsShareSpeedAndRest(t *testing.T) {
	m, _, at := clocked(Auto)
	*at = at.Add(4 * time.Second)
	m.Update(State{Stage: "simulating", Share: .25, Requests: 1_430_000})
	if got, want := m.line(*at), "simulating █████░░░░░░░░░░░░░░░ 25 %  1.43 M requests  358 K/s  12s left"; got != want {
		t.Errorf("%q", got)
	}
	if got := cut("abcdef", 4); got != "abc…" {
		t.Error(got)
	}
	for d, want := range map[time.Duration]string{40 * time.Second: "40s", 80 * time.Second: "1m 20s", 3 * time.Hour: "3h 0m", 50 * time.Hour: "2d 2h"} {
		if got := span(d); got != want {
			t.Errorf("%s: %q", d, got)
		}
	}
}

// A job that has nothing new to tell for minutes still shows that it lives.
func TestLinesComeDuringALongSimulation(t *testing.T) {
	m, b, at := clocked(Auto)
	m.again() // nothing is known yet
	m.Update(State{Stage: "sweep", Total: 4, Unit: "simulations"})
	for range 20 {
		*at = at.Add(time.Second)
		m.again()
	}
	m.Update(State{Stage: "review"})
	*at = at.Add(10 * time.Second)
	m.again()
	want := "sim: sweep: 0 of 4 simulations\nsim: sweep: 0 of 4 simulations\nsim: review\n"
	if b.String() != want {
		t.Errorf("\n%s", b.String())
	}
	m, b, at = clocked(JSON)
	m.Update(State{Stage: "sweep", Total: 4})
	for range 20 {
		*at = at.Add(time.Second)
		m.again()
	}
	if n := strings.Count(b.String(), "\n"); n != 21 {
		t.Errorf("%d lines in 20 s", n)
	}
}

// Start's clock ends with Done, however often that is called.
func TestStartEndsWithDone(t *testing.T) {
	var b bytes.Buffer
	m := Start(&b, JSON)
	m.Done()
	m.Done()
	select {
	case <-m.stop:
	default:
		t.Error("the clock goes on")
	}
}
