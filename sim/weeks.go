package sim

import (
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// Week is one line of an objective's weekly review, over all replications.
type Week struct {
	From, To  clock.Time
	Good, Bad int64
	Spent     stats.Estimate // share of the window's budget spent in the week
	Burn      stats.Estimate // 1 = the rate that just uses the window's budget up
	Alarm     bool           // 80 % of the budget within this week
}

func weeksOf(list []sloRep) []Week {
	var out []Week
	for i, first := range list[0].weeks {
		w := Week{From: first.From, To: first.To}
		w.Good = sumOf(list, func(r sloRep) int64 { return r.weeks[i].Good })
		w.Bad = sumOf(list, func(r sloRep) int64 { return r.weeks[i].Bad })
		w.Spent = stats.Of(over(list, func(r sloRep) float64 { return r.weeks[i].Spent }), w.Bad)
		w.Burn = stats.Of(over(list, func(r sloRep) float64 { return r.weeks[i].Burn }), w.Good+w.Bad)
		w.Spent.Lo, w.Burn.Lo = max(w.Spent.Lo, 0), max(w.Burn.Lo, 0)
		w.Alarm = w.Spent.V >= 0.8
		out = append(out, w)
	}
	return out
}
