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
	prefix           prefix
	cohorts          []cohort // in order of the experiment's changes
}

type pair struct{ prompt, output Lengths }

type cohort struct {
	id     int32 // 1 + index of the change
	change Change
	join   rng.Source
	pair   pair
}

// prefix draws what a class's prompts share with others.
type prefix struct {
	priority       int32
	system         System
	content        uint64 // key of the class's contents
	pick, hits, at rng.Source
	ratio          float64
	lengths        Lengths
}

// contentUnit is what a system prompt's length is rounded down to, so that its
// end is a KV block's end.
const contentUnit = 16

func newPrefix(c *Class, seed uint64) (prefix, error) {
	p := prefix{
		priority: c.Priority, system: c.System, ratio: c.Hit.Ratio,
		content: rng.New(0, rng.SystemPick, c.Stream).Uint64(0),
		pick:    rng.New(seed, rng.SystemPick, c.Stream),
		hits:    rng.New(seed, rng.HitJoin, c.Stream),
		at:      rng.New(seed, rng.HitLength, c.Stream),
	}
	p.system.Tokens -= p.system.Tokens % contentUnit
	var err error
	if p.ratio > 0 {
		p.lengths, err = c.Hit.Tokens.Compile()
	}
	return p, err
}

// draw fills in priority, content and cached tokens of request i.
func (p *prefix) draw(i int64, r *Request) {
	r.Priority = p.priority
	r.Cached, r.Chain = 0, Chain{}
	if p.system.Tokens > 0 {
		variant := p.pick.Uint64(i) % uint64(max(p.system.Variants, 1))
		r.Chain = Chain{Group: p.content + variant, GroupUnits: 1, Session: spread(p.content, uint64(i)), UnitSize: p.system.Tokens}
	}
	if p.ratio > 0 && p.hits.Float64(i) < p.ratio {
		r.Cached = min(p.lengths.At(p.at.Float64(i)), r.Prompt)
	}
}

// NewShaper returns the shaper of a class under an experiment's changes.
func NewShaper(c *Class, changes []Change, seed uint64) (*Shaper, error) {
	s := &Shaper{
		prompts: rng.New(seed, rng.PromptLength, c.Stream),
		outputs: rng.New(seed, rng.OutputLength, c.Stream),
	}
	var err error
	if s.prefix, err = newPrefix(c, seed); err != nil {
		return nil, err
	}
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
	s.prefix.draw(i, r)
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
	if k := s.Join(row.Index, t, r); k >= 0 {
		c := &s.cohorts[k]
		if c.change.Prompt != nil {
			r.Prompt = c.pair.prompt.At(s.prompts.Float64(row.Index))
		}
		if c.change.Output != nil {
			r.Output = c.pair.output.At(s.outputs.Float64(row.Index))
		}
	}
	s.prefix.draw(row.Index, r)
	if len(row.IDs) > 0 {
		r.Chain = Chain{IDs: row.IDs, Session: spread(s.prefix.content, uint64(row.Index)), UnitSize: row.Block}
	}
}
