package workloads

import (
	"math"
	"sort"

	"slosim/sim/clock"
	"slosim/sim/rng"
)

// Arrivals yields the send times of an open loop: a renewal process of unit rate
// in operational time, mapped through the inverse cumulative rate. One draw per
// arrival, the same draws under any rate.
type Arrivals struct {
	curve *Curve
	gaps  rng.Source
	gamma gammaGaps
	index int64
	spent float64 // operational time of the last arrival
	scale float64 // of operational time
	limit int64   // arrivals that there are; 0 = no limit
	other process // another process than renewal; nil = none
}

// process yields arrival times one by one, and false after the last.
type process interface {
	next() (clock.Time, bool)
}

// NewArrivals returns the arrivals of a class over [from, to).
func NewArrivals(c *Class, in Intensity, seed uint64, from, to clock.Time) *Arrivals {
	in = in.Drawn(seed, c.Stream, from, to)
	shape := c.Rate.Burstiness
	if shape == 0 {
		shape = 1
	}
	a := &Arrivals{gaps: rng.New(seed, rng.Gap, c.Stream), gamma: newGammaGaps(shape), scale: 1}
	switch r := &c.Rate; {
	case len(r.Clients) > 0:
		a.other = newCallers(r.Clients, &in, seed, c.Stream, from, to)
	case r.Hawkes.Branching > 0:
		a.other = newHawkes(r.Hawkes, &in, seed, c.Stream, from, to)
	default:
		a.curve = NewCurve(&in, from, to)
		if r.Requests > 0 {
			a.limit = r.Requests
			a.scale = float64(r.Requests) / a.gapSum(r.Requests)
		}
	}
	return a
}

// gapSum returns the sum of the first n gaps.
func (a *Arrivals) gapSum(n int64) float64 {
	sum := 0.0
	for i := range n {
		sum += a.gamma.quantile(a.gaps.Float64(i))
	}
	return sum
}

// Expected returns the mean number of arrivals, 0 where it is not known.
func (a *Arrivals) Expected() float64 {
	if a.curve == nil {
		return 0
	}
	return a.curve.Total()
}

// Next returns the next arrival's time and index, and false after the last.
func (a *Arrivals) Next() (clock.Time, int64, bool) {
	i := a.index
	a.index++
	if a.other != nil {
		t, ok := a.other.next()
		return t, i, ok
	}
	if a.limit > 0 && i >= a.limit {
		return clock.Never, i, false
	}
	a.spent += a.gamma.quantile(a.gaps.Float64(i))
	t, ok := a.curve.Invert(a.spent * a.scale)
	return t, i, ok
}

// Shaper draws what a request looks like: its cohort and its lengths.
type Shaper struct {
	prompts, outputs rng.Source
	base             pair
	prefix           prefix
	cohorts          []cohort // in order of the experiment's changes
	rho              float64  // correlation of the normal scores of prompt and output
	rest             float64  // √(1 − rho²)
}

type pair struct{ prompt, output Lengths }

type cohort struct {
	id     int32 // 1 + index of the change
	change Change
	join   rng.Source
	pair   pair
	prefix *prefix // of its own; nil = the class's
}

// prefix draws what a class's prompts share with others.
type prefix struct {
	priority       int32
	system         System
	popular        []float64 // cumulative popularity of the system prompts; nil = all alike
	content        uint64    // key of the class's contents
	pick, hits, at rng.Source
	ratio          float64
	lengths        Lengths
}

// contentUnit is what a system prompt's length is rounded down to, so that its
// end is a KV block's end.
const contentUnit = 16

func newPrefix(c *Class, system System, hit Hit, name string, seed uint64) (prefix, error) {
	p := prefix{
		priority: c.Priority, system: system, ratio: hit.Ratio,
		content: rng.New(0, rng.SystemPick, name).Uint64(0),
		pick:    rng.New(seed, rng.SystemPick, c.Stream),
		hits:    rng.New(seed, rng.HitJoin, c.Stream),
		at:      rng.New(seed, rng.HitLength, c.Stream),
	}
	p.system.Tokens -= p.system.Tokens % contentUnit
	p.popular = zipf(system.Variants, system.Skew)
	var err error
	if p.ratio > 0 {
		p.lengths, err = hit.Tokens.Compile()
	}
	return p, err
}

// zipf returns the cumulative popularity of n things of which the k-th is chosen
// in proportion to k^−skew; nil if all are alike.
func zipf(n int32, skew float64) []float64 {
	if n < 2 || skew == 0 {
		return nil
	}
	sum := make([]float64, n)
	total := 0.0
	for k := range sum {
		total += math.Pow(float64(k+1), -skew)
		sum[k] = total
	}
	for k := range sum {
		sum[k] /= total
	}
	return sum
}

