package sim

import (
	"slosim/models"
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

// maxBackdated bounds the turns before the start that are walked through.
const maxBackdated = 3_000_000

// sessionHorizon returns how long before the start sessions may have begun that
// still go on then: as long as nearly the longest lasts.
func (p *plan) sessionHorizon(class int, s *source) clock.Duration {
	const n = 1000
	cycle := s.answer.Seconds()
	for k := range n {
		if s.thinking {
			cycle += max(0, s.think.Quantile((float64(k)+.5)/n)) / n
		}
	}
	horizon := 1.2 * cycle * float64(min(s.sessions.turns.At(.9999), workloads.MaxTurns))
	if rate := p.exp.Traffic[class].Rate.Mean; rate > 0 {
		horizon = min(horizon, maxBackdated/rate)
	}
	return clock.FromSeconds(min(horizon, 60*86400))
}

// answerTime is about how long an answer of a class takes: on an idle replica, with
// its mean lengths.
func (p *plan) answerTime(class int) clock.Duration {
	c := &p.exp.Traffic[class]
	prompt, err := c.Prompt.Compile()
	if err != nil {
		return 0
	}
	output, err := c.Output.Compile()
	if err != nil {
		return 0
	}
	same := func(x float64) float64 { return x }
	pool := int(p.poolOf[class])
	row := p.models[pool].Step(models.Batch{Tokens: 1, Seqs: 1, DecodeSeqs: 1, DecodeCtx: int64(prompt.Mean(same))}, p.exp.Pools[pool].startBin())
	n := int32(min(prompt.Mean(same)+float64(c.System.Tokens)+1, float64(p.exp.Pools[pool].Engine.MaxModelLen-1)))
	return p.idleTTFT(pool, max(1, n)) + clock.Duration(float64(row.Total())/1000*output.Mean(same))
}

// backdate lets the sessions that began before the start go on: a class is in full
// swing from the beginning. Their turns so far are walked through with answers that
// take as long as on an idle replica; the next one is sent when its time has come.
func (c *cluster) backdate(s *source, start clock.Time) error {
	for s.next.Send < start {
		k := s.sessions.open(s.next.Index)
		for t := s.next.Send; ; {
			if t >= start {
				c.loop.At(t, timerUser, int64(s.class)<<userBits|int64(k))
				break
			}
			var r workloads.Request
			s.shapeTurn(k, t, &r)
			if !s.sessions.answered(k, &r, false) {
				break
			}
			t = t.Add(s.answer + s.thinkTime(r.Index))
		}
		if err := s.advance(); err != nil {
			return err
		}
	}
	return nil
}
