package engine

import (
	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// preview is what a coming step costs: the planned one, or the one that admits an
// arrival if nothing else comes.
type preview struct {
	batch models.Batch
	step  int64 // its number; none when it is that of no step
	total int64 // of its cost
	bin   int32
}

// of tells whether the preview is that of a step at a clock: of its number, which is soon
// asked and mostly differs, and of its batch, because the arrival that was foreseen may
// have been taken back, or not be the only one.
func (p *preview) of(step int64, b *models.Batch, bin int32) bool {
	return p.step == step && p.bin == bin && p.holds(b)
}

func (p *preview) holds(b *models.Batch) bool {
	// Field by field: some were just written, and a processor stalls when it loads two of
	// those as one.
	return p.batch.DecodeCtx == b.DecodeCtx && p.batch.PrefillArea == b.PrefillArea && p.batch.Tokens == b.Tokens &&
		p.batch.Seqs == b.Seqs && p.batch.DecodeSeqs == b.DecodeSeqs && p.batch.PrefillTokens == b.PrefillTokens
}

// Next implements Replica.
func (v *VLLM) Next() (clock.Time, bool) {
	next := v.run.end
	if v.steps > 0 {
		if v.quiet() > 0 {
			next = v.visible
		} else {
			next = v.publication()
		}
	}
	if ready := v.due; ready != clock.Never {
		switch {
		case v.steps == 0 || v.rejects > 0 || v.stepping || v.overfull():
			next = min(next, ready)
		case ready < next && !(v.blocked && v.waiting.n > 0 && !v.cfg.Priority && v.cfg.SkipAhead == 0):
			next = v.answer(ready, next)
		}
	}
	if len(v.out) > 0 {
		next = min(next, v.out[0].At)
	}
	return next, next != clock.Never
}

// publication returns the earliest time at which anything can become visible when the
// coming boundary is not quiet: that boundary, or the one after it if the running step
// publishes nothing and the planned one is known.
func (v *VLLM) publication() clock.Time {
	st, then := v.running, v.planned
	if v.hints != nil {
		v.hintStep()
	}
	if v.steps < 2 || st.publishes() || v.cfg.Spec.Drafts > 0 || v.stepping || v.halves ||
		v.freeBlks < v.decodes+v.cfg.MaxBatchedTokens>>v.shift()+v.cfg.MaxSeqs {
		return v.run.end
	}
	if then.same && v.bin == v.runBin {
		return v.run.at(v.run.n + 2)
	}
	if !v.ahead.of(v.newest, &then.batch, v.bin) {
		b, p := &then.batch, &v.ahead.batch
		p.Tokens, p.Seqs, p.DecodeSeqs, p.PrefillTokens = b.Tokens, b.Seqs, b.DecodeSeqs, b.PrefillTokens
		p.DecodeCtx, p.PrefillArea = b.DecodeCtx, b.PrefillArea
		v.foreseen(v.newest)
	}
	return v.run.end.Add(clock.Duration(v.ahead.total / 1000))
}

// foreseen works out what the foreseen batch costs, that of a step.
func (v *VLLM) foreseen(step int64) {
	v.ahead.step, v.ahead.bin = step, v.bin
	v.ahead.total = v.model.StepTo(&v.costs[v.mine&1^1], &v.ahead.batch, int(v.bin))
}

// answer returns the earliest time at which anything can become visible when the first
// arrival of the front end is ready at a time before next, which it would be without
// it: the end of the step that admits it where that can be foreseen, else the boundary
// at which it is admitted at the earliest.
func (v *VLLM) answer(ready, next clock.Time) clock.Time {
	if v.calm == 0 {
		return next
	}
	k := v.run.ended(max(ready, v.run.t0)) + 1
	at := v.run.at(k)
	quiet := k - v.run.n // boundaries up to then
	r := &v.rows[v.front.row]
	if quiet > v.calm || v.filing || v.waiting.n > 0 || v.cfg.Spec.Drafts > 0 || v.apart && v.waste.rows > 0 ||
		v.inFront > 1 && v.inbox[0].ready <= at || r.half != workloads.Whole || r.hit > 0 || v.live >= v.cfg.MaxSeqs {
		return min(next, at)
	}
	n := min(v.limit(r.target), v.cfg.MaxBatchedTokens-v.decodes)
	need := v.blocksFor(int64(r.target)) + v.cfg.WatermarkBlocks + v.decodes*int32(quiet>>v.shift()+2)
	if n <= 0 || need > v.freeBlks {
		return min(next, at)
	}
	if n == r.target && v.steps == 2 && v.inFront == 1 {
		v.admits = k
	}
	begin := v.run.at(k + int64(v.steps) - 1)
	if next <= begin {
		return next
	}
	p := &v.ahead.batch
	p.Tokens, p.Seqs, p.DecodeSeqs, p.PrefillTokens = v.decodes+n, v.decodes+1, v.decodes, n
	p.DecodeCtx, p.PrefillArea = v.heldSum+quiet*int64(v.decodes), int64(n)*int64(n)>>1
	v.foreseen(v.newest + quiet)
	if v.hints != nil {
		v.hints.row = v.front.row
	}
	return begin.Add(clock.Duration(v.ahead.total / 1000))
}

// admitForeseen passes the boundary at which the only request of the front end is
// admitted with its whole prompt, as answer has foreseen: what accept, the boundary and
// admit do, without asking again.
func (v *VLLM) admitForeseen() {
	r := &v.run
	if n := v.admits - 1 - r.n; n > 0 {
		v.skip(n)
	}
	v.calm, v.admits = unknown, 0
	r.n++
	r.from, r.end = r.end, r.at(r.n+1)
	v.pass()

	i := v.front.row
	v.inFront, v.due = 0, clock.Never
	v.enter(i)
	v.admitted++
	w := &v.rows[i]
	w.admission, w.state = v.admitted, prefilling
	v.live++
	if v.kept {
		v.keep(i)
	}
	v.spent.Prompted += int64(w.target)
	v.blocked = false

	st := v.planned
	v.retired = false
	v.newest++
	v.heldSum += int64(v.decodes)
	v.take(v.residue.need(v.newest))
	b := &st.batch
	b.Seqs, b.PrefillTokens, b.PrefillArea = 0, 0, 0
	st.clear()
	st.same = false
	st.started.add(i, &st.more.started)
	v.chunk(i, w.target, st)
	b.DecodeSeqs, b.DecodeCtx = v.decodes, v.heldSum
	b.Tokens = v.decodes + b.PrefillTokens
	b.Seqs += v.decodes
	v.changed = true
	v.minFree = min(v.minFree, v.freeBlks)
}
