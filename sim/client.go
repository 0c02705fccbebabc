package sim

import (
	"math"

	"slosim/engine"
	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/workloads"
)

// Clients that give up and come back. Every attempt is a request of its own, as a
// gateway counts it: the one that was given up is a bad event, the next one is sent
// after a back-off and has a TTFT from then on.

// comeback is a request that waits for its next attempt.
type comeback struct {
	req     workloads.Request
	user    int32
	attempt int32
	next    int32 // free list
}

// arm sets the timers of a client's patience.
func (c *cluster) arm(now clock.Time, id int32, client *workloads.Client) {
	f := &c.flights[id]
	arg := f.ticket(id)
	if client.Timeout > 0 {
		c.loop.At(now.Add(client.Timeout), timerTimeout, arg)
	}
	if s := c.sources[f.req.Class]; s.patient {
		d := clock.FromSeconds(max(0, s.patience.Quantile(s.patiences.Float64(f.req.Index))))
		c.loop.At(now.Add(d), timerPatience, arg)
	}
}

// lapsed is the end of a client's patience: for the first token, or for the last.
func (c *cluster) lapsed(now clock.Time, arg int64, first bool) {
	id := int32(arg & (1<<userBits - 1))
	f := &c.flights[id]
	if !f.expects(arg) || f.dead || first && f.first != clock.Never {
		return
	}
	sent, gone := c.withdraw(now, f, id)
	c.tellEnd(f, OutcomeTimedOut)
	if f.counted() {
		c.rec.timedOut(f, now, sent)
		c.open--
		c.rec.dismiss(f)
	}
	c.inFlight--
	c.discharge(f)
	switch {
	case gone && f.replica < 0: // it waited at a gate
		c.drop(id)
	case gone:
		c.leave(f)
		c.drop(id)
	default:
		f.dead = true
	}
	c.settle(now, c.sources[f.req.Class], f, true)
	c.stopWhenDecided()
}

// withdraw takes a request back from wherever it is; it returns the output tokens
// that the client had by now. If it is not gone an event will end it.
func (c *cluster) withdraw(now clock.Time, f *flight, id int32) (sent int32, gone bool) {
	if f.gate > 0 {
		c.pools[f.gate-1].gate.remove(id)
		return 0, true
	}
	if f.replica < 0 {
		return 0, false // still in the network
	}
	if f.split {
		switch c.halves[id].stage {
		case hopping, moving:
			return 0, false
		case atDecode:
			if sent, gone = c.cancel(now, f, id); gone {
				c.letGo(now, f, id)
			}
			return sent, gone
		}
	}
	return c.cancel(now, f, id)
}

func (c *cluster) cancel(now clock.Time, f *flight, id int32) (sent int32, gone bool) {
	sent, gone = c.replicas[f.replica].Cancel(now, f.handle, id)
	c.rouse(f.replica)
	return sent, gone
}

// buried handles an event of a request whose client has gone.
func (c *cluster) buried(now clock.Time, f *flight, e *engine.Event) {
	switch e.Kind {
	case engine.KVReady:
		c.handing(f.replica).Release(now, e.Row)
		c.leave(f)
		c.drop(e.ID)
	case engine.Reserved:
		c.reserved(now, f, e)
	case engine.Finished, engine.Rejected:
		c.letGo(now, f, e.ID)
		c.leave(f)
		c.drop(e.ID)
	}
}

// drop frees a flight's slot.
func (c *cluster) drop(id int32) { c.vacate(&c.flights[id], id) }

// vacate is drop of a flight that is at hand.
func (c *cluster) vacate(f *flight, id int32) {
	f.live, f.dead = false, false
	f.handle = c.free
	c.free = id
}

// settle is the client's side of a request's end: it comes back after a failure,
// or goes on to the next one. The request's slot may be free already, but nothing
// has been sent since.
func (c *cluster) settle(now clock.Time, s *source, f *flight, failed bool) {
	r, user, attempt := &f.req, f.user, f.attempt
	s.inFlight--
	retry := &c.plan.exp.Traffic[s.class].Client.Retry
	switch {
	case failed && attempt < int32(retry.Times):
		k := c.spare
		if k < 0 {
			k = int32(len(c.comebacks))
			c.comebacks = append(c.comebacks, comeback{})
		} else {
			c.spare = c.comebacks[k].next
		}
		c.comebacks[k] = comeback{req: *r, user: user, attempt: attempt + 1}
		c.loop.At(now.Add(s.backoff(retry, r.Index, attempt)), timerRetry, int64(k))
	case s.sessions != nil && !s.sessions.answered(user, r, failed):
		c.count(now, r, failed)
	case user >= 0:
		c.count(now, r, failed)
		c.loop.At(now.Add(s.thinkTime(r.Index)), timerUser, int64(s.class)<<userBits|int64(user))
	case failed:
		c.count(now, r, failed)
	}
	if s.held < len(s.backlog) {
		c.ask = s.backlog[s.held]
		s.held++
		if s.held == len(s.backlog) {
			s.backlog, s.held = s.backlog[:0], 0
		}
		c.send(now, s, &c.ask, -1, 0)
	}
}

// count notes a request whose last attempt has failed.
func (c *cluster) count(now clock.Time, r *workloads.Request, failed bool) {
	if failed && now >= 0 && now < clock.Time(c.plan.exp.Duration) {
		c.rec.cells[c.plan.groupOf[r.Class][r.Cohort]][c.phase].lost++
	}
}

// retries sends the next attempt of a request.
func (c *cluster) retries(now clock.Time, k int32) {
	x := &c.comebacks[k]
	c.ask = x.req
	x.next, x.req = c.spare, workloads.Request{}
	c.spare = k
	if s := c.sources[c.ask.Class]; now < s.until {
		c.send(now, s, &c.ask, x.user, x.attempt)
	}
}

// backoff is how long a client waits before attempt number attempt + 1:
// backoff·factor^attempt, at most the limit, less a uniform share of up to jitter.
func (s *source) backoff(r *workloads.Retry, index int64, attempt int32) clock.Duration {
	d := float64(r.Backoff) * math.Pow(r.Factor, float64(attempt))
	if r.Limit > 0 {
		d = min(d, float64(r.Limit))
	}
	d *= 1 - r.Jitter*s.jitters.Float64(index<<8|int64(attempt&255))
	return clock.Duration(min(d, float64(clock.Week)))
}

// clientDraws prepares what a class's clients draw.
func (s *source) clientDraws(c *workloads.Class, seed uint64) (err error) {
	s.jitters = rng.New(seed, rng.Jitter, c.Stream)
	if s.patient = c.Client.Patience.Kind != ""; s.patient {
		s.patiences = rng.New(seed, rng.Patience, c.Stream)
		s.patience, err = c.Client.Patience.Compile()
	}
	return err
}
