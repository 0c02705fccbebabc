package workloads

import "slosim/sim/clock"

// Reschedule gives a change of the shaper another time: from now on its cohort, by
// its number in requests, forms when ch says so. Lengths stay.
func (s *Shaper) Reschedule(cohort int32, ch Change) {
	for k := range s.cohorts {
		if s.cohorts[k].id == cohort {
			s.cohorts[k].change = ch
		}
	}
}

// Replan goes on under another intensity, which is the old one up to now, and
// returns when the arrival that was announced last comes under it. ok is false when
// it does not come any more, or when the process is no renewal process: then nothing
// is changed.
func (a *Arrivals) Replan(c *Class, in Intensity, seed uint64, from, to clock.Time) (at clock.Time, ok bool) {
	if a.other != nil {
		return clock.Never, false
	}
	in = in.Drawn(seed, c.Stream, from, to)
	a.curve = NewCurve(&in, from, to)
	return a.curve.Invert(a.spent * a.scale)
}

// Renewal tells whether a rate's arrivals are a renewal process, which Replan can
// take elsewhere.
func (r *Rate) Renewal() bool { return len(r.Clients) == 0 && r.Hawkes.Branching == 0 }
