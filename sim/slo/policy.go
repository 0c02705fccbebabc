package slo

import "slosim/sim/clock"

// Policy says what happens as a budget is spent: shares of it, in percent.
type Policy struct{ Warn, Freeze, Stop float64 }

// StandardPolicy warns at half of the budget, freezes non-essential changes at
// 80 %, and all features when it is gone.
var StandardPolicy = Policy{50, 80, 100}

// PolicyOf returns the objective's policy, or the standard one.
func (o *Objective) PolicyOf() Policy {
	if o.Policy == (Policy{}) {
		return StandardPolicy
	}
	return o.Policy
}

// Kinds of a PolicyEvent.
const (
	Warned   = "warn"   // the first mark is passed
	Frozen   = "freeze" // non-essential changes wait
	Stopped  = "stop"   // all features wait
	Lifted   = "lift"   // spent is below the freeze mark again
	NewStart = "reset"  // a calendar window ended: the budget is whole again
)

// PolicyEvent is something that the policy does.
type PolicyEvent struct {
	Kind      string
	At        clock.Time
	Spent     float64 // share of the budget, at that time
	Projected bool    // after the ledger's end
}

// Events plays the policy over an objective's ledger, and, when the last day may
// repeat, over until minutes in all. A rolling window forgets what is older than
// itself, and is what was spent before t = 0 evenly in the window before it; a
// calendar window starts anew at its end. Budgets are those of a full window.
func Events(l *Ledger, o *Objective, budget float64, repeat bool, until clock.Duration) []PolicyEvent {
	if budget <= 0 {
		return nil
	}
	day, window, span := int(clock.Day/clock.Minute), int(o.Window/clock.Minute), len(l.Bad)
	at := func(m int) float64 {
		switch {
		case m < 0:
			return o.Spent * budget / float64(window)
		case m >= span:
			m = span - day + (m-span)%day
		}
		return float64(l.Bad[m])
	}
	end := span
	if repeat && span >= day {
		end = max(span, int(until/clock.Minute))
	}
	t := NewTracker(o)
	var out []PolicyEvent
	bad := o.Spent * budget
	for m := range end {
		if o.Rolling {
			bad -= at(m - window)
		} else if m > 0 && m%window == 0 {
			bad = 0
			if t.Reset() {
				out = append(out, PolicyEvent{NewStart, clock.Time(m) * clock.Time(clock.Minute), 0, m >= span})
			}
		}
		bad += at(m)
		t.Step(bad/budget, func(kind string) {
			out = append(out, PolicyEvent{kind, clock.Time(m+1) * clock.Time(clock.Minute), bad / budget, m >= span})
		})
		if len(out) >= maxPolicyEvents {
			break
		}
	}
	return out
}

// maxPolicyEvents bounds a policy that flutters.
const maxPolicyEvents = 200

// Week is a budget's ledger over seven days from t = 0, for the weekly review.
type Week struct {
	From, To  clock.Time
	Good, Bad int64
	Spent     float64 // share of the budget spent in the week
	Burn      float64 // 1 = the rate that just uses the window's budget up
}

// Weeks cuts a ledger into weeks; the last one may be short.
func Weeks(l *Ledger, o *Objective, budget float64) []Week {
	week := int(clock.Week / clock.Minute)
	var out []Week
	for from := 0; from < len(l.Bad); from += week {
		to := min(from+week, len(l.Bad))
		w := Week{From: clock.Time(from) * clock.Time(clock.Minute), To: clock.Time(to) * clock.Time(clock.Minute)}
		for m := from; m < to; m++ {
			w.Good += l.Good[m]
			w.Bad += l.Bad[m]
		}
		w.Spent = float64(w.Bad) / budget
		if all := w.Good + w.Bad; all > 0 {
			w.Burn = float64(w.Bad) / float64(all) / (1 - o.Target)
		}
		out = append(out, w)
	}
	return out
}
