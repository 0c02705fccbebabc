package sim

import (
	"context"
	"sync/atomic"
	"testing"

	"slosim/engine"
	"slosim/sim/clock"
	"slosim/sim/rng"
)

// A prompt falls into the same bucket by tokens as by the edges themselves.
func TestBandsFollowThePromptEdges(t *testing.T) {
	for n := int32(0); n < 70_000; n++ {
		if a, b := bandOfTokens(n), bandOf(float64(n)); a != b {
			t.Fatalf("%d tokens: bucket %d, by the edges %d", n, a, b)
		}
	}
	if k := bandOfTokens(1 << 30); k != lengthBands-1 {
		t.Errorf("the longest prompt is in bucket %d of %d", k, lengthBands)
	}
}

// A request counts in its phase and window, and its last token in the window it falls into,
// also where that is not the window of the newest request.
func TestRequestsCountWhereTheyAreSent(t *testing.T) {
	p, c := atRest(t, shift(t))
	if len(p.phases) < 2 || p.windows < 2 {
		t.Fatalf("%d phases, %d windows", len(p.phases), p.windows)
	}
	end, r := clock.Time(p.exp.Duration), c.rec
	draws := rng.New(1, rng.Rating, "places")
	done := make([]int32, p.windows)
	const n = 20_000
	phase := int32(0)
	for i := range int64(n) {
		now := end / n * clock.Time(i)
		f := flight{}
		f.req.Send, f.req.Prompt, f.req.Output = now, 100, 10
		for now >= p.phases[phase].to {
			phase++
		}
		r.arrival(&f, 0, phase, 0)
		k := now / clock.Time(p.width)
		if want := (tally{&r.cells[0][phase], &r.windows[0][k], 0, phase}); *f.at != want || !f.counted() {
			t.Fatalf("a request sent at %d does not count in window %d and phase %d", now, k, phase)
		}
		e := engine.Event{At: now + clock.Time((draws.Float64(i)-0.5)*4*float64(p.width))}
		if r.completed(&f, &e); e.At >= 0 && e.At < end {
			done[e.At/clock.Time(p.width)]++
		}
	}
	for k := range done {
		if got := r.windows[0][k].done; got != done[k] {
			t.Errorf("%d last tokens in window %d, want %d", got, k, done[k])
		}
	}
}

// atRest builds one replication.
func atRest(t testing.TB, e Experiment) (*plan, *cluster) {
	t.Helper()
	p, err := newPlan(e)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCluster(p, 1, new(atomic.Int64))
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

// replication runs one replication and leaves it open to look at.
func replication(t testing.TB, e Experiment) (*plan, *cluster) {
	t.Helper()
	p, c := atRest(t, e)
	if err := c.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return p, c
}
