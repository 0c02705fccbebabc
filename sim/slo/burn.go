package slo

import (
	"fmt"
	"math"

	"slosim/sim/clock"
)

// Pair is one multi-window burn-rate alert: it fires when the burn rate over the
// long and over the short window both exceed Factor.
type Pair struct {
	Long, Short clock.Duration
	Factor      float64
	Severity    string // "page" or "ticket"
}

// Name writes the pair as "page 14.4x 1h/5m".
func (p Pair) Name() string {
	return fmt.Sprintf("%s %gx %s/%s", p.Severity, p.Factor, p.Long, p.Short)
}

// StandardPairs are the four alerts of the SRE workbook for a 30-day window: 2 %
// of the budget in an hour, 5 % in six hours, 10 % in a day, 10 % in three days.
var StandardPairs = []Pair{
	{clock.Hour, 5 * clock.Minute, 14.4, "page"},
	{6 * clock.Hour, 30 * clock.Minute, 6, "page"},
	{clock.Day, 2 * clock.Hour, 3, "ticket"},
	{3 * clock.Day, 6 * clock.Hour, 1, "ticket"},
}

// MinEvents is how many events the short window needs before an alert may fire,
// where an objective does not say.
const MinEvents = 20

// Firing is one time that an alert fired.
type Firing struct {
	Pair     Pair
	Fired    clock.Time
	Resolved clock.Time // clock.Never when still firing at the end
}

// Burn answers burn-rate questions about a ledger. Before t = 0 history is
// clean: the expected traffic, all good.
type Burn struct {
	good, bad []int64
	target    float64
	before    func(d clock.Duration) float64 // expected events in [−d, 0)
	minEvents float64
}

// NewBurn returns the burn rates of a ledger; before tells the expected number
// of events in the span d before t = 0 (nil: none).
func NewBurn(l *Ledger, target float64, before func(d clock.Duration) float64) *Burn {
	b := &Burn{target: target, before: before, minEvents: MinEvents}
	b.good, b.bad = l.prefix()
	return b
}

// Guard sets how many events the short window needs before an alert may fire; 0
// leaves it as it is.
func (b *Burn) Guard(events int64) *Burn {
	if events > 0 {
		b.minEvents = float64(events)
	}
	return b
}

// Rate returns the burn rate at the end of minute m (so over [end − w, end)) and
// the events behind it: the bad share divided by 1 − target.
func (b *Burn) Rate(m int, w clock.Duration) (rate, events float64) {
	from := m + 1 - int(w/clock.Minute)
	extra := 0.0
	if from < 0 {
		if b.before != nil {
			extra = b.before(clock.Duration(-from) * clock.Minute)
		}
		from = 0
	}
	bad := float64(b.bad[m+1] - b.bad[from])
	all := bad + float64(b.good[m+1]-b.good[from]) + extra
	if all == 0 {
		return 0, 0
	}
	return bad / all / (1 - b.target), all
}

// Minutes returns the length of the ledger.
func (b *Burn) Minutes() int { return len(b.good) - 1 }

// Alerts evaluates the pairs at the end of every minute and returns the firings
// in order of pair and time.
func (b *Burn) Alerts(pairs []Pair) []Firing {
	var out []Firing
	for _, p := range pairs {
		firing := false
		for m := range b.Minutes() {
			long, _ := b.Rate(m, p.Long)
			on := long >= p.Factor
			if on {
				short, n := b.Rate(m, p.Short)
				on = short >= p.Factor && n >= b.minEvents
			}
			at := clock.Time(m+1) * clock.Time(clock.Minute)
			if on && !firing {
				out = append(out, Firing{Pair: p, Fired: at, Resolved: clock.Never})
			}
			if !on && firing {
				out[len(out)-1].Resolved = at
			}
			firing = on
		}
	}
	return out
}

// DetectionTime is the closed form of an alert's delay after a step from a clean
// history to a constant bad share e under constant traffic: the time until both
// windows exceed the factor, +Inf if they never do. It ignores the guard of few events.
func (p Pair) DetectionTime(target, e float64) float64 {
	if share := p.Factor * (1 - target); share <= e {
		return share / e * p.Long.Seconds()
	}
	return math.Inf(1)
}

// ResetTime is the closed form of how long an alert goes on firing after a
// constant bad share e ends: until the share in the short window, which it has
// filled, falls below the factor. +Inf if the alert cannot fire at all.
func (p Pair) ResetTime(target, e float64) float64 {
	if share := p.Factor * (1 - target); share <= e {
		return (1 - share/e) * p.Short.Seconds()
	}
	return math.Inf(1)
}
