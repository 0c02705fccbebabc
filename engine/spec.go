package engine

import "slosim/sim/rng"

// Spec is speculative decoding: a draft model proposes Drafts tokens per step and
// the model verifies them together, keeping the first ones that agree and adding
// one of its own. Each draft is accepted with probability Accept, independently,
// so a step makes (1 − Accept^(Drafts+1))/(1 − Accept) tokens on average.
//
// With speculation the scheduler runs in step with the GPU (no async scheduling),
// and every row is visited in every step.
type Spec struct {
	Drafts  int32      // per step; 0 = off
	Accept  float64    // in [0, 1)
	DraftPs int64      // time of one draft, for the whole batch
	Draws   rng.Source // of the acceptances
}

// emitted returns how many tokens a verification step makes, from a uniform draw:
// j tokens with probability Accept^(j−1)·(1 − Accept), all with the rest.
func (s *Spec) emitted(u float64, most int32) int32 {
	n, left := int32(1), s.Accept
	for n < most && u < left {
		n++
		left *= s.Accept
	}
	return n
}

// speculate gives a row n tokens in the step being scheduled.
func (v *VLLM) speculate(i, n, take int32, st *step) {
	r := &v.rows[i]
	v.take(take)
	r.blocks += take
	v.spec.add(1, int64(r.computed+n))
	v.drafted += n
	v.apart = true
	st.extras = true
	st.more.drafts = append(st.more.drafts, i)
}

// withdraw takes a preempted row out of those that speculate; n > 0 says that the
// step being scheduled had it already.
func (v *VLLM) withdraw(i, n int32, st *step) {
	r := &v.rows[i]
	v.drafts--
	if n > 0 {
		v.spec.add(-1, int64(r.computed+n))
		v.drafted -= n
		st.more.drafts = without(st.more.drafts, i)
	}
}

// verify draws what the step's drafts became; rows that are complete end.
func (v *VLLM) verify(st *step) {
	for _, i := range st.more.drafts {
		r := &v.rows[i]
		u := v.cfg.Spec.Draws.Float64(v.asides[i].arrival<<24 + int64(r.made))
		n := min(v.cfg.Spec.emitted(u, v.asides[i].chunk), r.output-r.made)
		r.made += n
		r.computed += n
		v.others += int64(n)
		if r.made == r.output {
			v.drafts--
			v.ended = append(v.ended, i)
		}
	}
	st.more.drafts = st.more.drafts[:0]
}
