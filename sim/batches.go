package sim

import (
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// batches cuts an objective's events in each phase into parts of equal length, in
// whole minutes; the last one takes what is left.
func (r *recorder) batches(l *ledger) [][2][]float64 {
	var out [][2][]float64
	for _, ph := range r.plan.phases {
		bad, all := make([]float64, stats.Batches), make([]float64, stats.Batches)
		from := int(ph.from / clock.Time(clock.Minute))
		to := min(int((ph.to-1)/clock.Time(clock.Minute)), len(l.minutes.Bad)-1)
		for m := from; m <= to; m++ {
			k := (m - from) * stats.Batches / (to - from + 1)
			bad[k] += float64(l.minutes.Bad[m])
			all[k] += float64(l.minutes.Bad[m] + l.minutes.Good[m])
		}
		out = append(out, [2][]float64{bad, all})
	}
	return out
}
