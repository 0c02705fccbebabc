package sim

import "slosim/sim/clock"

// cutOff is a network fault: the gateway and the other replicas reach a replica no
// more. Requests that have a part in it fail, and the engine aborts them as it does
// when a client hangs up; the process lives on and keeps its cache.
func (c *cluster) cutOff(now clock.Time, f *fleet, i int) {
	c.turn(now, f, i, broken) // first, so that nothing is sent there meanwhile
	g := f.first + int32(i)
	for id := range c.flights {
		x := &c.flights[id]
		if !x.live || !c.touches(x, int32(id), g) {
			continue
		}
		if h := c.half(x, int32(id)); h != nil && h.stage == moving {
			c.links.cancel(now, int32(id))
			if !x.dead {
				c.fail(now, x, int32(id), true)
			}
			c.arrived(now, int32(id)) // whereupon it is aborted: it is dead
			continue
		}
		if x.dead {
			continue
		}
		_, gone := c.withdraw(now, x, int32(id))
		if gone {
			c.leave(x)
		}
		c.fail(now, x, int32(id), !gone)
	}
}
