package sim

import (
	"slosim/sim/clock"
	"slosim/workloads"
)

// deliver is the gateway: a request is admitted, goes to a pool, waits at its gate
// if that is full, and goes to a replica.
func (c *cluster) deliver(now clock.Time, id int32) {
	f := &c.flights[id]
	if f.dead {
		c.drop(id)
		return
	}
	class := f.req.Class
	if p := c.sources[class].straight; p != nil && len(p.ups) > 0 && !c.degraded {
		f.fit(p)
		c.submit(now, f, &f.req, p)
		return
	}
	force, limit := &c.force[class], &c.limits[class]
	if force.shed {
		c.refuse(now, id, RefusedShed)
		return
	}
	if why, ok := limit.admits(now, f); !ok {
		c.refuse(now, id, why)
		return
	}
	limit.inFlight++
	f.admitted = true
	if force.cap > 0 {
		f.req.Output = min(f.req.Output, force.cap)
	}
	p := &c.pools[c.plan.poolOf[class]]
	if force.to >= 0 || len(c.plan.poolsOf[class]) > 0 || c.plan.overflow[p.index] >= 0 {
		p = c.poolFor(f)
	}
	f.fit(p)
	f.req.Handover = workloads.Whole
	if feeder := c.plan.prefillOf[class]; feeder >= 0 && f.req.Prompt >= p.spec.Link.MinTokens && p.index == int(c.plan.poolOf[class]) {
		p = &c.pools[feeder]
		f.req.Handover = workloads.PrefillHalf
		f.split, f.plain = true, false
		c.growHalves()
		c.halves[id] = promptHalf{}
	}
	if p.gate.full(p) {
		if !p.gate.hold(now, id) {
			why := RefusedQueue
			if len(p.ups) == 0 {
				why = RefusedDown
			}
			c.refuse(now, id, why)
		}
		return
	}
	c.submit(now, f, &f.req, p)
}

// straightTo returns the pool that all requests of a class go to while replicas serve
// there and no rule acts: nil if there is a limit, a choice, a gate or a hand-over.
func (c *cluster) straightTo(class int) *fleet {
	k := c.plan.poolOf[class]
	if c.limits[class].open && len(c.plan.poolsOf[class]) == 0 && c.plan.overflow[k] < 0 && c.plan.prefillOf[class] < 0 && c.pools[k].spec.Gate.InFlight == 0 {
		return &c.pools[k]
	}
	return nil
}

// fit cuts what a request asks for to the context that a pool's engines take.
func (f *flight) fit(p *fleet) {
	if room := p.longest - f.req.Prompt; room > 0 && room < f.req.Output {
		f.req.Output = room
	}
}

// poolFor chooses the pool of a request: where the degradation policy sends its
// class, else the pool whose prompt range it is in, else on along the overflow.
func (c *cluster) poolFor(f *flight) *fleet {
	if d := &c.force[f.req.Class]; d.to >= 0 && f.req.Prompt >= d.over {
		return &c.pools[d.to]
	}
	p := &c.pools[c.plan.poolOf[f.req.Class]]
	for _, k := range c.plan.poolsOf[f.req.Class] {
		if q := &c.pools[k]; q.spec.takes(&f.req) {
			p = q
			break
		}
	}
	for range c.pools {
		to := c.plan.overflow[p.index]
		if to < 0 || len(p.ups) > 0 && float64(p.gate.inside+p.gate.waiting) < p.spec.OverflowAt*float64(len(p.ups)) {
			break
		}
		p = &c.pools[to]
	}
	return p
}

// takes tells whether a prompt lies in a pool's range.
func (p *Pool) takes(r *workloads.Request) bool {
	n := r.Prompt
	if p.Uncached {
		n -= max(r.Cached, r.Known)
	}
	return n >= p.MinPrompt && (p.MaxPrompt == 0 || n < p.MaxPrompt)
}

// submit hands a request to a serving replica of a pool. What the replica reads is the
// flight's request, or an equal one that is in the processor's cache.
func (c *cluster) submit(now clock.Time, f *flight, r *workloads.Request, p *fleet) {
	var k int
	if p.counts != nil {
		k = p.counts.pick()
	} else {
		k = p.router.Pick(now, r, p)
	}
	p.enter(f, &p.views[k])
	g := p.first + int32(k)
	on := c.replicas[g]
	f.replica, f.handle = g, on.Submit(now, r)
	c.touched = true // as in rouse
	if next, ok := on.Next(); ok {
		c.loop.SetReplica(g, next)
	}
}

// refuse turns a request away at the gateway: 429.
func (c *cluster) refuse(now clock.Time, id int32, why Refusal) {
	f := &c.flights[id]
	c.discharge(f)
	c.inFlight--
	if f.counted() {
		c.rec.rejected(f, now, why)
		c.open--
	}
	c.tellEnd(f, OutcomeRejected)
	c.drop(id)
	c.settle(now, c.sources[f.req.Class], f, true)
	c.stopWhenDecided()
}

// gateTimeout turns a request away that has waited too long at a gate.
func (c *cluster) gateTimeout(now clock.Time, arg int64) {
	id := int32(arg & (1<<userBits - 1))
	f := &c.flights[id]
	if !f.expects(arg) || f.gate == 0 {
		return
	}
	c.pools[f.gate-1].gate.remove(id)
	c.refuse(now, id, RefusedWait)
}

// discharge takes a request off its class's limit.
func (c *cluster) discharge(f *flight) {
	if f.admitted {
		f.admitted = false
		c.limits[f.req.Class].inFlight--
	}
}

// serves tells whether a class's requests can come to a pool other than by overflow.
func (p *plan) serves(class, pool int) bool {
	for _, k := range p.poolsOf[class] {
		if int(k) == pool {
			return true
		}
	}
	return int(p.poolOf[class]) == pool || int(p.prefillOf[class]) == pool
}
