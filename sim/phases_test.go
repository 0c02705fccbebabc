package sim

import (
	"testing"

	"slosim/sim/clock"
	"slosim/workloads"
)

// A roll-back is a phase of its own, in order of time even when another change
// lies between a change and its roll-back.
func TestRollBackIsAPhase(t *testing.T) {
	e := Experiment{Duration: 60 * clock.Hour, Changes: []workloads.Change{
		{Name: "a", At: 8 * clock.Hour, Ramp: 6 * clock.Hour, Until: 40 * clock.Hour},
		{Name: "b", At: 20 * clock.Hour},
	}}
	want := []phaseSpan{
		{"before", 0, 8}, {"ramp a", 8, 14}, {"after a", 14, 20}, {"after b", 20, 40}, {"without a", 40, 60},
	}
	got := phasesOf(e)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		w.from, w.to = w.from*clock.Time(clock.Hour), w.to*clock.Time(clock.Hour)
		if got[i] != w {
			t.Errorf("phase %d is %+v, want %+v", i, got[i], w)
		}
	}
}
