package slo

import (
	"slosim/sim/clock"
)

// MarkPercents are the shares of a budget that its policy reacts to: warn, freeze
// non-essential changes, freeze features.
var MarkPercents = [3]float64{50, 80, 100}

// Outlook is where a budget stands and where it goes.
type Outlook struct {
	Before    float64       // share gone at t = 0
	Spent     float64       // share spent within the span, without what was gone before
	Marks     [3]clock.Time // first time that 50, 80, 100 % are spent; Never within the window
	Projected float64       // share spent at the window's end; −1 without a projection
	Points    []Point       // the share spent over time, span first, then projection
	WeekAlarm bool          // 80 % within some seven days
}

// Point is the share of a budget that is spent by a time.
type Point struct {
	T    clock.Time
	Used float64
}

// Forecast says how a span goes on after its end.
type Forecast struct {
	Repeat bool // the last day of the span repeats until the window's end
	Step   int  // minutes between Points within the span; after it they are hourly
}

// Look returns the outlook of one replication's ledger: bad events against a
// budget of allowed bad events over window, spent already at t = 0.
func Look(l *Ledger, budget float64, window clock.Duration, spent float64, f Forecast) Outlook {
	o := Outlook{Before: spent, Projected: -1, Marks: [3]clock.Time{clock.Never, clock.Never, clock.Never}}
	end := int(window / clock.Minute)
	span := len(l.Bad)
	used, total := spent, 0.0
	mark := func(m int) {
		for i, p := range MarkPercents {
			if o.Marks[i] == clock.Never && used >= p/100 {
				o.Marks[i] = clock.Time(m+1) * clock.Time(clock.Minute)
			}
		}
		step := 60
		if m < span {
			step = max(1, f.Step)
		}
		if (m+1)%step == 0 || m == min(span, end)-1 {
			o.Points = append(o.Points, Point{clock.Time(m+1) * clock.Time(clock.Minute), used})
		}
	}
	day := int(clock.Day / clock.Minute)
	for m := range end {
		bad := 0.0
		switch {
		case m < span:
			bad = float64(l.Bad[m])
		case f.Repeat && span >= day:
			bad = float64(l.Bad[span-day+(m-span)%day])
		default:
			o.WeekAlarm = weekAlarm(o.Points, spent)
			return o
		}
		total += bad
		if budget > 0 {
			used = spent + total/budget
		}
		mark(m)
		if m == min(span, end)-1 {
			o.Spent = used - spent
		}
	}
	if f.Repeat || span >= end {
		o.Projected = used
	}
	o.WeekAlarm = weekAlarm(o.Points, spent)
	return o
}

// weekAlarm tells whether 80 % of the budget goes within any seven days.
func weekAlarm(points []Point, spent float64) bool {
	from, before := 0, spent
	for _, p := range points {
		for points[from].T <= p.T-clock.Time(clock.Week) {
			before = points[from].Used
			from++
		}
		if p.Used-before >= 0.8 {
			return true
		}
	}
	return false
}
