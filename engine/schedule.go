package engine

import (
	"slices"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// schedule fixes the composition of the next step at now and appends it to the
// ring, in the place of an old one. It reports whether there was anything to do.
func (v *VLLM) schedule(now clock.Time, st *step) bool {
	if v.apart {
		v.nobodyApart()
	}
	s := v.newest + 1
	ends := v.finish.next() == v.newest
	// unchanged: the step has the rows of the one before, all decoding
	if growth := v.residue.need(s); !ends && !v.changed && v.joiners.n|v.drafts == 0 && len(v.partial) == 0 && (v.waiting.n == 0 || v.blocked) &&
		v.decodes > 0 && growth <= v.freeBlks && !v.apart {
		v.again(s, growth, st)
		return true
	}
	v.retire(ends)
	if v.joiners.n > 0 {
		v.join()
	}

	st.batch = models.Batch{}
	st.clear()
	v.heldSum += int64(v.decodes) // each row holds one token more than in the step before

	if v.changed { // another budget is left: a smaller chunk may fit
		v.blocked = false
	}
	preempted := false
	if growth := v.residue.need(s); len(v.partial) == 0 && v.drafts == 0 && growth <= v.freeBlks {
		v.take(growth)
	} else {
		preempted = v.scheduleRunning(now, s, st, growth)
	}
	if v.filing {
		v.fileChunks()
	}
	if !preempted && v.waiting.n > 0 && !v.blocked {
		v.admit(now, st)
	}
	b := &st.batch
	b.DecodeSeqs, b.DecodeCtx = v.decodes, v.heldSum
	b.Tokens = v.decodes + b.PrefillTokens
	if v.apart {
		v.countApart(b)
	}
	b.Seqs += b.DecodeSeqs
	if b.Tokens == 0 {
		// A row that preempted itself has left an empty step: whoever fits starts now.
		return preempted && v.steps == 0 && v.waiting.n > 0 && v.schedule(now, st)
	}
	st.same = !v.changed && b.PrefillTokens == 0
	v.changed = b.PrefillTokens > 0 || v.apart && (v.idle.rows > 0 || v.waste.rows > 0 || v.spec.rows > 0)
	v.newest, v.retired = s, false
	v.steps++
	v.minFree = min(v.minFree, v.freeBlks)
	return true
}

// again schedules a step with the rows of the one before, all decoding.
func (v *VLLM) again(s int64, growth int32, st *step) {
	v.retired, v.newest = false, s
	v.heldSum += int64(v.decodes)
	v.take(growth)
	v.minFree = min(v.minFree, v.freeBlks)
	b := &st.batch
	b.Tokens, b.Seqs, b.DecodeSeqs, b.PrefillTokens = v.decodes, v.decodes, v.decodes, 0
	b.DecodeCtx, b.PrefillArea = v.heldSum, 0
	st.clear()
	st.same = true
	v.steps++
}

// nobodyApart begins a step in which no rows are treated apart but those that were
// late in the one before.
func (v *VLLM) nobodyApart() {
	v.idle, v.waste, v.late = someRows{}, v.late, someRows{}
	v.spec, v.drafted = someRows{}, 0
	v.apart = v.waste != someRows{}
}

// countApart puts the rows that are treated apart into a batch of all others.
func (v *VLLM) countApart(b *models.Batch) {
	b.DecodeSeqs += v.waste.rows + v.spec.rows - v.idle.rows
	b.DecodeCtx += v.waste.held + v.spec.held - v.idle.held
	b.Tokens += v.waste.rows + v.drafted - v.idle.rows
}

// retire takes the rows that end in the newest step out of the aggregates, if any do.
// They keep their blocks and their place in running until that step's output is
// processed.
func (v *VLLM) retire(ends bool) {
	if !v.retired {
		v.retired = true
		if ends {
			v.retireEnded()
		}
	}
}

func (v *VLLM) retireEnded() {
	v.changed = true
	st := v.at(v.steps - 1) // the newest step is still in flight: it is not processed before it is retired
	for v.finish.next() == v.newest {
		i := v.finish.row()
		v.finish.remove(i)
		r := &v.rows[i]
		held := r.heldAt0 + v.newest
		v.leaveDecode(r, held)
		r.state = ending
		r.made = r.output
		v.others += held
		v.linger(i, v.newest+1, &v.waste, 1, held+1)
		r.next, st.finals = st.finals, i
	}
}

// linger lets a row whose last token is in flight take part in step s all the same where
// the scheduler cannot know that it ends: it counts n times among some rows.
func (v *VLLM) linger(i int32, s int64, among *someRows, n int32, held int64) {
	if v.cfg.StopEOS && v.cfg.Host.Async {
		v.asides[i].extra = s
		v.apart = true
		among.add(n, held)
	}
}

// leaveDecode takes a decoding row, which holds so many tokens in step newest, out of
// the aggregates.
func (v *VLLM) leaveDecode(r *row, held int64) {
	v.decodes--
	v.heldSum -= held
	v.residue.add(r.heldAt0, -1)
	r.blocks = v.blocksFor(held)
}

// join lets the rows whose prefill ended in the newest step decode from the next
// one on.
func (v *VLLM) join() {
	v.changed = true
	for k := range v.joiners.n {
		i := v.joiners.at(k, v.joining)
		r := &v.rows[i]
		if v.cfg.Spec.Drafts > 0 {
			r.state = drafting
			v.drafts++
			continue
		}
		r.state = decoding
		r.heldAt0 = int64(r.target) - v.newest
		r.last = v.newest + int64(r.output-r.made)
		v.decodes++
		v.heldSum += int64(r.target)
		v.others -= int64(r.target)
		v.residue.add(r.heldAt0, 1)
		if r.last > mostEnd {
			panic("engine: a replica has made more steps than can be counted")
		}
		v.finish.add(i, r.last)
	}
	v.joiners.n = 0
}

// scheduleRunning gives the running rows their tokens and blocks for step s, in which
// the decoding ones take growth blocks. It reports whether any row was preempted.
func (v *VLLM) scheduleRunning(now clock.Time, s int64, st *step, growth int32) bool {
	need := growth
	room := v.cfg.MaxBatchedTokens - v.decodes
	if v.apart {
		room -= v.waste.rows
	}
	want := int32(0)
	for _, i := range v.partial {
		r := &v.rows[i]
		n := min(v.limit(r.target-r.computed), room)
		want += n
		need += v.blocksFor(int64(r.computed+n)) - r.blocks
	}
	// The order of the rows matters only when blocks or budget run out.
	if need > v.freeBlks || len(v.partial) > 1 && want > room || v.drafts > 0 {
		return v.walkRunning(now, s, st)
	}
	v.take(growth)
	budget := room
	kept := v.partial[:0]
	for _, i := range v.partial {
		r := &v.rows[i]
		if n := min(v.limit(r.target-r.computed), budget); n > 0 {
			budget -= n
			if v.chunk(i, n, st) {
				continue
			}
		}
		kept = append(kept, i)
	}
	v.partial = kept
	return false
}

// limit caps a chunk at long_prefill_token_threshold.
func (v *VLLM) limit(n int32) int32 {
	if t := v.cfg.LongPrefillTokens; t > 0 {
		return min(n, t)
	}
	return n
}

// walkRunning is scheduleRunning row by row in order of admission, as vLLM does
// it: rows that find no budget wait a step, and rows that find no blocks preempt
// the one admitted last.
func (v *VLLM) walkRunning(now clock.Time, s int64, st *step) bool {
	preempted := false
	rows := v.rows
	budget := v.cfg.MaxBatchedTokens
	for _, e := range v.inOrder() {
		if budget < 0 {
			break
		}
		if !e.current(rows) {
			continue
		}
		r := &rows[e.row]
		if r.state == ending {
			if extra := v.asides[e.row].extra; extra == s && budget > 0 {
				budget--
			} else if extra == s {
				v.waste.add(-1, int64(r.prompt+r.output))
			}
			continue
		}
		n := int32(1)
		switch r.state {
		case prefilling:
			n = v.limit(r.target - r.computed)
		case drafting:
			n = min(1+v.cfg.Spec.Drafts, r.output-r.made)
		}
		n = min(n, budget)
		if n == 0 {
			if r.state == decoding {
				v.delay(e.row, s)
			}
			continue
		}
		take := int32(0)
		if r.state == prefilling || r.state == drafting {
			take = max(0, v.blocksFor(int64(r.computed+n))-r.blocks)
		} else if (r.heldAt0+s-1)&int64(v.cfg.BlockSize-1) == 0 {
			take = 1
		}
		lost := false
		for take > v.freeBlks && !lost {
			victim := v.victim(s)
			budget += v.preempt(now, victim, s, st)
			preempted, lost = true, victim == e.row
		}
		if lost {
			continue
		}
		budget -= n
		v.asides[e.row].step, v.asides[e.row].chunk = s, n
		if r.state == decoding {
			v.take(take)
		} else if r.state == drafting {
			v.speculate(e.row, n, take, st)
		} else if v.chunk(e.row, n, st) {
			v.partial = without(v.partial, e.row)
		}
	}
	return preempted
}

// delay keeps a decoding row out of step s: it found no budget. Its tokens, its
// end and its blocks move one step back.
func (v *VLLM) delay(i int32, s int64) {
	r := &v.rows[i]
	v.residue.add(r.heldAt0, -1)
	r.heldAt0--
	r.last++
	v.residue.add(r.heldAt0, 1)
	v.finish.remove(i)
	v.finish.add(i, r.last)
	v.heldSum--
	v.idle.add(1, r.heldAt0+s)
	v.apart = true
	v.changed = true
}

// victim returns the running row to preempt: the one admitted last, or the last
// by (priority, arrival). Rows whose last token is in flight are spared.
func (v *VLLM) victim(s int64) int32 {
	if v.cfg.Priority {
		worst := none
		for _, e := range v.inOrder() {
			r := &v.rows[e.row]
			if e.current(v.rows) && (r.state != ending || v.asides[e.row].step == s) && (worst == none || v.first(worst, e.row)) {
				worst = e.row
			}
		}
		return worst
	}
	entries := v.inOrder()
	for k := len(entries) - 1; ; k-- {
		e := entries[k]
		if e.current(v.rows) && v.rows[e.row].state != ending {
			return e.row
		}
	}
}

// preempt frees a row's blocks while step s is being scheduled and queues it
// again, at the head or by its priority. Tokens in flight still land and are
// prefilled again with the rest. It returns the budget that the row gives back if
// the walk had scheduled it already.
func (v *VLLM) preempt(now clock.Time, i int32, s int64, st *step) int32 {
	r := &v.rows[i]
	back := int32(0)
	if x := &v.asides[i]; x.step == s {
		back = x.chunk
	}
	held := int64(r.computed)
	if r.state == decoding {
		held = r.heldAt0 + v.newest
		v.finish.remove(i)
		v.heldSum-- // the step being scheduled has counted its token already
		v.leaveDecode(r, held)
		r.blocks = v.blocksFor(held + int64(back))
		r.made = r.output - int32(r.last-v.newest)
	} else {
		v.others -= held
		switch {
		case r.state == drafting:
			v.withdraw(i, back, st)
		case back > 0:
			v.undo(i, st)
			held -= int64(back)
		}
		v.partial = without(v.partial, i)
	}
	v.filing = v.cfg.PrefixCache // it may find its own again
	v.giveBack(i, r, held)
	r.computed, r.target = 0, r.prompt+r.made
	r.half, r.loaded = workloads.Whole, false // what was handed over is lost
	r.state = waiting
	v.live--
	if v.cfg.Priority {
		v.enqueue(i)
	} else {
		k := int32(0)
		for k < v.waiting.n && v.rows[v.waiting.at(k)].loaded {
			k++ // rows that hold their blocks already stay first
		}
		v.waiting.insert(k, i)
	}
	v.blocked, v.changed = false, true
	v.out = append(v.out, Event{Kind: Preempted, ID: r.id, At: now, Lost: int32(held)})
	return back
}

// undo takes a chunk out of the step being scheduled again.
func (v *VLLM) undo(i int32, st *step) {
	r := &v.rows[i]
	n := int64(v.asides[i].chunk)
	past := int64(r.computed) - n
	st.batch.Seqs--
	st.batch.PrefillTokens -= int32(n)
	st.batch.PrefillArea -= n*past + n*n/2
	switch r.state {
	case prefilling:
		return
	case joining:
		v.joiners.remove(i, &v.joining)
	case ending:
		v.linger(i, 0, &v.late, -1, int64(r.target)+1)
		at := &st.finals
		for *at != i {
			at = &v.rows[*at].next
		}
		*at = r.next
	}
	r.made--
	if r.made == 0 {
		st.firsts.remove(i, &st.more.firsts)
		r.seen = false
	}
}

// without removes a row from a short list, keeping its order.
func without(list []int32, i int32) []int32 {
	if k := slices.Index(list, i); k >= 0 {
		return slices.Delete(list, k, k+1)
	}
	return list
}

// chunk schedules n prompt tokens of a row and reports whether they are its last.
func (v *VLLM) chunk(i, n int32, st *step) bool {
	r := &v.rows[i]
	take := v.blocksFor(int64(r.computed+n)) - r.blocks
	v.take(take)
	r.blocks += take
	b := &st.batch
	b.Seqs++
	b.PrefillTokens += n
	b.PrefillArea += int64(n)*int64(r.computed) + int64(n)*int64(n)/2
	r.computed += n
	v.others += int64(n)
	if v.filing && r.hit == 0 {
		v.chunked = append(v.chunked, i)
	}
	if r.computed < r.target {
		return false
	}
	r.made++
	if !r.seen {
		r.seen = true
		st.firsts.add(i, &st.more.firsts)
	}
	if r.made < r.output {
		r.state = joining
		v.joiners.add(i, &v.joining)
		return true
	}
	r.state = ending
	r.next = st.finals
	st.finals = i
	v.linger(i, v.newest+2, &v.late, 1, int64(r.target)+1)
	return true
}

// admit takes requests from the head of the queue while budget, sequences and
// blocks last. The first that does not fit stops it, unless SkipAhead lets it
// look further.
func (v *VLLM) admit(now clock.Time, st *step) {
	budget := v.cfg.MaxBatchedTokens - v.decodes - st.batch.PrefillTokens
	if v.apart {
		budget -= v.waste.rows + v.drafted
	}
	for k := int32(0); k < v.waiting.n && budget > 0; {
		if v.live >= v.cfg.MaxSeqs {
			v.blocked = true
			return
		}
		i := v.waiting.at(k)
		r := &v.rows[i]
		if r.half == workloads.DecodeHalf && !r.loaded {
			if !v.reserve(k, now) {
				v.blocked = true
				return
			}
			continue
		}
		h := v.lookup(i)
		n := min(v.limit(r.target-r.computed-(h.blocks+h.far)<<v.shift()), budget)
		if !v.fits(r, h, n) {
			if k++; k > v.cfg.SkipAhead || k == v.waiting.n {
				// Without the whole-prompt gate an eviction can shorten the hit and
				// with it what the first chunk needs.
				v.blocked = v.cfg.ReserveFullPrompt || !v.cfg.PrefixCache
				return
			}
			continue
		}
		if k == 0 {
			v.waiting.popFront()
		} else {
			v.waiting.remove(k)
		}
		v.admitted++
		v.live++
		if v.kept {
			v.keep(i)
		}
		r.admission, r.state = v.admitted, prefilling
		if !r.seen {
			st.started.add(i, &st.more.started)
		}
		budget -= n
		v.spent.Prompted += int64(r.target)
		v.others += int64(r.computed) // of KV that has arrived
		if h.far > 0 {
			v.fetch(&v.content[i].chain, h, st)
		}
		if h.blocks+h.far > 0 {
			v.reuse(i, h)
		}
		if !v.chunk(i, n, st) {
			v.partial = append(v.partial, i)
		}
		if v.filing {
			v.fileChunks()
		}
	}
}

// fits tells whether the free blocks admit a row with this prefix hit and a first
// chunk of n tokens.
func (v *VLLM) fits(r *row, h hit, n int32) bool {
	tokens := r.computed + (h.blocks+h.far)<<v.shift() + n
	if v.cfg.ReserveFullPrompt {
		tokens = r.target
	}
	keep := int32(0)
	if v.live > 0 {
		keep = v.cfg.WatermarkBlocks
	}
	return v.blocksFor(int64(tokens))-r.blocks-h.blocks+h.cost+keep <= v.freeBlks
}
