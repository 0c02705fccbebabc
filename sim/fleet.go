package sim

import (
	"fmt"

	"slosim/engine"
	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/rng"
)

// lifeStage says what a replica is about.
type lifeStage uint8

const (
	off      lifeStage = iota // given back: costs nothing
	starting                  // provisioned, loading; takes no requests yet
	serving
	draining // finishes what it has, takes nothing new
	broken   // a fault took it, with all that it had
)

// fleet is the replicas of one pool.
type fleet struct {
	config   *engine.Config // of its replicas, once there are any
	room     []engine.VLLM  // where its replicas are, of this kind
	index    int
	spec     *Pool
	first    int32 // of the cluster's replicas
	views    []View
	replicas []engine.Replica
	stage    []lifeStage
	serial   []uint32 // of each stage: a timer of an older one is void
	ups      []int32  // serving replicas, in order
	router   Router
	counts   *leastOutstanding // the router, if it is this one: it counts along
	longest  int32             // context that the engine takes
	gate     gateway
	use      []use // per class

	least, most int32 // polled load: scratch of a router

	paid  clock.Duration // replica time in the counted span that is paid for
	since clock.Time     // up to which paid is accounted
	bound int            // replicas that are not off
	built []int32        // generations of each replica

	faults []int   // faults that hold each replica down
	slows  [][]int // of each replica: how many faults of each slowness hold

	handing []int32      // of each replica: prompts that it keeps for a decode replica
	rolling []bool       // of each replica: a rollout has it in hand
	rollout bool         // one is under way
	warm    []clock.Time // of each place in the warm pool: from when on it is filled
}

// place is where a replica stands: its pool, and what the gateway counts of it. Neither
// moves in the tables once a cluster is built.
type place struct {
	pool  *fleet
	view  *View
	index int // of the pool's replicas
}

// Limit is how many replicas a pool may ever have.
func (p *Pool) Limit() int {
	if p.Autoscale != nil {
		return max(p.Replicas, p.Autoscale.Max)
	}
	return p.Replicas
}

func (c *cluster) newFleet(k int, seed uint64) {
	spec := &c.plan.exp.Pools[k]
	n := spec.Limit()
	meter := &gapMeter{plan: c.plan, phases: make([]gaps, len(c.plan.phases))}
	c.gaps = append(c.gaps, meter)
	f := fleet{
		index: k, spec: spec, first: int32(len(c.replicas)), views: make([]View, n), stage: make([]lifeStage, n), serial: make([]uint32, n), built: make([]int32, n),
		faults: make([]int, n), slows: make([][]int, n),
		handing: make([]int32, n), rolling: make([]bool, n),
		router: c.plan.newRouter(k, seed), longest: spec.Engine.MaxModelLen, use: make([]use, len(c.plan.exp.Traffic)), since: clock.Time(-c.plan.exp.Warmup),
	}
	for i := range n {
		c.replicas = append(c.replicas, c.plan.replica(&f, i, rng.Derive(seed, len(c.replicas)), meter))
		if i < spec.Replicas {
			f.stage[i] = serving
			f.views[i].Up = true
			f.ups = append(f.ups, int32(i))
			f.bound++
		}
	}
	if f.counts, _ = f.router.(*leastOutstanding); f.counts != nil {
		for _, i := range f.ups {
			f.counts.file(int(i), 0, true)
		}
	}
	if a := spec.Autoscale; a != nil {
		f.warm = make([]clock.Time, a.Warm)
		for i := range f.warm {
			f.warm[i] = f.since
		}
	}
	f.gate.init(c, &f)
	c.pools = append(c.pools, f)
}

// up returns the serving replica at a share u of their list.
func (f *fleet) up(u float64) int { return int(f.ups[int(u*float64(len(f.ups)))]) }

// turn moves a replica to another stage of its life.
func (c *cluster) turn(now clock.Time, f *fleet, i int, to lifeStage) {
	f.pay(now, c.plan.exp.Duration)
	if f.stage[i] == off {
		f.bound++
	}
	if to == off {
		f.bound--
	}
	f.stage[i] = to
	f.serial[i]++
	v := &f.views[i]
	if up := to == serving; up != v.Up {
		v.Up = up
		if f.counts != nil {
			f.counts.file(i, int(v.Outstanding), up)
		}
		f.ups = f.ups[:0]
		for k := range f.views {
			if f.views[k].Up {
				f.ups = append(f.ups, int32(k))
			}
		}
	}
	if to == serving {
		f.gate.open(now)
	}
}

