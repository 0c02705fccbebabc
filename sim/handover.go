package sim

import (
	"slosim/engine"
	"slosim/sim/clock"
	"slosim/workloads"
)

// Disaggregated requests: prompt in a prefill pool, KV over the network, decode in
// another pool. TTFT = queue and prefill there + hop + reservation here + transfer +
// the step that computes the last prompt token again; the first visible token
// comes from the decode side. In the stages everything from the first chunk to
// that step is prefill.

// halfStage says where a request is on its way from prompt to output.
type halfStage uint8

const (
	atPrefill halfStage = iota
	hopping             // the prompt is computed; the decode side does not know yet
	atDecode            // in the queue there, or decoding
	moving              // its KV is on the way
)

// growHalves makes room for the prefill side of every flight.
func (c *cluster) growHalves() {
	if need := len(c.flights); len(c.halves) < need {
		c.halves = append(c.halves, make([]promptHalf, need-len(c.halves))...)
	}
}

// letGo frees a request's blocks on the prefill side, if it still has any there.
func (c *cluster) letGo(now clock.Time, f *flight, id int32) {
	if !f.split {
		return
	}
	h := &c.halves[id]
	if h.stage == atPrefill || h.moved {
		return
	}
	p, i := c.fleetOf(h.replica)
	c.handing(h.replica).Release(now, h.row)
	c.rouse(h.replica)
	c.forget(h)
	c.vacated(now, p, i)
}

// forget notes that the prefill side keeps nothing of a request any more.
func (c *cluster) forget(h *promptHalf) {
	if !h.moved {
		p, i := c.fleetOf(h.replica)
		p.handing[i]--
		h.moved = true
	}
}

// stamp puts the prefill side's stage borders into an event of the decode side.
func (h *promptHalf) stamp(e *engine.Event) {
	e.Ready, e.Started = h.ready, h.started
}

// kvReady notes a prompt that is computed and sends the request on.
func (c *cluster) kvReady(now clock.Time, f *flight, e *engine.Event) {
	from, i := c.fleetOf(f.replica)
	if f.counted() {
		from.used(f.req.Class, f.req.Prompt, 0)
	}
	from.handing[i]++
	c.leave(f)
	pool := c.plan.poolOf[f.req.Class]
	link := &c.plan.exp.Pools[pool].Link
	d := &c.plan.exp.Pools[pool].Deployment
	h := &c.halves[e.ID]
	h.stage = hopping
	h.replica, h.row, h.ready, h.started = f.replica, e.Row, e.Ready, e.Started
	h.bytes = float64(f.req.Prompt) * float64(d.LLM.KVBytesPerToken(d.KVDtype))
	if link.Overlap {
		layers := float64(d.LLM.Layers)
		hidden := link.BytesPerS * e.Prefilled.Sub(e.Started).Seconds() * (layers - 1) / layers
		h.bytes = max(h.bytes/layers, h.bytes-hidden)
	}
	c.loop.At(now.Add(link.Latency), timerHandover, int64(e.ID))
}

// handOver submits a request to its decode pool.
func (c *cluster) handOver(now clock.Time, id int32) {
	f := &c.flights[id]
	if f.dead {
		c.letGo(now, f, id)
		c.drop(id)
		return
	}
	p := &c.pools[c.plan.poolOf[f.req.Class]]
	if len(p.ups) == 0 { // nobody is there to take it
		c.letGo(now, f, id)
		c.fail(now, f, id, false)
		return
	}
	c.halves[id].stage = atDecode
	f.req.Handover = workloads.DecodeHalf
	c.submit(now, f, &f.req, p)
}

// reserved starts the transfer once the decode side has the blocks.
func (c *cluster) reserved(now clock.Time, f *flight, e *engine.Event) {
	h := &c.halves[e.ID]
	h.decodeRow, h.stage = e.Row, moving
	c.links.start(now, e.ID, h.replica, f.replica, h.bytes)
}

// arrived ends a transfer: the prefill side's blocks are free, the decode side
// goes on.
func (c *cluster) arrived(now clock.Time, id int32) {
	f, h := &c.flights[id], &c.halves[id]
	c.letGo(now, f, id)
	h.stage = atDecode
	c.handing(f.replica).Arrived(now, h.decodeRow)
	if f.dead {
		if _, gone := c.cancel(now, f, id); gone {
			c.leave(f)
			c.drop(id)
		}
		return
	}
	c.rouse(f.replica)
}