// variant returns the system prompt of request i.
func (p *prefix) variant(i int64) uint64 {
	if p.popular != nil {
		return uint64(min(sort.SearchFloat64s(p.popular, p.pick.Float64(i)), len(p.popular)-1))
	}
	return p.pick.Uint64(i) % uint64(max(p.system.Variants, 1))
}

// draw fills in priority, content and cached tokens of request i.
func (p *prefix) draw(i int64, r *Request) {
	r.Priority = p.priority
	r.Cached, r.Known, r.Chain = 0, p.system.Tokens, Chain{}
	if p.system.Tokens > 0 {
		r.Chain = Chain{Group: p.content + p.variant(i), GroupUnits: 1, Session: spread(p.content, uint64(i)), UnitSize: p.system.Tokens}
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
	if c.Correlation != 0 {
		s.rho = 2 * math.Sin(math.Pi*c.Correlation/6)
		s.rest = math.Sqrt(1 - s.rho*s.rho)
	}
	var err error
	if s.prefix, err = newPrefix(c, c.System, c.Hit, c.Stream, seed); err != nil {
		return nil, err
	}
	if c.Trace == nil && len(c.Recorded) == 0 {
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
		co, err := s.cohort(c, ch, seed)
		if err != nil {
			return nil, err
		}
		co.id = int32(k + 1)
		s.cohorts = append(s.cohorts, co)
	}
	return s, nil
}

// cohort prepares the cohort that a change forms.
func (s *Shaper) cohort(c *Class, ch Change, seed uint64) (cohort, error) {
	name := c.Stream + "\x00" + ch.Name
	co := cohort{change: ch, pair: s.base, join: rng.New(seed, rng.CohortJoin, name)}
	var err error
	if ch.Prompt != nil {
		if co.pair.prompt, err = ch.Prompt.Compile(); err != nil {
			return co, err
		}
	}
	if ch.Output != nil {
		if co.pair.output, err = ch.Output.Compile(); err != nil {
			return co, err
		}
	}
	if ch.System == nil && ch.Hit == nil {
		return co, nil
	}
	system, hit := c.System, c.Hit
	if ch.System != nil {
		system = *ch.System
	} else {
		name = c.Stream // the content stays
	}
	if ch.Hit != nil {
		hit = *ch.Hit
	}
	p, err := newPrefix(c, system, hit, name, seed)
	co.prefix = &p
	return co, err
}

// Shape fills in cohort and lengths of request i, sent at t. The lengths of a
// cohort use the same draws as the class's own, so a moved request keeps its
// rank.
func (s *Shaper) Shape(i int64, t clock.Time, r *Request) {
	k := s.Join(i, t, r)
	lengths := &s.base
	if k >= 0 {
		lengths = &s.cohorts[k].pair
	}
	r.Prompt = lengths.prompt.Draw(&s.prompts, i)
	if s.rho == 0 {
		r.Output = lengths.output.Draw(&s.outputs, i)
	} else {
		r.Output = lengths.output.At(s.related(s.prompts.Float64(i), s.outputs.Float64(i)))
	}
	if k >= 0 {
		s.finish(&s.cohorts[k], i, r)
	} else {
		s.prefix.draw(i, r)
	}
}

// Expect says how many requests will be shaped, which is worth preparing for if they
// are many.
func (s *Shaper) Expect(requests float64) {
	s.base.prompt.Expect(requests)
	s.base.output.Expect(requests)
	for k := range s.cohorts {
		s.cohorts[k].pair.prompt.Expect(requests)
		s.cohorts[k].pair.output.Expect(requests)
	}
}

// finish caps the output of a request in a cohort and draws its prefix.
func (s *Shaper) finish(c *cohort, i int64, r *Request) {
	if most := c.change.OutputCap; most > 0 {
		r.Output = min(r.Output, most)
	}
	if c.prefix != nil {
		c.prefix.draw(i, r)
	} else {
		s.prefix.draw(i, r)
	}
}

// related turns an independent draw v into one that is correlated with u: a
// Gaussian copula, whose rank correlation r has rho = 2·sin(π·r/6).
func (s *Shaper) related(u, v float64) float64 {
	z := s.rho*rng.Normal(u) + s.rest*rng.Normal(v)
	return min(max(0.5*math.Erfc(-z/math.Sqrt2), 0x1p-54), 1-0x1p-53)
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
		s.finish(c, row.Index, r)
	} else {
		s.prefix.draw(row.Index, r)
	}
	if len(row.IDs) > 0 {
		r.Chain = Chain{IDs: row.IDs, Session: spread(s.prefix.content, uint64(row.Index)), UnitSize: row.Block}
	}
}
