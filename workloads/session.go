package workloads

import "slosim/sim/clock"

// Session makes a class's requests turns of conversations, or calls of an agent:
// each turn's prompt is what was said before and something new, so that a prefix
// cache can find all but that. The class's rate stays that of requests: sessions
// begin at rate ÷ mean turns. Prompt is then the new tokens of a turn; a system
// prompt comes once, on top.
type Session struct {
	Turns      Dist  // requests per session, ≥ 1
	Think      Dist  // seconds from an answer to the next request; Kind "" = none
	MaxContext int32 // tokens: a turn that would exceed it begins with an empty context; 0 = no limit
}

// On tells whether the class has sessions.
func (s *Session) On() bool { return s.Turns.Kind != "" }

// turnBits is the room for turns in a request's index.
const turnBits = 16

// MaxTurns bounds the turns of a session.
const MaxTurns = 1<<turnBits - 1

// Turn shapes a turn of a session whose context so far is so many tokens and began
// anew so many times. The whole session is in one cohort: that of its first draw.
func (s *Shaper) Turn(session int64, turn, context, restarts int32, t clock.Time, r *Request) {
	j := session<<turnBits | int64(turn)
	k := s.Join(session, t, r)
	r.Index = j
	lengths, p := &s.base, &s.prefix
	if k >= 0 {
		if c := &s.cohorts[k]; c.prefix != nil {
			lengths, p = &c.pair, c.prefix
		} else {
			lengths = &c.pair
		}
	}
	u, v := s.prompts.Float64(j), s.outputs.Float64(j)
	if s.rho != 0 {
		v = s.related(u, v)
	}
	fresh := lengths.prompt.At(u)
	r.Output = lengths.output.At(v)
	if k >= 0 {
		if most := s.cohorts[k].change.OutputCap; most > 0 {
			r.Output = min(r.Output, most)
		}
	}
	if context == 0 {
		context = p.system.Tokens
	}
	r.Prompt = context + fresh
	r.Priority, r.Cached, r.Known = p.priority, 0, context
	r.Chain = Chain{Session: spread(p.content, uint64(session)<<8|uint64(restarts&255)), UnitSize: wholeSequence}
	if p.system.Tokens > 0 {
		r.Chain.Group, r.Chain.GroupUnits, r.Chain.UnitSize = p.content+p.variant(session), 1, p.system.Tokens
	}
}

// MeanTurns returns the mean of the whole numbers that a distribution yields.
func (l *Lengths) MeanTurns() float64 {
	const n = 1 << 14
	sum := 0.0
	for k := range n {
		sum += float64(l.At((float64(k) + .5) / n))
	}
	return sum / n
}
