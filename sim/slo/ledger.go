package slo

import "slosim/sim/clock"

// Ledger counts good and bad events per minute of their decision.
type Ledger struct {
	Good, Bad []int64 // index: whole minutes since t = 0
}

// NewLedger returns a ledger over a span; events outside are counted in its
// first or last minute.
func NewLedger(span clock.Duration) *Ledger {
	n := max(1, int((span+clock.Minute-1)/clock.Minute))
	return &Ledger{Good: make([]int64, n), Bad: make([]int64, n)}
}

// Add counts one event decided at t.
func (l *Ledger) Add(t clock.Time, good bool) {
	m := min(max(0, int(t/clock.Time(clock.Minute))), len(l.Good)-1)
	if good {
		l.Good[m]++
	} else {
		l.Bad[m]++
	}
}

// Totals returns all good and all bad events.
func (l *Ledger) Totals() (good, bad int64) {
	for m := range l.Good {
		good += l.Good[m]
		bad += l.Bad[m]
	}
	return good, bad
}

// BadMinutes returns how many minutes have a bad share above 1 − target: the
// time-based view of the budget.
func (l *Ledger) BadMinutes(target float64) int {
	n := 0
	for m := range l.Good {
		if all := l.Good[m] + l.Bad[m]; float64(l.Bad[m]) > (1-target)*float64(all) {
			n++
		}
	}
	return n
}

// prefix returns cumulative good and bad counts: entry m holds the minutes
// before m.
func (l *Ledger) prefix() (good, bad []int64) {
	good, bad = make([]int64, len(l.Good)+1), make([]int64, len(l.Bad)+1)
	for m := range l.Good {
		good[m+1] = good[m] + l.Good[m]
		bad[m+1] = bad[m] + l.Bad[m]
	}
	return good, bad
}

// Between returns the events of the minutes that [from, to] touches.
func (l *Ledger) Between(from, to clock.Time) (good, bad int64) {
	for m := max(0, int(from/clock.Time(clock.Minute))); m <= min(int(to/clock.Time(clock.Minute)), len(l.Good)-1); m++ {
		good += l.Good[m]
		bad += l.Bad[m]
	}
	return good, bad
}

// AddN counts n events decided at t.
func (l *Ledger) AddN(t clock.Time, good bool, n int64) {
	m := min(max(0, int(t/clock.Time(clock.Minute))), len(l.Good)-1)
	if good {
		l.Good[m] += n
	} else {
		l.Bad[m] += n
	}
}

// Merge adds the events of a ledger over the same span.
func (l *Ledger) Merge(o *Ledger) {
	for m := range min(len(l.Good), len(o.Good)) {
		l.Good[m] += o.Good[m]
		l.Bad[m] += o.Bad[m]
	}
}
