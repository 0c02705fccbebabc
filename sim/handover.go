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

// stamp puts the prefill side's stage borders into an event of the decode side.
func (h *promptHalf) stamp(e *engine.Event) {
	e.Ready, e.Started = h.ready, h.started
}

// kvReady notes a prompt that is computed and sends the request on.
func (c *cluster) kvReady(now clock.Time, f *flight, e *engine.Event) {
	c.leave(f)
	pool := c.plan.poolOf[f.req.Class]
	link := &c.plan.exp.Pools[pool].Link
	d := &c.plan.exp.Pools[pool].Deployment
	h := &c.halves[e.ID]
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
	f.req.Handover = workloads.DecodeHalf
	c.submit(now, f, &c.pools[c.plan.poolOf[f.req.Class]])
}

// reserved starts the transfer once the decode side has the blocks.
func (c *cluster) reserved(now clock.Time, f *flight, e *engine.Event) {
	h := &c.halves[e.ID]
	h.decodeRow = e.Row
	c.links.start(now, e.ID, h.replica, f.replica, h.bytes)
}

// arrived ends a transfer: the prefill side's blocks are free, the decode side
// goes on.
func (c *cluster) arrived(now clock.Time, id int32) {
	f, h := &c.flights[id], &c.halves[id]
	c.replicas[h.replica].(engine.Handing).Release(now, h.row)
	c.rouse(h.replica)
	c.replicas[f.replica].(engine.Handing).Arrived(now, h.decodeRow)
	c.rouse(f.replica)
}
