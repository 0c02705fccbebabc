package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slosim/sim/clock"
	"slosim/sim/kernel"
	"slosim/sim/slo"
	"slosim/sim/stats"
	"slosim/workloads"
)

// The budget policy in the loop: a control process reads the error budgets once a
// minute, knowing only what has happened by then, and holds changes back while one of
// the budgets they depend on is frozen. A change that has begun goes on.

// Hold keeps a change back while error budgets are frozen.
type Hold struct {
	Change    string
	SLOs      []string // whose budgets decide: one that is frozen is enough
	Essential bool     // it waits only while a budget is gone altogether
}

// HeldChange is what became of a change that budgets may hold back.
type HeldChange struct {
	Hold
	Planned clock.Time
	Held    int            // replications in which it was held back
	Never   int            // of them: to the end of the run
	Start   stats.Estimate // seconds, of the replications in which it started
}

// farAway is when a change starts that does not.
const farAway = 3660 * clock.Day

// meter is an error budget as an operator sees it: what is known by now.
type meter struct {
	slo     int
	tracker *slo.Tracker
	known   []int64 // bad events in all, at the end of each minute
	gone    int64   // of them: no part of the budget any more
	reset   bool    // a calendar window has ended: what was spent at t = 0 is gone too
	used    float64 // share of the budget
	alarm   bool    // 80 % within seven days
	told    bool    // changes depend on it: what the policy does is on the timeline
}

// gate is a change that may be held back, in one replication.
type changeGate struct {
	hold    *Hold
	change  int // of the experiment
	meters  []*meter
	decided bool
	held    bool
	start   clock.Time // clock.Never: not yet
}

// heldRep is what became of a hold in one replication.
type heldRep struct {
	held  bool
	start clock.Time
}

// policy is the state of the budget policy in one replication; nil without one.
type policy struct {
	meters  []*meter
	gates   []*changeGate
	changes []workloads.Change // as they are in force
	sent    map[int]int64      // per adaptive objective: requests of its class at the last look
	rated   map[int]ratings
}

// newPolicy returns the budget policy of an experiment in which something depends on
// it; nil otherwise.
func (c *cluster) newPolicy() *policy {
	e := &c.plan.exp
	q := &policy{changes: slices.Clone(e.Changes), sent: map[int]int64{}, rated: map[int]ratings{}}
	of := map[int]*meter{}
	meterOf := func(k int) *meter {
		if of[k] == nil {
			of[k] = &meter{slo: k, tracker: slo.NewTracker(&e.SLOs[k])}
			q.meters = append(q.meters, of[k])
		}
		return of[k]
	}
	for i := range e.Holds {
		h := &e.Holds[i]
		g := &changeGate{hold: h, start: clock.Never, change: slices.IndexFunc(e.Changes, func(ch workloads.Change) bool { return ch.Name == h.Change })}
		for _, name := range h.SLOs {
			if k := c.plan.sloNamed(name); k >= 0 {
				g.meters = append(g.meters, meterOf(k))
				meterOf(k).told = true
			}
		}
		if g.change >= 0 && e.Changes[g.change].At <= 0 { // it is in force from the start
			g.decided, g.start = true, clock.Time(e.Changes[g.change].At)
		}
		q.gates = append(q.gates, g)
	}
	adaptive := false
	for k := range e.SLOs {
		if a := e.SLOs[k].Adaptive; a != nil {
			adaptive = true
			meterOf(k)
		}
	}
	if len(e.Holds) == 0 && !adaptive {
		return nil
	}
	return q
}

