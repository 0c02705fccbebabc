package sim

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"slosim/engine"
	"slosim/sim/clock"
	"slosim/sim/stats"
	"slosim/workloads"
)

// station is a queue with c servers, first come first served; a request's
// service takes one nanosecond per output token.
type station struct {
	free    []clock.Time // when each server is free
	pending []engine.Event
	waits   stats.Sample
}

func newStation(servers int) *station { return &station{free: make([]clock.Time, servers)} }

func (s *station) Submit(now clock.Time, r *workloads.Request) int32 {
	best := 0
	for i := range s.free {
		if s.free[i] < s.free[best] {
			best = i
		}
	}
	start := max(now, s.free[best])
	end := start.Add(clock.Duration(r.Output))
	s.free[best] = end
	s.waits.Add(int64(start - now))
	e := engine.Event{Kind: engine.Finished, ID: r.ID, At: end, Ready: now, Started: start, Prefilled: end}
	k := len(s.pending)
	s.pending = append(s.pending, e)
	for k > 0 && s.pending[k-1].At > e.At {
		s.pending[k] = s.pending[k-1]
		k--
	}
	s.pending[k] = e
	return 0
}

func (s *station) Cancel(clock.Time, int32, int32) (int32, bool) { return 0, false }

func (s *station) HintAt(*engine.Hint) {}

func (s *station) Next() (clock.Time, bool) {
	if len(s.pending) == 0 {
		return clock.Never, false
	}
	return s.pending[0].At, true
}

func (s *station) Advance(now clock.Time, out []engine.Event) []engine.Event {
	n := 0
	for n < len(s.pending) && s.pending[n].At <= now {
		n++
	}
	out = append(out, s.pending[:n]...)
	s.pending = s.pending[:copy(s.pending, s.pending[n:])]
	return out
}

func (s *station) SetClock(clock.Time, int)           {}
func (s *station) Load(clock.Time) engine.Load        { return engine.Load{Total: 1} }
func (s *station) Spent(now clock.Time) *engine.Spent { return &engine.Spent{Until: now} }

// watched keeps Little's law over a replica: the integral of the number of
// requests submitted and not yet finished, and the sum of their sojourns.
type watched struct {
	engine.Replica
	in, out        int64
	number         int64
	area, sojourns int64
	last           clock.Time
	start          map[int32]clock.Time
	ends           []clock.Time // of requests whose last token lies ahead
}

func (w *watched) Submit(now clock.Time, r *workloads.Request) int32 {
	if w.start == nil {
		w.start = map[int32]clock.Time{}
	}
	w.tick(now)
	w.in++
	w.number++
	w.start[r.ID] = now
	return w.Replica.Submit(now, r)
}

// tick integrates the number up to now; publication may end a sojourn a little
// after the event that announced it.
func (w *watched) tick(now clock.Time) {
	for {
		k := -1
		for i, t := range w.ends {
			if t <= now && (k < 0 || t < w.ends[k]) {
				k = i
			}
		}
		if k < 0 {
			break
		}
		at := max(w.ends[k], w.last)
		w.area += w.number * int64(at-w.last)
		w.last = at
		w.number--
		w.ends[k] = w.ends[len(w.ends)-1]
		w.ends = w.ends[:len(w.ends)-1]
	}
	w.area += w.number * int64(now-w.last)
	w.last = now
}

func (w *watched) Advance(now clock.Time, out []engine.Event) []engine.Event {
	n := len(out)
	out = w.Replica.Advance(now, out)
	for _, e := range out[n:] {
		if e.Kind == engine.Finished || e.Kind == engine.Rejected {
			w.out++
			w.sojourns += int64(e.At - w.start[e.ID])
			delete(w.start, e.ID)
			w.ends = append(w.ends, e.At)
		}
	}
	w.tick(now)
	return out
}

// sync closes both sums at the last time seen: requests still inside count as
// far as they got.
func (w *watched) sync() {
	late := w.last
	for _, t := range w.ends {
		late = max(late, t)
	}
	w.tick(late)
	for _, t := range w.start {
		w.sojourns += int64(w.last - t)
	}
}

// erlangC is the probability that a customer of M/M/c waits (μ = 1).
func erlangC(c int, rate float64) float64 {
	term, sum := 1.0, 0.0
	for k := range c {
		sum += term
		term *= rate / float64(k+1)
	}
	last := term / (1 - rate/float64(c))
	return last / (sum + last)
}

// gammaQuantile is the quantile of a gamma distribution with mean 1.
func gammaQuantile(u, shape float64) float64 {
	return mathext.GammaIncRegInv(shape, math.Min(u, 1-1e-12)) / shape
}