// pay accounts the replicas' time up to now.
func (f *fleet) pay(now clock.Time, span clock.Duration) {
	if from, to := max(f.since, 0), min(now, clock.Time(span)); to > from {
		f.paid += to.Sub(from) * clock.Duration(f.held())
	}
	f.since = now
}

// held is how many replicas are paid for: those that are not off, and the warm pool.
func (f *fleet) held() int { return f.bound + len(f.warm) }

// empty tells whether nothing keeps a draining replica.
func (f *fleet) empty(i int) bool { return f.views[i].Outstanding == 0 && f.handing[i] == 0 }

// start begins a replica's start-up, which takes so long; it then serves with an
// empty cache.
func (c *cluster) start(now clock.Time, f *fleet, i int, d clock.Duration) {
	c.turn(now, f, i, starting)
	c.loop.At(now.Add(d), timerStarted, int64(f.serial[i])<<userBits|int64(f.first)+int64(i))
}

// started ends a start-up, unless something else has happened since.
func (c *cluster) started(now clock.Time, arg int64) {
	f, i := c.fleetOf(int32(arg & (1<<userBits - 1)))
	if f.serial[i] != uint32(arg>>userBits) || f.stage[i] != starting {
		return
	}
	c.rebuild(now, f, i)
	c.turn(now, f, i, serving)
	if c.countStage(f, starting) == 0 {
		c.note(now, fmt.Sprintf("pool %s: %d serve", f.spec.Name, len(f.ups)))
	}
}

func (c *cluster) fleetOf(replica int32) (*fleet, int) {
	p := &c.places[replica]
	return p.pool, p.index
}

// rebuild puts a fresh engine in a replica's place.
func (c *cluster) rebuild(now clock.Time, f *fleet, i int) {
	g := f.first + int32(i)
	c.oldSteps += c.replicas[g].Spent(now).Steps
	f.built[i]++
	c.replicas[g] = c.plan.replica(f, i, rng.Derive(rng.Derive(c.seed, int(g)), int(f.built[i])), c.gaps[f.index])
	if c.hints != nil {
		c.replicas[g].HintAt(&c.hints[g])
	}
	c.replicas[g].Advance(now, nil)
	if bin := c.mon.bin(f.index, i); bin != 0 {
		c.replicas[g].SetClock(now, bin)
	}
	c.loop.SetReplica(g, clock.Never)
	f.views[i].Load, f.views[i].KV = 0, 0
	c.mon.renewed(now, f.index, i)
}

// retire lets a replica finish and then gives it back.
func (c *cluster) retire(now clock.Time, f *fleet, i int) {
	c.turn(now, f, i, draining)
	c.vacated(now, f, i)
}

// vacated gives a draining replica back once nothing keeps it.
func (c *cluster) vacated(now clock.Time, f *fleet, i int) {
	if f.stage[i] == draining && !f.rolling[i] && f.empty(i) {
		c.turn(now, f, i, off)
	}
}

// breakDown takes a replica away with all requests that it has a part in; they fail.
func (c *cluster) breakDown(now clock.Time, f *fleet, i int) {
	c.turn(now, f, i, broken) // first, so that nothing is sent there meanwhile
	g := f.first + int32(i)
	for id := range c.flights {
		x := &c.flights[id]
		if (x.live || x.dead) && c.touches(x, int32(id), g) {
			c.lose(now, x, int32(id), g)
		}
	}
	c.rebuild(now, f, i)
}

// touches tells whether a request has KV or a place on a replica.
func (c *cluster) touches(f *flight, id, replica int32) bool {
	if f.replica == replica {
		return !f.split || c.halves[id].stage != hopping || !c.halves[id].moved
	}
	return f.split && c.halves[id].replica == replica && !c.halves[id].moved && c.halves[id].stage != atPrefill
}

