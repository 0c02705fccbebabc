package report

import (
	"fmt"
	"slices"

	"slosim/sim"
	"slosim/sim/clock"
)

// burnDownChart shows what is left of an objective's budget, simulated and then
// projected.
func (s *story) burnDownChart(i int) *chart {
	o := &s.r.SLOs[i]
	curve := o.Budget.Curve
	if len(curve) < 2 {
		return nil
	}
	c := &chart{ID: fmt.Sprintf("budget%d", i), group: groupBudget, days: true, from: 0, to: min(s.budgetEnd(), clock.Time(o.Window)), Height: 230, Unit: "% left", labels: 16}
	var known, projected, lo, hi []float64
	least := 0.0
	for k, p := range curve {
		if p.T > c.to {
			break
		}
		c.t = append(c.t, p.T)
		left := 100 * (1 - p.Spent)
		least = min(least, left)
		lo, hi = append(lo, min(100, 100*(1-p.Hi))), append(hi, min(100, 100*(1-p.Lo)))
		known, projected = append(known, none64), append(projected, none64)
		if !p.Projected {
			known[k] = left
		}
		if p.Projected || k+1 < len(curve) && curve[k+1].Projected {
			projected[k] = left
		}
	}
	if o.Budget.Spent.R > 1 {
		c.band("budget left", "%", lo, hi, "--budget")
	}
	c.draw("budget left, simulated", "%", known, line{colour: "--budget", width: 2.2})
	c.draw("budget left, projected", "%", projected, line{colour: "--budget", width: 2, dash: "dashed"})
	c.max, c.min, c.every = 100, budgetFloor(least), 25
	for _, m := range o.Budget.Marks {
		if m.Percent <= 100 {
			c.levels = append(c.levels, level{100 - m.Percent, markName(m.Percent), "--muted"})
		}
	}
	for _, a := range o.Alerts[:min(maxTicks, len(o.Alerts))] {
		if a.Fired <= c.to {
			c.ticks = append(c.ticks, alertTick(a))
		}
	}
	if c.to > s.r.End {
		c.bands = []timeBand{{s.r.End, c.to, "projected", "--arrivals", .07}}
	}
	c.Title = s.burnDownTitle(o)
	c.Aid = "Share of the " + span(o.Window) + " budget that is left."
	if curve[len(curve)-1].Projected {
		c.Aid = "Share of the " + span(o.Window) + " budget that is left; dashed = the run's last whole day repeated."
	}
	if len(c.ticks) > 0 {
		c.Aid += " Triangles: burn-rate alerts (first replication)."
	}
	return c
}

// markName says what a mark of the budget stands for.
func markName(percent float64) string {
	return map[float64]string{50: "50 % spent: warn", 80: "80 %: freeze changes", 100: "all spent"}[percent]
}

// budgetFloor is the lower end of a burn-down's axis.
func budgetFloor(least float64) float64 {
	switch {
	case least >= 0:
		return 0
	case least > -25:
		return -25
	}
	return -50
}

// budgetEnd is the common end of all burn-downs.
func (s *story) budgetEnd() clock.Time {
	end := s.r.End
	for i := range s.r.SLOs {
		if curve := s.r.SLOs[i].Budget.Curve; len(curve) > 0 {
			end = max(end, curve[len(curve)-1].T)
		}
	}
	return end
}

func (s *story) burnDownTitle(o *sim.SLO) string {
	m := mark(&o.Budget, 100)
	switch {
	case m != nil && m.Reached:
		text := "The budget is gone on " + s.when(m.At)
		if half := mark(&o.Budget, 50); half != nil && half.Reached && !goneBefore(o, 50) {
			text += ", half of it on " + s.when(half.At)
		}
		return text
	case o.Budget.Projected.R > 0:
		return inPercent.value(o.Budget.Projected) + " of the budget is spent at the window's end"
	}
	return inPercent.value(gone(o)) + " of the budget is spent at the run's end"
}