// watchBudgets is the body of the control process.
func (c *cluster) watchBudgets(p *kernel.Process) {
	until(p, 0)
	c.holdBack(p.Now())
	for end := clock.Time(c.plan.exp.Duration); p.Now() < end; {
		next := p.Now()/clock.Time(clock.Minute)*clock.Time(clock.Minute) + clock.Time(clock.Minute)
		for _, g := range c.policy.gates {
			if at := c.planned(g); !g.decided && at > p.Now() && at < next {
				next = at
			}
		}
		p.Sleep(next.Sub(p.Now()))
		if now := p.Now(); now%clock.Time(clock.Minute) == 0 {
			for _, m := range c.policy.meters {
				c.read(now, m)
			}
			c.adapt(now)
		}
		if p.Now() < end { // nothing starts at the end
			c.holdBack(p.Now())
		}
	}
}

func (c *cluster) planned(g *changeGate) clock.Time {
	if g.change < 0 {
		return clock.Never
	}
	return clock.Time(c.plan.exp.Changes[g.change].At)
}

// read brings a budget up to date at the end of a minute.
func (c *cluster) read(now clock.Time, m *meter) {
	o := &c.plan.exp.SLOs[m.slo]
	minute, window := int(now/clock.Time(clock.Minute)), int(o.Window/clock.Minute)
	known := c.knownEvents(m.slo).bad + c.overdue(now, m.slo, 366*clock.Day)
	before := o.Spent
	switch {
	case m.reset:
		before = 0
	case o.Rolling:
		before *= max(0, 1-float64(minute)/float64(window))
	}
	if o.Rolling && minute > window {
		m.gone += m.known[minute-1-window] - m.at(minute-2-window)
	}
	m.known = append(m.known, known)
	note := func(format string, args ...any) {
		if m.told {
			c.note(now, fmt.Sprintf("budget of %q: ", o.Name)+fmt.Sprintf(format, args...))
		}
	}
	budget := c.budgetBy(now, m.slo)
	if !(budget > 0) {
		return
	}
	m.used = before + float64(known-m.gone)/budget
	m.tracker.Step(m.used, func(kind string) {
		note("%s, %s spent", policyText[kind], percent(m.used))
	})
	if !o.Rolling && minute%window == 0 {
		m.gone, m.reset, m.used = known, true, 0
		if m.tracker.Reset() {
			note("a new window, it is whole again")
		}
	}
	week := float64(known-m.at(minute-1-int(clock.Week/clock.Minute))) / budget
	if on := week >= 0.8; on != m.alarm {
		if m.alarm = on; on {
			note("alarm, %s of it went within seven days", percent(week))
		}
	}
}

// at returns what was known at the end of a minute; 0 before the first.
func (m *meter) at(minute int) int64 {
	if minute < 0 {
		return 0
	}
	return m.known[minute]
}

// policyText says what the policy does.
var policyText = map[string]string{
	slo.Warned: "warning", slo.Frozen: "non-essential changes are frozen", slo.Stopped: "all changes are frozen", slo.Lifted: "the freeze is lifted",
}

// knownEvents counts an objective's events that are decided by now.
func (c *cluster) knownEvents(k int) counts {
	var sum counts
	add := func(l *ledger) {
		for _, n := range l.phases {
			sum.good += n.good
			sum.bad += n.bad
		}
	}
	add(&c.rec.ledgers[k])
	if o := &c.plan.exp.SLOs[k]; o.Metric == slo.ITL { // the pools' meters hold them until the end
		for pool, m := range c.gaps {
			if m.ledgers != nil && c.plan.servesClass(pool, o.Class) {
				add(m.ledgers[k])
			}
		}
	}
	return sum
}

// budgetBy returns how many bad events an objective allows in its window: from the
// planned rates, or, where traffic has no closed form, from what has come by now.
func (c *cluster) budgetBy(now clock.Time, k int) float64 {
	o := &c.plan.exp.SLOs[k]
	n := c.plan.windowN[k]
	if math.IsNaN(n) {
		e := c.knownEvents(k)
		n = float64(e.good+e.bad) / now.Seconds() * o.Window.Seconds()
	}
	return (1 - o.Target) * n
}

