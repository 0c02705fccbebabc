package sim

import (
	"fmt"
	"math"
	"slices"

	"slosim/sim/clock"
	"slosim/sim/kernel"
	"slosim/sim/rng"
)

// Fault takes replicas of a pool away, or slows them, at a time.
type Fault struct {
	Pool     string
	At       clock.Duration
	For      clock.Duration // 0 = to the end
	Replicas int            // how many, from the first on; 0 with Zone
	Zone     int            // 1-based: all replicas of this zone; 0 = none
	Slow     float64        // > 1: their steps take so many times as long; 0 = they are gone
	Cut      bool           `json:",omitempty"` // they run, but nobody reaches them: a network fault
}

// Wear is how a pool's replicas break and are mended, by chance.
type Wear struct {
	MTBF     clock.Duration // mean time up between faults, of one replica or node; exponential
	MTTR     clock.Duration // mean time to repair; exponential
	Together int            // consecutive replicas that share a node and its faults; 0 = 1
}

// Rollout restarts all replicas of a pool, a few at a time: an upgrade.
type Rollout struct {
	Pool  string
	At    clock.Duration
	Batch int            // replicas down at once
	Drain clock.Duration // most time to finish what they have; then it fails
	Down  clock.Duration // until a restarted replica serves
}

// faults starts the control processes of everything that breaks or is restarted.
func (c *cluster) faults() {
	for k := range c.pools {
		f := &c.pools[k]
		if f.spec.Autoscale != nil {
			c.loop.Go("autoscaler of "+f.spec.Name, c.autoscale(k))
		}
		if f.spec.Wear.MTBF > 0 {
			for node := 0; node*f.spec.Wear.perNode() < len(f.views); node++ {
				c.loop.Go(fmt.Sprintf("wear of %s %d", f.spec.Name, node), c.wear(k, node))
			}
		}
		if Polls(f.spec.Router) && f.spec.Stale > 0 {
			c.poll(c.loop.Now(), f)
		}
	}
	for i := range c.plan.exp.Faults {
		c.loop.Go(fmt.Sprintf("fault %d", i), c.fault(i))
	}
	for i := range c.plan.exp.Rollouts {
		c.loop.Go(fmt.Sprintf("rollout %d", i), c.rollout(i))
	}
	if len(c.plan.exp.Rules) > 0 {
		c.loop.Go("degradation policy", c.degrade)
	}
	if c.policy != nil {
		c.loop.Go("budget policy", c.watchBudgets)
	}
}

// until sleeps up to a time of the experiment.
func until(p *kernel.Process, at clock.Duration) {
	if d := clock.Time(at).Sub(p.Now()); d > 0 {
		p.Sleep(d)
	}
}

// wear breaks the replicas of one node again and again.
func (c *cluster) wear(k, node int) func(p *kernel.Process) {
	f := &c.pools[k]
	w := &f.spec.Wear
	draws := rng.New(c.seed, rng.Wear, f.spec.Name)
	n := int64(node) << 32
	exponential := func(mean clock.Duration) clock.Duration {
		n++
		return clock.Duration(-math.Log1p(-draws.Float64(n)) * float64(mean))
	}
	var replicas []int
	for i := node * w.perNode(); i < min((node+1)*w.perNode(), len(f.views)); i++ {
		replicas = append(replicas, i)
	}
	return func(p *kernel.Process) {
		for {
			p.Sleep(exponential(w.MTBF))
			down := c.takeDown(p.Now(), f, replicas, false)
			if len(down) == 0 {
				continue
			}
			c.note(p.Now(), fmt.Sprintf("pool %s: %s", f.spec.Name, named(replicas, "breaks down", "break down")))
			p.Sleep(exponential(w.MTTR))
			c.bringBack(p.Now(), f, down)
			c.note(p.Now(), fmt.Sprintf("pool %s: %s", f.spec.Name, named(replicas, "serves again", "serve again")))
		}
	}
}

// perNode is how many replicas break together.
func (w *Wear) perNode() int { return max(1, w.Together) }

// named writes "replica 3 breaks down" or "replicas 1 to 8 break down".
func named(replicas []int, one, many string) string {
	if len(replicas) == 1 {
		return fmt.Sprintf("replica %d %s", replicas[0]+1, one)
	}
	return fmt.Sprintf("replicas %d to %d %s", replicas[0]+1, replicas[len(replicas)-1]+1, many)
}

// takeDown breaks the replicas that are not off and returns them: each is down until
// every fault that took it has let it go.
func (c *cluster) takeDown(now clock.Time, f *fleet, replicas []int, cut bool) (down []int) {
	for _, i := range replicas {
		if f.stage[i] == off {
			continue
		}
		switch {
		case !cut: // what was only cut off before is lost now
			c.breakDown(now, f, i)
		case f.stage[i] != broken:
			c.cutOff(now, f, i)
		}
		f.faults[i]++
		down = append(down, i)
	}
	return down
}