// lose ends a request that has a part on a replica that is gone, and clears away its
// other part, if it has one elsewhere.
func (c *cluster) lose(now clock.Time, f *flight, id, replica int32) {
	stays := false // something still comes for it, and ends it
	if h := c.half(f, id); h != nil && h.stage != atPrefill && h.replica == replica {
		c.forget(h)
		switch h.stage {
		case hopping, moving:
			stays = true
		case atDecode:
			if _, gone := c.cancel(now, f, id); gone {
				c.leave(f)
			} else {
				stays = true
			}
		}
	} else {
		if h != nil {
			if h.stage == moving {
				c.links.cancel(now, id)
			}
			c.letGo(now, f, id)
		}
		c.leave(f)
	}
	if f.dead { // its client has gone already
		if !stays {
			c.drop(id)
		}
		return
	}
	c.fail(now, f, id, stays)
}

// half returns the prefill side of a disaggregated request, nil of others.
func (c *cluster) half(f *flight, id int32) *promptHalf {
	if !f.split {
		return nil
	}
	return &c.halves[id]
}

// fail ends a request that cannot be served any more. If something still comes for
// it, that frees its slot.
func (c *cluster) fail(now clock.Time, f *flight, id int32, stays bool) {
	c.tellEnd(f, OutcomeFailed)
	if f.counted() {
		c.rec.failed(f, now)
		c.open--
		c.rec.dismiss(f)
	}
	c.discharge(f)
	c.inFlight--
	if stays {
		f.dead = true
	} else {
		c.drop(id)
	}
	c.settle(now, c.sources[f.req.Class], f, true)
	c.stopWhenDecided()
}

// enter puts a request on the books of a replica, leave takes it off.
func (p *fleet) enter(f *flight, v *View) {
	v.Outstanding++
	v.Tokens += int64(f.req.Prompt + f.req.Output)
	v.Backlog += int64(f.req.Prompt)
	f.backlog = true
	p.gate.inside++
}

// answered notes the first token of a request on a replica.
func (v *View) answered(f *flight) {
	if f.backlog {
		f.backlog = false
		v.Backlog -= int64(f.req.Prompt)
	}
}

func (c *cluster) leave(f *flight) { c.leaves(f, &c.places[f.replica]) }

// leaves is leave of the replica at a place.
func (c *cluster) leaves(f *flight, on *place) {
	p, v := on.pool, on.view
	v.answered(f)
	v.Outstanding--
	v.Tokens -= int64(f.req.Prompt + f.req.Output)
	p.gate.inside--
	switch {
	case !v.Up:
		c.vacated(c.loop.Now(), p, on.index) // if it is draining
	case p.counts != nil:
		p.counts.left(on.index, int(v.Outstanding))
	}
	if p.gate.waiting > 0 {
		p.gate.next(c.loop.Now())
	}
}

// poll refreshes what the gateway sees of a pool's replicas.
func (c *cluster) poll(now clock.Time, f *fleet) {
	for i := range f.views {
		if f.views[i].Up {
			l := f.replicas[i].Load(now)
			f.views[i].Load, f.views[i].KV = l.Running+l.Waiting, float64(l.Blocks)/float64(l.Total)
		}
	}
	c.loop.At(now.Add(f.spec.Stale), timerPoll, int64(f.index))
}

// slowed is a step model that a fault makes slower: the clock bin carries which of
// the factors holds.
type slowed struct {
	models.StepModel
	factors []float64 // factors[0] = 1
}

// slowShift separates a clock bin from the number of a factor.
const slowShift = 12

func (s slowed) Step(b models.Batch, bin int) models.Cost {
	return s.scale(s.StepModel.Step(b, bin&(1<<slowShift-1)), bin)
}

func (s slowed) Slope(rows int32, bin int) models.Cost {
	return s.scale(s.StepModel.Slope(rows, bin&(1<<slowShift-1)), bin)
}

// scale stretches the parts of a step; the work at peak rates stays.
func (s slowed) scale(c models.Cost, bin int) models.Cost {
	k := s.factors[bin>>slowShift]
	if k == 1 {
		return c
	}
	for _, part := range []*int64{&c.Gemm, &c.Attn, &c.Comm, &c.Small, &c.Head, &c.Host} {
		*part = int64(float64(*part) * k)
	}
	return c
}

// paid returns the replica time of a pool in the counted span that is paid for.
func (c *cluster) paid(k int, end clock.Time) clock.Duration {
	f := &c.pools[k]
	f.pay(end, c.plan.exp.Duration)
	return f.paid
}
