package workloads

import (
	"slosim/sim/clock"
	"slosim/sim/rng"
)

// Arrivals yields the send times of an open loop: a renewal process of unit rate
// in operational time, mapped through the inverse cumulative rate. One draw per
// arrival, the same draws under any rate.
type Arrivals struct {
	curve *Curve
	gaps  rng.Source
	shape float64
	index int64
	spent float64 // operational time of the last arrival
}

// NewArrivals returns the arrivals of a class over [from, to).
func NewArrivals(c *Class, in Intensity, seed uint64, from, to clock.Time) *Arrivals {
	shape := c.Rate.Burstiness
	if shape == 0 {
		shape = 1
	}
	return &Arrivals{curve: NewCurve(&in, from, to), gaps: rng.New(seed, rng.Gap, c.Stream), shape: shape}
}

// Next returns the next arrival's time and index, and false after the last.
func (a *Arrivals) Next() (clock.Time, int64, bool) {
	i := a.index
	a.index++
	a.spent += rng.Gamma(a.gaps.Float64(i), a.shape)
	t, ok := a.curve.Invert(a.spent)
	return t, i, ok
}

// Shaper draws what a request looks like: its cohort and its lengths.
type Shaper struct {
	prompts, outputs rng.Source
	base             pair
	cohorts          []cohort // in order of the experiment's changes
}

type pair struct{ prompt, output Lengths }

type cohort struct {
	id     int32 // 1 + index of the change
	change Change
	join   rng.Source
	pair   pair
}

// NewShaper returns the shaper of a class under an experiment's changes.
func NewShaper(c *Class, changes []Change, seed uint64) (*Shaper, error) {
	s := &Shaper{
		prompts: rng.New(seed, rng.PromptLength, c.Stream),
		outputs: rng.New(seed, rng.OutputLength, c.Stream),
	}
	var err error
	if c.Trace == nil {
		if s.base.prompt, err = c.Prompt.Compile(); err != nil {
			return nil, err
		}
		if s.base.output, err = c.Output.Compile(); err != nil {
			return nil, err
		}
	}
	for k, ch := range changes {
		if ch.Class != c.Name || ch.Share == 0 {
			continue
		}
		co := cohort{id: int32(k + 1), change: ch, pair: s.base, join: rng.New(seed, rng.CohortJoin, c.Stream+"\x00"+ch.Name)}
		if ch.Prompt != nil {
			if co.pair.prompt, err = ch.Prompt.Compile(); err != nil {
				return nil, err
			}
		}
		if ch.Output != nil {
			if co.pair.output, err = ch.Output.Compile(); err != nil {
				return nil, err
			}
		}
		s.cohorts = append(s.cohorts, co)
	}
	return s, nil
}

// Shape fills in cohort and lengths of request i, sent at t. The lengths of a
// cohort use the same draws as the class's own, so a moved request keeps its
// rank.
func (s *Shaper) Shape(i int64, t clock.Time, r *Request) {
	p := &s.base
	if k := s.Join(i, t, r); k >= 0 {
		p = &s.cohorts[k].pair
	}
	r.Prompt = p.prompt.At(s.prompts.Float64(i))
	r.Output = p.output.At(s.outputs.Float64(i))
}

// Join fills in index and cohort of request i, sent at t, and returns the
// cohort's number, −1 for none. A request that two changes claim belongs to the
// later one.
func (s *Shaper) Join(i int64, t clock.Time, r *Request) int {
	r.Index, r.Cohort = i, 0
	for k := len(s.cohorts) - 1; k >= 0; k-- {
		c := &s.cohorts[k]
		if share := c.change.Share * c.change.Progress(t); share > 0 && c.join.Float64(i) < share {
			r.Cohort = c.id
			return k
		}
	}
	return -1
}

// Replay is Shape for a row of a trace: its lengths stand, unless it joins a
// cohort that has lengths of its own.
func (s *Shaper) Replay(row Row, t clock.Time, r *Request) {
	r.Prompt, r.Output = row.Prompt, row.Output
	k := s.Join(row.Index, t, r)
	if k < 0 {
		return
	}
	c := &s.cohorts[k]
	if c.change.Prompt != nil {
		r.Prompt = c.pair.prompt.At(s.prompts.Float64(row.Index))
	}
	if c.change.Output != nil {
		r.Output = c.pair.output.At(s.outputs.Float64(row.Index))
	}
}