// burnChart shows the burn rates of all objectives against the alerts' factors.
func (s *story) burnChart() *chart {
	c := s.runChart("burn", "")
	var points []sim.BurnPoint
	for i := range s.r.SLOs {
		if b := s.r.SLOs[i].Burn; len(b) > len(points) {
			points = b
		}
	}
	c.t = nil
	for _, p := range points {
		c.t = append(c.t, p.T)
	}
	c.Unit, c.Height, c.labels = "× allowed", 230, 16
	top, name := 0.0, ""
	for _, o := range s.focusFirst() {
		if len(c.lines) == maxBurnLines || len(o.Burn) != len(points) {
			continue
		}
		values := make([]float64, len(points))
		for k, p := range o.Burn {
			values[k] = p.Rate
		}
		if v := largest(values); v > top {
			top, name = v, o.Name
		}
		colour := fmt.Sprintf("--cohort%d", len(c.lines))
		c.draw(short(o.Name, 40), "×", values, line{colour: colour})
		c.Keys = append(c.Keys, key{short(o.Name, 40), colour, "line"})
	}
	if len(c.lines) == 0 || top == 0 {
		return nil
	}
	for _, f := range []float64{1, 6, 14.4} {
		if f <= top*1.5 {
			c.levels = append(c.levels, level{f, burnName(f), "--muted"})
		}
	}
	c.max = niceMax(1.15 * max(top, c.largest()))
	c.joinLevels()
	c.Title = fmt.Sprintf("The budget burns up to %s times as fast as allowed (%s)", factor(top), short(name, 40))
	if top <= 1 {
		c.Title = fmt.Sprintf("The budget never burns faster than allowed: its highest rate is %s (%s)", factor(top), short(name, 40))
	}
	c.Aid = "Bad share of the last hour ÷ allowed share; at 1 the budget lasts exactly its window. Pages go out at 14.4 (over 1 h and 5 min) and 6 (over 6 h and 30 min)."
	if n := len(s.r.SLOs); n > len(c.lines) {
		c.Aid += fmt.Sprintf(" Shown: %d of %d objectives.", len(c.lines), n)
	}
	return c
}

// levelGap is the room that the name above a level needs, in pixels.
const levelGap = 20

// joinLevels gives levels that lie too close for a name each one label, at the
// highest of them. They are in ascending order.
func (c *chart) joinLevels() {
	for i := len(c.levels) - 1; i > 0; {
		top := i
		for i--; i >= 0 && c.pixel(c.levels[i].value)-c.pixel(c.levels[top].value) < levelGap; i-- {
			c.levels[top].name += "; " + c.levels[i].name
			c.levels[i].name = ""
		}
	}
}

// focusFirst lists the objectives, the one that decided before the others.
func (s *story) focusFirst() []*sim.SLO {
	out := []*sim.SLO{}
	if s.focus != nil {
		out = append(out, s.focus)
	}
	for i := range s.r.SLOs {
		if o := &s.r.SLOs[i]; o != s.focus {
			out = append(out, o)
		}
	}
	return out
}

// burnName says what a burn rate means.
func burnName(f float64) string {
	if f == 1 {
		return "1×: the budget lasts its window"
	}
	return trimZeros(number(f, 1)) + "×: page"
}

// maxBurnLines bounds the lines of the burn chart to what can be told apart.
const maxBurnLines = 4

func alertTick(a sim.Alert) tick {
	t := tick{t: a.Fired, name: clean(a.Name), colour: "--slo", symbol: "triangle"}
	if a.Severity != "page" {
		t.colour = "--ticket"
	}
	return t
}

// alertKeys explains the triangles that occur.
func alertKeys(alerts []sim.Alert) []key {
	var out []key
	has := func(page bool) bool {
		return slices.ContainsFunc(alerts, func(a sim.Alert) bool { return (a.Severity == "page") == page })
	}
	if has(true) {
		out = append(out, key{"burn-rate page", "--slo", "tick"})
	}
	if has(false) {
		out = append(out, key{"burn-rate ticket", "--ticket", "tick"})
	}
	return out
}
