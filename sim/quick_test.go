package sim

import (
	"math"
	"testing"

	"slosim/sim/clock"
	"slosim/workloads"
)

// The busiest two hours are where the tokens are, and what they hold is what the
// whole experiment holds there.
func TestQuickIsTheBusiestSpan(t *testing.T) {
	e := launch(t, 4)
	short, at, err := Quick(e)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(e)
	if err != nil {
		t.Fatal(err)
	}
	q, err := newPlan(short)
	if err != nil {
		t.Fatal(err)
	}
	n := p.tokensIn(at, at.Add(quickSpan))
	if got := q.tokensIn(0, clock.Time(quickSpan)); math.Abs(got/n-1) > 1e-6 {
		t.Errorf("%g tokens in two hours from %v on, %g when cut out", n, clock.Duration(at), got)
	}
	for s := clock.Time(0); s.Add(quickSpan) <= clock.Time(e.Duration); s = s.Add(clock.Hour) {
		if m := p.tokensIn(s, s.Add(quickSpan)); m > n*(1+1e-9) {
			t.Errorf("from %v on there are more", clock.Duration(s))
		}
	}
	if short.Duration != quickSpan || short.Replications != 1 {
		t.Errorf("%v, %d replications", short.Duration, short.Replications)
	}
	e.Traffic[0].Trace = &workloads.Trace{}
	if _, _, err := Quick(e); err != ErrNoQuick {
		t.Error(err)
	}
}
