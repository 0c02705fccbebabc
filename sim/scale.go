package sim

import (
	"fmt"
	"math"

	"slosim/sim/clock"
	"slosim/sim/kernel"
	"slosim/workloads"
)

// Autoscale changes the number of a pool's replicas, as a horizontal autoscaler
// does: wanted = ⌈current · metric ÷ target⌉, inside a tolerance and after
// stabilisation.
type Autoscale struct {
	Metric   string  // "concurrency", "queue", "kv", "ttft", "rate" (predictive) or "schedule"
	Target   float64 // per replica: requests in flight; waiting requests; share of KV; share of the TTFT threshold; requests/s
	Min, Max int
	Interval clock.Duration // between looks
	Up, Down clock.Duration // stabilisation: the least wish of this long counts for growth, the most for shrinking
	StartUp  clock.Duration // provision, image, weights, compilation
	Warm     int            // replicas kept loaded beside the others, and paid for: they start in WarmUp
	WarmUp   clock.Duration
	Lead     clock.Duration // "rate": how far ahead the traffic's curve is read, besides now
	Schedule []ScheduledSize
}

// ScheduledSize is the number of replicas from a time of day on.
type ScheduledSize struct {
	At       clock.Duration
	Replicas int
}

const scaleTolerance = 0.1 // HPA's

// wish is what a look asked for.
type wish struct {
	at clock.Time
	n  int
}

// autoscale is the body of the control process of one pool.
func (c *cluster) autoscale(k int) func(p *kernel.Process) {
	f := &c.pools[k]
	a := f.spec.Autoscale
	var wishes []wish
	return func(p *kernel.Process) {
		for {
			p.Sleep(a.Interval)
			now := p.Now()
			have := c.countStage(f, serving) + c.countStage(f, starting)
			n := min(max(c.wanted(now, f, have), a.Min), a.Max)
			wishes = append(wishes, wish{now, n})
			for len(wishes) > 1 && now.Sub(wishes[0].at) > max(a.Up, a.Down) {
				wishes = wishes[1:]
			}
			least, most := n, n
			for _, w := range wishes {
				if now.Sub(w.at) <= a.Up {
					least = min(least, w.n)
				}
				if now.Sub(w.at) <= a.Down {
					most = max(most, w.n)
				}
			}
			switch {
			case least > have:
				c.grow(now, f, least-have)
			case most < have:
				c.shrink(now, f, have-most)
			}
		}
	}
}

func (c *cluster) countStage(f *fleet, s lifeStage) int {
	n := 0
	for _, x := range f.stage {
		if x == s {
			n++
		}
	}
	return n
}

// wanted returns how many replicas the metric asks for.
func (c *cluster) wanted(now clock.Time, f *fleet, have int) int {
	a := f.spec.Autoscale
	value := 0.0 // sum over replicas
	switch a.Metric {
	case "schedule":
		n := a.Schedule[len(a.Schedule)-1].Replicas
		day := (clock.Duration(now) + c.plan.exp.Start + 7*clock.Day) % clock.Day
		for _, s := range a.Schedule {
			if s.At <= day {
				n = s.Replicas
			}
		}
		return n
	case "rate":
		value = max(c.curve(f, now, a.Interval), c.curve(f, now.Add(a.Lead), a.Interval)) // not before it falls
	case "ttft":
		value = float64(have) * c.ttftLevel(f)
	case "kv":
		for _, i := range f.ups {
			l := f.replicas[i].Load(now)
			value += float64(l.Blocks) / float64(l.Total)
		}
	case "queue":
		value = float64(f.gate.waiting)
		for _, i := range f.ups {
			value += float64(f.replicas[i].Load(now).Waiting)
		}
	default: // concurrency
		value = float64(f.gate.waiting)
		for _, i := range f.ups {
			value += float64(f.views[i].Outstanding)
		}
	}
	n := value / a.Target
	if ratio := n / math.Max(1, float64(have)); math.Abs(ratio-1) <= scaleTolerance {
		return have
	}
	return int(math.Ceil(n - 1e-9))
}

// curve returns the expected rate of a pool's classes in the span d from a time on.
func (c *cluster) curve(f *fleet, from clock.Time, d clock.Duration) float64 {
	sum := 0.0
	for k := range c.plan.exp.Traffic {
		if c.plan.serves(k, f.index) {
			in := workloads.NewIntensity(&c.plan.exp.Traffic[k], c.plan.exp.Changes, c.plan.exp.Start)
			sum += in.Expected(from, from.Add(d))
		}
	}
	return sum / d.Seconds()
}

// grow starts replicas, those of the warm pool first.
func (c *cluster) grow(now clock.Time, f *fleet, n int) {
	started, back := 0, 0
	for i := range f.stage {
		if back < n && f.stage[i] == draining && !f.rolling[i] { // it is still there
			c.turn(now, f, i, serving)
			back++
		}
	}
	n -= back
	for i := range f.stage {
		if started == n {
			break
		}
		if f.stage[i] != off {
			continue
		}
		c.start(now, f, i, f.takeWarm(now))
		started++
	}
	if started+back > 0 {
		c.note(now, fmt.Sprintf("pool %s: %d more, %d serve", f.spec.Name, started+back, len(f.ups)))
	}
}

// takeWarm returns how long the next replica takes to serve: from the warm pool,
// whose place is then filled anew, or from nothing.
func (f *fleet) takeWarm(now clock.Time) clock.Duration {
	a := f.spec.Autoscale
	for i, ready := range f.warm {
		if ready <= now {
			f.warm[i] = now.Add(a.StartUp)
			return a.WarmUp
		}
	}
	return a.StartUp
}

// shrink gives replicas back: those still starting first, then the highest numbers
// that serve, once they have finished what they have.
func (c *cluster) shrink(now clock.Time, f *fleet, n int) {
	left := n
	for i := len(f.stage) - 1; i >= 0 && left > 0; i-- {
		if f.stage[i] == starting {
			c.turn(now, f, i, off)
			left--
		}
	}
	for i := len(f.stage) - 1; i >= 0 && left > 0 && len(f.ups) > 1; i-- {
		if f.stage[i] == serving {
			c.retire(now, f, i)
			left--
		}
	}
	if left < n {
		c.note(now, fmt.Sprintf("pool %s: %d fewer, %d serve", f.spec.Name, n-left, len(f.ups)))
	}
}

// Action is something the control plane did.
type Action struct {
	At   clock.Time
	Text string
}

// maxActions bounds the log of a replication.
const maxActions = 10_000

// note logs an action of the counted span.
func (c *cluster) note(now clock.Time, text string) {
	if now >= 0 && now < clock.Time(c.plan.exp.Duration) && len(c.actions) < maxActions {
		c.actions = append(c.actions, Action{now, text})
	}
}
