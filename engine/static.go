package engine

import "slosim/sim/clock"

// Static is batching as servers did it before continuous batching: a batch of at
// most MaxSeqs requests starts when the one before has ended, prefills all its
// prompts (in several steps if MaxBatchedTokens asks for it), and decodes at its
// full size until the longest output ends. What rows compute after their own last
// token is wasted; they keep their blocks. A client sees its last token when it is
// made, not when the batch ends.
//
// With outputs O_i a batch of B takes prefill(ΣP) + Σ_{k<max O} decode(B, k), and
// of its B·max O row-steps ΣO_i are of use: E[O]/E[max O] = 1/H_B for exponential
// outputs. Contrast and oracle, not a model of a product: steps are never fixed
// ahead, and outputs are known at the start.
type Static struct {
	rowwise
	prompted int // rows of running whose prompt is scheduled
}

// NewStatic returns an idle replica. It panics on contradictory limits.
func NewStatic(cfg Config) *Static {
	cfg.Host.Async = false
	s := &Static{}
	s.init(cfg, s, 0)
	s.keep = true
	return s
}

// schedule implements scheduler.
func (s *Static) schedule(clock.Time) {
	switch {
	case s.prompted < len(s.running):
		s.prompt()
	case s.live > 0:
		s.decode()
	default:
		for _, i := range s.running {
			s.release(i)
		}
		s.running, s.prompted = s.running[:0], 0
		for range s.fitting() {
			s.running = append(s.running, s.admit())
		}
		s.prompt()
	}
}

// prompt schedules as much of the batch's prompts as one step may hold.
func (s *Static) prompt() {
	budget := s.cfg.MaxBatchedTokens
	for s.prompted < len(s.running) && budget > 0 {
		i := s.running[s.prompted]
		n := min(s.jobs[i].target-s.jobs[i].computed, budget)
		budget -= n
		if s.prefill(i, n) {
			s.prompted++
		}
	}
}

// fitting returns how many requests from the head of the queue make the next
// batch: as many as can all go on until the longest of them ends.
func (s *Static) fitting() int32 {
	most := min(s.waiting.n, s.cfg.MaxSeqs)
	longest, blocks := int32(0), int64(0)
	for k := range most {
		if o := s.jobs[s.waiting.at(k)].output; o > longest {
			longest, blocks = o, 0
			for m := range k {
				blocks += s.blocksUntil(m, longest)
			}
		}
		if blocks += s.blocksUntil(k, longest); blocks > int64(s.freeBlks) {
			return k
		}
	}
	return most
}

// blocksUntil returns the blocks that request k of the queue holds when output
// tokens have been scheduled.
func (s *Static) blocksUntil(k, output int32) int64 {
	return int64(s.blocksFor(s.jobs[s.waiting.at(k)].prompt + output - 1))
}
