package sim

import (
	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/workloads"
)

// sessions are the conversations of a class that go on.
type sessions struct {
	spec   *workloads.Session
	turns  workloads.Lengths
	share  float64 // of the arrivals that begin a session: 1 ÷ mean turns
	begins rng.Source
	counts rng.Source
	list   []session
	spare  int32
}

// session is one conversation.
type session struct {
	number   int64
	turn     int32 // the one in flight, or the next
	turns    int32
	context  int32 // tokens said so far
	restarts int32
	next     int32 // free list
}

func newSessions(c *workloads.Class, seed uint64) (*sessions, error) {
	s := &sessions{
		spec: &c.Session, spare: -1,
		begins: rng.New(seed, rng.SessionBegin, c.Stream), counts: rng.New(seed, rng.SessionTurns, c.Stream),
	}
	var err error
	s.turns, err = c.Session.Turns.Compile()
	s.share = 1 / s.turns.MeanTurns()
	return s, err
}

// starts tells whether arrival i begins a session: the others are turns of sessions
// that began before. Thinning keeps a Poisson process what it is.
func (s *sessions) starts(i int64) bool { return s.begins.Float64(i) < s.share }

// open begins a session and returns its slot.
func (s *sessions) open(i int64) int32 {
	k := s.spare
	if k < 0 {
		k = int32(len(s.list))
		s.list = append(s.list, session{})
	} else {
		s.spare = s.list[k].next
	}
	s.list[k] = session{number: i, turns: min(s.turns.At(s.counts.Float64(i)), workloads.MaxTurns)}
	return k
}

// shape makes the next request of a session.
func (src *source) shapeTurn(k int32, now clock.Time, r *workloads.Request) {
	s := src.sessions
	x := &s.list[k]
	r.Class = src.class
	src.shaper.Turn(x.number, x.turn, x.context, x.restarts, now, r)
	if most := s.spec.MaxContext; most > 0 && r.Prompt > most && x.context > 0 {
		x.context = 0
		x.restarts++
		src.shaper.Turn(x.number, x.turn, 0, x.restarts, now, r)
	}
}

// answered ends a turn and tells whether another one follows.
func (s *sessions) answered(k int32, r *workloads.Request, failed bool) bool {
	x := &s.list[k]
	x.context = r.Prompt + r.Output
	x.turn++
	if !failed && x.turn < x.turns {
		return true
	}
	x.next = s.spare
	s.spare = k
	return false
}
