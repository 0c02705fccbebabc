package workloads

import (
	"math"
	"slices"

	"slosim/sim/clock"
)

// Shifted returns the rate as it is d later: what was at t = d is at t = 0. The
// start of the week is the caller's to move.
func (r Rate) Shifted(d clock.Duration) Rate {
	r.Windows = slices.Clone(r.Windows)
	for k := range r.Windows {
		r.Windows[k].At -= d
	}
	if r.Growth != 0 {
		r.Mean *= math.Pow(1+r.Growth, d.Seconds()/clock.Week.Seconds())
	}
	r.Ramps = slices.Clone(r.Ramps)
	for k := range r.Ramps {
		r.Ramps[k].At -= d
	}
	r.Ladder.At -= d
	r.Bursts = slices.Clone(r.Bursts)
	for k := range r.Bursts {
		r.Bursts[k].At -= d
	}
	r.Add = slices.Clone(r.Add)
	for k := range r.Add {
		r.Add[k] = r.Add[k].Shifted(d)
	}
	return r
}
