package workloads

import (
	"math"
	"strconv"

	"slosim/sim/clock"
	"slosim/sim/rng"
)

// hawkes is a self-exciting process with an exponential kernel. Immigrants come
// at (1 − branching) times the class's rate by inversion; offspring come from an
// excitation that jumps at each arrival and decays in between, whose next event
// has a closed form: nothing is stepped or rejected (Dassios and Zhao, "Exact
// simulation of Hawkes process with exponentially decaying intensity", 2013).
type hawkes struct {
	curve     *Curve
	baseline  rng.Source
	offspring rng.Source
	keep      float64 // 1 − branching
	jump      float64 // of the excitation per arrival, per second
	decay     float64 // per second
	excited   float64 // excitation just after last
	last      clock.Time
	until     clock.Time
	immigrant clock.Time // the next one
	spent     float64
	n, i      int64 // immigrants, arrivals
}

func newHawkes(h Hawkes, in *Intensity, seed uint64, stream string, from, to clock.Time) *hawkes {
	p := &hawkes{
		curve:     NewCurve(in, from, to),
		baseline:  rng.New(seed, rng.Gap, stream),
		offspring: rng.New(seed, rng.Gap, stream+"\x00offspring"),
		keep:      1 - h.Branching,
		decay:     1 / h.Decay.Seconds(),
		last:      from,
		until:     to,
	}
	p.jump = h.Branching * p.decay
	p.excited = h.Branching * in.At(from) // as if it had always been so
	p.immigrate()
	return p
}

// immigrate draws the next immigrant.
func (p *hawkes) immigrate() {
	p.spent += rng.Exp(p.baseline.Float64(p.n)) / p.keep
	p.n++
	p.immigrant, _ = p.curve.Invert(p.spent) // clock.Never after the last
}

func (p *hawkes) next() (clock.Time, bool) {
	at := p.immigrant
	born := false
	if d := 1 + math.Log(p.offspring.Float64(p.i))*p.decay/p.excited; d > 0 {
		if wait := -math.Log(d) / p.decay; wait < 1e9 {
			if t := p.last.Add(clock.FromSeconds(wait)); t < at {
				at, born = t, true
			}
		}
	}
	p.i++
	if at >= p.until {
		return clock.Never, false
	}
	p.excited = p.excited*math.Exp(-p.decay*at.Sub(p.last).Seconds()) + p.jump
	p.last = at
	if !born {
		p.immigrate()
	}
	return at, true
}

// callers merges many clients, each a renewal process in its own operational
// time with the gaps of its current window.
type callers struct {
	list []caller
	heap []int32 // by next arrival, then number
}

type caller struct {
	spec  *Caller
	curve *Curve
	gaps  rng.Source
	i     int64
	spent float64
	at    clock.Time

	window int // that gamma is of
	gamma  gammaGaps
}

// newCallers returns the arrivals of all clients; what else the class's rate has
// by way of factors (weekdays, growth, changes) applies to each of them.
func newCallers(specs []Caller, in *Intensity, seed uint64, stream string, from, to clock.Time) *callers {
	c := &callers{}
	for k := range specs {
		own := *in
		own.rate.Shape, own.rate.Windows = "windows", specs[k].Windows
		own.rate.Add, own.random = nil, in.random[:1]
		one := caller{spec: &specs[k], curve: NewCurve(&own, from, to), gaps: rng.New(seed, rng.Gap, stream+"\x00"+strconv.Itoa(k)), at: from, window: -1}
		if one.advance() {
			c.list = append(c.list, one)
		}
	}
	for i := range c.list {
		c.heap = append(c.heap, int32(i))
	}
	for i := len(c.heap)/2 - 1; i >= 0; i-- {
		c.sink(i)
	}
	return c
}

// advance draws the caller's next arrival.
func (c *caller) advance() bool {
	k := windowIndex(c.spec.Windows, c.at)
	g := c.spec.Gaps[k]
	u := c.gaps.Float64(c.i)
	c.i++
	if g.Weibull {
		c.spent += math.Pow(rng.Exp(u), 1/g.Shape) / math.Gamma(1+1/g.Shape)
	} else {
		if c.window != k {
			c.window, c.gamma = k, newGammaGaps(g.Shape)
		}
		c.spent += c.gamma.quantile(u)
	}
	var ok bool
	c.at, ok = c.curve.Invert(c.spent)
	return ok
}

func (c *callers) next() (clock.Time, bool) {
	if len(c.heap) == 0 {
		return clock.Never, false
	}
	one := &c.list[c.heap[0]]
	at := one.at
	if !one.advance() {
		last := len(c.heap) - 1
		c.heap[0] = c.heap[last]
		c.heap = c.heap[:last]
	}
	c.sink(0)
	return at, true
}

func (c *callers) less(i, j int32) bool {
	if a, b := c.list[i].at, c.list[j].at; a != b {
		return a < b
	}
	return i < j
}

// sink restores the heap below position i.
func (c *callers) sink(i int) {
	for {
		least := i
		for kid := 2*i + 1; kid <= 2*i+2 && kid < len(c.heap); kid++ {
			if c.less(c.heap[kid], c.heap[least]) {
				least = kid
			}
		}
		if least == i {
			return
		}
		c.heap[i], c.heap[least] = c.heap[least], c.heap[i]
		i = least
	}
}