// holdBack decides on the changes that are due, and starts those that need not wait
// any more.
func (c *cluster) holdBack(now clock.Time) {
	for _, g := range c.policy.gates {
		if g.change < 0 || g.start != clock.Never || now < c.planned(g) {
			continue
		}
		due := !g.decided
		g.decided = true
		switch by := g.frozen(c.plan); {
		case by != "" && due:
			g.held = true
			c.reschedule(g, farAway)
			c.note(now, fmt.Sprintf("change %q is held back: %s", g.hold.Change, by))
		case by == "" && due:
			g.start = now
		case by == "":
			g.start = now
			c.reschedule(g, clock.Duration(now))
			c.note(now, fmt.Sprintf("change %q starts, %s late: no budget holds it any more", g.hold.Change, now.Sub(c.planned(g))))
		}
	}
}

// frozen says what holds a change back; "" when nothing does.
func (g *changeGate) frozen(p *plan) string {
	var by []string
	for _, m := range g.meters {
		if m.tracker.Stopped() || m.tracker.Frozen() && !g.hold.Essential {
			by = append(by, fmt.Sprintf("%s of the budget of %q is spent", percent(m.used), p.exp.SLOs[m.slo].Name))
		}
	}
	return strings.Join(by, ", ")
}

// reschedule moves a change, with its roll-back, to another time: requests and
// arrivals from now on follow, the announced ones too.
func (c *cluster) reschedule(g *changeGate, at clock.Duration) {
	ch := c.plan.exp.Changes[g.change]
	if ch.Until > 0 {
		ch.Until += at - ch.At
	}
	ch.At = at
	c.policy.changes[g.change] = ch
	for k, s := range c.sources {
		class := &c.plan.exp.Traffic[k]
		if class.Name != ch.Class {
			continue
		}
		s.shaper.Reschedule(int32(g.change+1), ch)
		if ch.RateFactor != 1 && ch.RateFactor != 0 && s.arrivals != nil && s.next.Send != clock.Never {
			in := workloads.NewIntensity(class, c.policy.changes, c.plan.exp.Start)
			if at, ok := s.arrivals.Replan(class, in, c.seed, s.from, s.until); ok {
				s.next.Send = max(at, c.loop.Now())
			}
		}
		if s.next.Send != clock.Never {
			s.reshape()
		}
	}
	c.loop.SetArrival(c.announce())
}

// heldReps returns what became of the holds.
func (c *cluster) heldReps() []heldRep {
	if c.policy == nil {
		return nil
	}
	var out []heldRep
	for _, g := range c.policy.gates {
		out = append(out, heldRep{g.held, g.start})
	}
	return out
}

// heldChanges combines the replications.
func (p *plan) heldChanges(reps []*rep) []HeldChange {
	var out []HeldChange
	for i, h := range p.exp.Holds {
		x := HeldChange{Hold: h, Planned: clock.Never}
		for _, ch := range p.exp.Changes {
			if ch.Name == h.Change {
				x.Planned = clock.Time(ch.At)
			}
		}
		var starts []float64
		for _, r := range reps {
			s := r.holds[i]
			if s.held {
				x.Held++
			}
			if s.start != clock.Never {
				starts = append(starts, s.start.Seconds())
			} else if s.held {
				x.Never++
			}
		}
		x.Start = stats.Of(starts, int64(len(starts)))
		out = append(out, x)
	}
	return out
}

// heldWarnings say what phases mean where a change was held back.
func heldWarnings(list []HeldChange, replications int) []string {
	var out []string
	for _, h := range list {
		if h.Held == 0 {
			continue
		}
		text := fmt.Sprintf("change %q was held back by the budget policy in %d of %d replications", h.Change, h.Held, replications)
		switch {
		case h.Never == h.Held:
			text += " and never started there"
		case h.Never > 0:
			text += fmt.Sprintf(", to the end in %d", h.Never)
		}
		out = append(out, text+": phases are cut at the planned times, and loads, idle floors and budgets are those of the plan")
	}
	return out
}
