package sim

import (
	"math"
	"slices"

	"slosim/sim/clock"
)

// links are the replicas' networks. Transfers share them max–min fairly: rates
// are recomputed whenever a transfer starts or ends, by filling the tightest link
// first.
type links struct {
	c        *cluster
	capacity []float64 // bytes/s each way, per replica
	flows    []flow
	newest   int64      // number of the newest forecast: older timers are void
	last     clock.Time // up to which remaining is accounted
	done     []int32
	moved    []float64 // bytes in the counted span, out and in, per replica
	out, in  []share   // scratch, per replica
}

// flow is one transfer.
type flow struct {
	id        int32
	from, to  int32
	remaining float64 // bytes
	rate      float64
}

// share is what a link still has to give while rates are filled.
type share struct {
	left  float64
	flows int
}

func newLinks(c *cluster) *links {
	l := &links{c: c, moved: make([]float64, len(c.replicas)), out: make([]share, len(c.replicas)), in: make([]share, len(c.replicas))}
	for k := range c.pools {
		for range c.pools[k].views {
			l.capacity = append(l.capacity, c.plan.exp.Pools[k].Link.BytesPerS)
		}
	}
	return l
}

// start begins a transfer.
func (l *links) start(now clock.Time, id, from, to int32, bytes float64) {
	l.pass(now)
	l.flows = append(l.flows, flow{id: id, from: from, to: to, remaining: bytes})
	l.share()
	l.forecast(now)
}

// timer ends the transfers that are done.
func (l *links) timer(now clock.Time, forecast int64) {
	if forecast != l.newest {
		return
	}
	l.pass(now)
	l.done = l.done[:0]
	kept := l.flows[:0]
	for _, f := range l.flows {
		if f.remaining <= f.rate*1e-9 { // within a nanosecond of its end
			l.done = append(l.done, f.id)
		} else {
			kept = append(kept, f)
		}
	}
	l.flows = kept
	l.share()
	l.forecast(now)
	for _, id := range l.done {
		l.c.arrived(now, id)
	}
}

// pass accounts the bytes moved since the last look.
func (l *links) pass(now clock.Time) {
	seconds := now.Sub(l.last).Seconds()
	counted := max(0, min(now, clock.Time(l.c.plan.exp.Duration)).Sub(max(l.last, 0)).Seconds())
	l.last = now
	for i := range l.flows {
		f := &l.flows[i]
		f.remaining -= f.rate * seconds
		l.moved[f.from] += f.rate * counted
		l.moved[f.to] += f.rate * counted
	}
}

// share fills the rates max–min fairly.
func (l *links) share() {
	for i := range l.capacity {
		l.out[i] = share{left: l.capacity[i]}
		l.in[i] = share{left: l.capacity[i]}
	}
	for i := range l.flows {
		f := &l.flows[i]
		f.rate = -1
		l.out[f.from].flows++
		l.in[f.to].flows++
	}
	for range l.flows {
		// the tightest link decides the rate of all its unfilled flows
		tight := math.Inf(1)
		for i := range l.flows {
			if f := &l.flows[i]; f.rate < 0 {
				tight = min(tight, l.out[f.from].fair(), l.in[f.to].fair())
			}
		}
		if math.IsInf(tight, 1) {
			return
		}
		for i := range l.flows {
			f := &l.flows[i]
			if f.rate < 0 && min(l.out[f.from].fair(), l.in[f.to].fair()) <= tight*(1+1e-12) {
				f.rate = tight
				l.out[f.from].give(tight)
				l.in[f.to].give(tight)
			}
		}
	}
}

// cancel ends a transfer that nobody waits for any more.
func (l *links) cancel(now clock.Time, id int32) {
	l.pass(now)
	l.flows = slices.DeleteFunc(l.flows, func(f flow) bool { return f.id == id })
	l.share()
	l.forecast(now)
}

// use returns the share of a pool's link capacity that transfers took in the
// counted span; 0 without links.
func (l *links) use(pool int) float64 {
	p := &l.c.pools[pool]
	moved, capacity := 0.0, 0.0
	for i := range p.views {
		moved += l.moved[p.first+int32(i)]
		capacity += l.capacity[p.first+int32(i)]
	}
	if capacity == 0 {
		return 0
	}
	return moved / (capacity * l.c.plan.exp.Duration.Seconds())
}

func (s *share) fair() float64 { return s.left / float64(s.flows) }

func (s *share) give(rate float64) {
	s.left = max(0, s.left-rate)
	s.flows--
}

// forecast sets the timer of the next end.
func (l *links) forecast(now clock.Time) {
	l.newest++
	first := math.Inf(1)
	for i := range l.flows {
		first = min(first, l.flows[i].remaining/l.flows[i].rate)
	}
	if !math.IsInf(first, 1) {
		l.c.loop.At(now.Add(clock.Duration(math.Ceil(max(0, first)*1e9))), timerTransfer, l.newest)
	}
}
