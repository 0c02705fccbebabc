package sim

import (
	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/workloads"
)

// source is one class's clients within a replication: what they send when, and
// what they hold back.
type source struct {
	class    int32
	limit    int     // client-side cap on requests in flight; 0 = none
	arms     bool    // its clients' patience ends
	waits    bool    // its clients send again when they have their last token
	goesOn   bool    // its clients go on after a request
	groups   []int32 // of its requests, by cohort
	straight *fleet  // where they all go while replicas serve there and no rule acts; nil = deliver decides
	shaper   *workloads.Shaper
	arrivals *workloads.Arrivals    // open loop
	recorded []workloads.Request    // still to be sent
	trace    *workloads.TraceReader // replay
	offset   clock.Time             // of the trace's start
	from     clock.Time             // arrivals are drawn from here on
	until    clock.Time             // nothing is sent from here on
	row      workloads.Row          // replay: of the announced arrival
	next     *workloads.Request     // the announced arrival; Send is its time
	drawn    []workloads.Request    // arrivals drawn at once: the announced one and those after it
	at       int                    // of drawn: the announced one
	sent     int64                  // closed loop: requests so far

	inFlight           int
	offered            int64               // arrivals of the counted span
	backlog            []workloads.Request // arrivals behind a client-side cap, first come first served
	held               int                 // of backlog: already sent
	thinking           bool
	think              workloads.Lengths
	thinks             rng.Source
	answer             clock.Duration // about how long one takes: for sessions before the start
	sessions           *sessions      // nil: every request stands alone
	patient            bool
	patience           workloads.Lengths
	patiences, jitters rng.Source
}

// newSource returns the clients of a class. The caller announces the first
// arrival with advance.
func (p *plan) newSource(class int, seed uint64, from, until clock.Time) (*source, error) {
	c := &p.exp.Traffic[class]
	s := &source{
		class: int32(class), until: until, limit: c.Client.MaxInFlight, groups: p.groupOf[class],
		arms:  c.Client.Patience.Kind != "" || c.Client.Timeout > 0,
		waits: c.Client.MaxInFlight > 0 || c.Client.Users > 0,
	}
	s.goesOn = s.waits || c.Session.On()
	var err error
	if s.shaper, err = workloads.NewShaper(c, p.exp.Changes, seed); err != nil {
		return nil, err
	}
	if err = s.clientDraws(c, seed); err != nil {
		return nil, err
	}
	if c.Session.On() {
		if s.sessions, err = newSessions(c, seed); err != nil {
			return nil, err
		}
		if err = s.prepareThinking(c.Session.Think, c.Stream, seed); err != nil {
			return nil, err
		}
		s.answer = p.answerTime(class)
		from = from.Add(-p.sessionHorizon(class, s))
	}
	s.from = from
	s.drawn = make([]workloads.Request, 1, workloads.Ahead)
	s.next = &s.drawn[0]
	switch {
	case len(c.Recorded) > 0:
		s.recorded = c.Recorded
	case c.Trace != nil:
		s.offset = from
		if s.trace, err = workloads.OpenTrace(*c.Trace); err != nil {
			return nil, err
		}
	case c.Client.Users > 0:
		if err = s.prepareThinking(c.Client.Think, c.Stream, seed); err != nil {
			return nil, err
		}
	default:
		in := workloads.NewIntensity(c, p.exp.Changes, p.exp.Start)
		s.arrivals = workloads.NewArrivals(c, in, seed, from, until)
		if s.sessions == nil && len(p.exp.Holds) == 0 { // nothing changes those to come
			s.drawn = s.drawn[:cap(s.drawn)]
			s.at = len(s.drawn) - 1
			for k := range s.drawn {
				s.drawn[k] = s.shaper.Blank()
				s.drawn[k].Class = s.class
			}
		}
		s.shaper.Expect(s.arrivals.Expected() * float64(p.exp.Replications))
	}
	return s, nil
}

// advance goes to the next arrival; its Send is clock.Never when there is none.
func (s *source) advance() error {
	if s.step() {
		return nil
	}
	return s.draw()
}

// step goes to the next of the arrivals drawn at once, false after the last of them.
func (s *source) step() bool {
	k := s.at + 1
	if k >= len(s.drawn) {
		return false
	}
	s.at, s.next = k, &s.drawn[k]
	return true
}

// draw draws what comes after the arrivals drawn so far.
func (s *source) draw() error {
	if len(s.drawn) > 1 {
		s.drawAhead((*[workloads.Ahead]workloads.Request)(s.drawn))
		return nil
	}
	s.next.Send = clock.Never
	s.next.Class = s.class
	switch {
	case len(s.recorded) > 0:
		if r := s.recorded[0]; r.Send < s.until {
			r.Class = s.class
			*s.next, s.recorded = r, s.recorded[1:]
		}
	case s.trace != nil:
		row, err := s.trace.Next()
		if err != nil {
			return err
		}
		s.row = row
		if at := s.offset.Add(row.Arrival); row.OK && at < s.until {
			s.shaper.Replay(row, at, s.next)
			s.next.Send = at
		}
	case s.arrivals != nil:
		at, i, ok := s.arrivals.Next()
		if s.sessions != nil {
			for ok && !s.sessions.starts(i) {
				at, i, ok = s.arrivals.Next()
			}
			s.next.Index = i
		} else if ok {
			s.shaper.Shape(i, at, s.next)
		}
		if ok {
			s.next.Send = at
		}
	}
	return nil
}

// drawAhead draws arrivals of an open loop. After the last one, all are at clock.Never.
func (s *source) drawAhead(r *[workloads.Ahead]workloads.Request) {
	s.at, s.next = 0, &r[0]
	n := s.arrivals.NextAll(r)
	s.shaper.ShapeAll(r[:n])
	for k := range r[n:] {
		r[n+k].Send = clock.Never
	}
}

// prepareThinking prepares the draws of think time.
func (s *source) prepareThinking(d workloads.Dist, stream string, seed uint64) (err error) {
	s.thinks = rng.New(seed, rng.Think, stream)
	if s.thinking = d.Kind != "" && !(d.Kind == "fixed" && d.Mean == 0); s.thinking {
		s.think, err = d.Compile()
	}
	return err
}

// thinkTime draws how long a user waits after its request number i.
func (s *source) thinkTime(i int64) clock.Duration {
	if !s.thinking {
		return 0
	}
	return clock.FromSeconds(max(0, s.think.Quantile(s.thinks.Float64(i))))
}

// reshape draws the announced arrival again, after a change has moved.
func (s *source) reshape() {
	at := s.next.Send
	switch {
	case s.trace != nil:
		s.shaper.Replay(s.row, at, s.next)
		s.next.Send = at
	case s.arrivals != nil && s.sessions == nil:
		s.shaper.Shape(s.next.Index, at, s.next)
	}
}