// bringBack ends one fault of each replica; those without another serve again.
func (c *cluster) bringBack(now clock.Time, f *fleet, down []int) {
	for _, i := range down {
		if f.faults[i]--; f.faults[i] == 0 && f.stage[i] == broken {
			c.mon.missed(now, f.index, i)
			c.turn(now, f, i, serving)
		}
	}
}

// hit returns the replicas that a fault is about.
func (x *Fault) hit(spec *Pool) []int {
	var out []int
	for i := range spec.Limit() { // those that are off are passed over when it comes
		if x.Zone > 0 && i%max(1, spec.Zones) == x.Zone-1 || x.Zone == 0 && i < x.Replicas {
			out = append(out, i)
		}
	}
	return out
}

// fault is one scheduled fault.
func (c *cluster) fault(n int) func(p *kernel.Process) {
	x := &c.plan.exp.Faults[n]
	k := c.plan.poolNamed(x.Pool)
	f := &c.pools[k]
	hit := x.hit(f.spec)
	return func(p *kernel.Process) {
		until(p, x.At)
		var down []int
		verb := "go down"
		if x.Slow > 0 {
			verb = fmt.Sprintf("slow down %g times", x.Slow)
			for _, i := range hit {
				c.slow(p.Now(), f, i, slices.Index(c.plan.slowness(k), x.Slow), 1)
			}
		} else {
			if x.Cut {
				verb = "are cut off"
			}
			down = c.takeDown(p.Now(), f, hit, x.Cut)
		}
		c.note(p.Now(), fmt.Sprintf("pool %s: %d of %d replicas %s", f.spec.Name, len(hit), len(f.views), verb))
		if x.For == 0 {
			return
		}
		p.Sleep(x.For)
		if x.Slow > 0 {
			for _, i := range hit {
				c.slow(p.Now(), f, i, slices.Index(c.plan.slowness(k), x.Slow), -1)
			}
		}
		c.bringBack(p.Now(), f, down)
		c.note(p.Now(), fmt.Sprintf("pool %s: they are back", f.spec.Name))
	}
}

// slowness returns the factors by which a pool's steps may be slowed; the first is 1.
func (p *plan) slowness(pool int) []float64 {
	out := []float64{1}
	for _, x := range p.exp.Faults {
		if x.Pool == p.exp.Pools[pool].Name && x.Slow > 0 && !slices.Contains(out, x.Slow) {
			out = append(out, x.Slow)
		}
	}
	return out
}

// slow begins (by 1) or ends (by −1) a slowness of a replica, from its next step on;
// of several the greatest holds.
func (c *cluster) slow(now clock.Time, f *fleet, i, factor, by int) {
	list := c.plan.slowness(f.index)
	if f.slows[i] == nil {
		f.slows[i] = make([]int, len(list))
	}
	f.slows[i][factor] += by
	worst := 0
	for k, n := range f.slows[i] {
		if n > 0 && list[k] > list[worst] {
			worst = k
		}
	}
	c.mon.pools[f.index].factor[i] = worst
	f.replicas[i].SetClock(now, c.mon.bin(f.index, i))
	c.rouse(f.first + int32(i))
}

// drainPoll is how often a rollout looks whether a replica is empty.
const drainPoll = clock.Second

// rollout restarts a pool's replicas, a batch at a time.
func (c *cluster) rollout(n int) func(p *kernel.Process) {
	x := &c.plan.exp.Rollouts[n]
	f := &c.pools[c.plan.poolNamed(x.Pool)]
	return func(p *kernel.Process) {
		until(p, x.At)
		for f.rollout { // one after the other: the second restarts everything again
			p.Sleep(drainPoll)
		}
		f.rollout = true
		defer func() { f.rollout = false }()
		c.note(p.Now(), fmt.Sprintf("pool %s: rollout begins, %d at a time", f.spec.Name, x.Batch))
		for from := 0; from < len(f.stage); from += x.Batch {
			var batch []int
			for i := from; i < min(from+x.Batch, len(f.stage)); i++ {
				if f.stage[i] == serving {
					f.rolling[i] = true
					c.turn(p.Now(), f, i, draining)
					batch = append(batch, i)
				}
			}
			for end := p.Now().Add(x.Drain); p.Now() < end; p.Sleep(min(drainPoll, end.Sub(p.Now()))) {
				if !slices.ContainsFunc(batch, func(i int) bool { return !f.empty(i) }) {
					break
				}
			}
			for _, i := range batch {
				f.rolling[i] = false
				if f.stage[i] == draining {
					c.breakDown(p.Now(), f, i)
					c.start(p.Now(), f, i, x.Down)
				}
			}
			if len(batch) > 0 {
				p.Sleep(x.Down)
			}
		}
		c.note(p.Now(), fmt.Sprintf("pool %s: rollout ends", f.spec.Name))
	}
}
