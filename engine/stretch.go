package engine

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/prefetch"
	"slosim/workloads"
)

// stretch is a run of steps with the same rows at the same clock. Its boundaries
// are defined in closed form, for the stepping engine too, so that both agree to
// the nanosecond: step n (from 0) ends at
//
//	t0 + ⌊(a·(n+1) + b·(n+1)·n/2) / 1000⌋ ns
//
// with a the first step's time and b the growth per step, in picoseconds.
type stretch struct {
	end      clock.Time // of the running step; Never when idle
	t0       clock.Time
	n        int64 // steps of the stretch that have ended
	a, b     int64
	from     clock.Time // end of the first n steps
	booked   int64      // of the n steps: counted in spent and told to the gap meter
	bookedTo clock.Time
}

// at returns the end of the first n steps of the stretch.
func (r *stretch) at(n int64) clock.Time {
	return r.t0 + clock.Time(uint64(r.a*n+r.b*(n*(n-1)>>1))/1000)
}

// ended returns how many of the stretch's steps have ended by now.
func (r *stretch) ended(now clock.Time) int64 {
	n := r.n
	if d, step := uint64(now-r.from), uint64(r.end-r.from); d < 64*step { // a guess: as if all were as long as the first
		n += int64(d / step)
	} else {
		n = r.solve(now)
	}
	for r.at(n) > now {
		n--
	}
	for r.at(n+1) <= now {
		n++
	}
	return n
}

// solve returns how many of the stretch's steps have ended by now, but for rounding.
func (r *stretch) solve(now clock.Time) int64 {
	ps := float64(now-r.t0) * 1000
	if r.b == 0 {
		return int64(ps / float64(r.a))
	}
	h := float64(r.a)/float64(r.b) - 0.5 // b/2·n² + (a − b/2)·n = ps
	return int64(math.Sqrt(h*h+2*ps/float64(r.b)) - h)
}

// begin starts a stretch at now with the first step of the ring.
func (v *VLLM) begin(now clock.Time, st *step) {
	r := &v.run
	v.book(r.n, r.from)
	r.t0, r.n, r.from = now, 0, now
	r.booked, r.bookedTo = 0, now
	v.runRows, v.runBin = st.batch.DecodeSeqs, v.bin
	if v.ahead.of(v.newest-int64(v.steps-1), &st.batch, v.bin) {
		v.mine ^= 1
		r.a, v.ahead.step = v.ahead.total, int64(none)
	} else {
		r.a = v.model.StepTo(&v.costs[v.mine&1], &st.batch, int(v.bin))
	}
	if st.extras {
		r.a += v.extras(st)
	}
	if st.batch.PrefillTokens == 0 {
		r.b = v.model.GrowthTo(&v.growth, st.batch.DecodeSeqs, int(v.bin))
	} else {
		r.b, v.growth = 0, models.Growth{}
	}
	r.end = r.at(1)
	for k := range st.started.n {
		i := st.started.at(k, st.more.started)
		v.times[i].started = now
	}
}

// extras adds to the cost of a step what loading from the second tier and drafting take,
// and returns it.
func (v *VLLM) extras(st *step) int64 {
	ps := st.more.loadPs
	if len(st.more.drafts) > 0 {
		ps += v.cfg.Spec.DraftPs * int64(v.cfg.Spec.Drafts)
	}
	v.costs[v.mine&1].Host += ps
	return ps
}

// boundary processes the end of the running step, or of several at once when
// nothing can happen at the boundaries between, up to and including limit.
func (v *VLLM) boundary(limit clock.Time) {
	if n := v.quiet(); n > 0 {
		if v.visible > limit && v.run.at(v.run.n+n) > limit {
			n = v.run.ended(limit) - v.run.n
		}
		v.skip(n)
		return
	}
	v.calm = unknown
	now := v.run.end
	if v.steps == 1 {
		v.retire(v.finish.next() == v.newest)
	}
	r := &v.run
	r.n++
	r.from = now
	if v.stepping {
		v.book(r.n, now)
	}
	st, then := v.running, v.planned
	if st.publishes() {
		v.publish(now, st)
	}
	v.pass()
	if v.steps--; v.steps == 0 {
		v.start(now)
		return
	}
	if then.same && v.bin == v.runBin {
		r.end = r.at(r.n + 1)
	} else {
		v.begin(now, then)
	}
	v.schedule(now, st)
}

// quiet returns how many of the coming boundaries change nothing but the step
// counter. It is worked out anew after every other boundary, and when anything but
// time has touched the replica.
func (v *VLLM) quiet() int64 {
	if v.calm == unknown {
		v.foresee()
	}
	return v.calm
}

// farAhead is how many boundaries a replica looks ahead at most: further, a stretch's
// figures could overflow.
const farAhead = 1 << 16

// unknown says that calm has to be worked out.
const unknown = -1

// foresee works out how many of the coming boundaries are quiet (same rows, nobody
// to admit, blocks enough, clock unchanged) and when the next event can appear if no
// request arrives: the end of the step in which a row ends, or of the running step
// when that is not known ahead.
func (v *VLLM) foresee() {
	v.calm, v.visible, v.admits = 0, v.run.end, 0
	// What comes out one way or the other by chance is asked first, because it decides
	// nearly always: a branch that a processor mispredicts costs as much as thirty
	// instructions.
	if v.steps == 2 && !v.planned.same || v.changed || v.joiners.n|v.running.batch.PrefillTokens != 0 ||
		v.waiting.n > 0 && !v.blocked || v.steps < v.depth || v.bin != v.runBin || v.stepping {
		return
	}
	last := v.finish.next() - v.newest
	n := v.affordable(min(last, farAhead))
	if n == 0 {
		return
	}
	v.calm = n
	if n == last && v.affordable(n+1) > n {
		n += int64(v.steps - 1) // the planned steps up to that end have the same rows
		if v.hints != nil {
			v.hints.row = v.finish.row()
		}
		prefetch.One(unsafe.Pointer(&v.rows[v.finish.row()]))
	}
	v.visible = v.run.at(v.run.n + n + 1)
}

// affordable returns for how many of n further steps of the same rows the free
// blocks suffice. Every row takes one block per BlockSize steps.
func (v *VLLM) affordable(n int64) int64 {
	if v.decodes == 0 || int64(v.freeBlks) >= int64(v.decodes)*(n>>v.shift()+1) {
		return n
	}
	cycles := int64(v.freeBlks / v.decodes)
	k := cycles << v.shift()
	left := v.freeBlks - int32(cycles)*v.decodes
	for k < n {
		left -= v.residue.need(v.newest + k + 1)
		if left < 0 {
			break
		}
		k++
	}
	return k
}

// skip passes n quiet boundaries.
func (v *VLLM) skip(n int64) {
	r := &v.run
	r.n += n
	r.from, r.end = r.at(r.n), r.at(r.n+1)
	v.calm -= n
	cycles := n >> v.shift()
	blocks := int32(cycles) * v.decodes
	v.take(blocks + v.residue.needs(v.newest+1, n-cycles<<v.shift()))
	v.minFree = min(v.minFree, v.freeBlks)
	v.newest += n
	v.heldSum += n * int64(v.decodes)
	last := v.at(v.steps - 1)
	last.batch.DecodeCtx = v.heldSum
	if v.steps == 2 {
		v.running.batch.DecodeCtx = v.heldSum - int64(v.decodes)
	}
}

// book adds the steps of the stretch since the last time, up to one that ended at a
// time, to the work done, and reports their inter-token latencies.
func (v *VLLM) book(to int64, at clock.Time) {
	r := &v.run
	n := to - r.booked
	if n == 0 {
		return
	}
	v.spent.Steps += n
	length := at.Sub(r.bookedTo)
	v.spent.Busy += length
	gaps := v.cfg.Gaps
	if v.runRows == 0 {
		gaps = nil
	}
	if to == 1 { // the first step: most stretches have no other
		v.spent.Cost.AddOnce(&v.costs[v.mine&1])
		if gaps != nil {
			gaps.Gap(at, length, int64(v.runRows))
		}
	} else {
		v.spent.Cost.Add(&v.costs[v.mine&1], n)
		v.spent.Cost.AddGrowth(&v.growth, n*r.booked+n*(n-1)>>1)
		switch {
		case gaps == nil:
		case n == 1 || r.b*n < r.a>>8:
			gaps.Gap(at, length/clock.Duration(n), int64(v.runRows)*n)
		default:
			v.gaps(to)
		}
	}
	r.booked, r.bookedTo = to, at
}

// gaps reports the inter-token latencies of the steps that are not booked up to one:
// every decoding row made a token in each. Only where a step is more than 1/256 longer
// than another are they reported apart. Rows that lost their place in between are not
// followed.
func (v *VLLM) gaps(last int64) {
	r := &v.run
	for from := r.booked; from < last; {
		to := min(last, from+1+(r.a+r.b*from)>>8/r.b)
		begin, end := r.at(from), r.at(to)
		v.cfg.Gaps.Gap(end, end.Sub(begin)/clock.Duration(to-from), int64(v.runRows)*(to-from))
		from = to
	}
}

// publish makes the tokens of a finished step visible and frees what ended.
func (v *VLLM) publish(now clock.Time, st *step) {
	at := now.Add(clock.Duration(uint64(v.cfg.Host.PublishPerSeqPs*int64(st.batch.Seqs)) / 1000))
	for k := range st.firsts.n {
		i := st.firsts.at(k, st.more.firsts)
		v.times[i].prefilled = now
		if r := &v.rows[i]; r.output > 1 {
			v.tell(FirstToken, at, i, r)
		}
	}
	switch i := st.finals; {
	case len(st.more.drafts) > 0 || i != none && v.rows[i].next != none:
		v.endAll(now, at, st)
	case i != none:
		v.end(now, at, i)
	}
	st.finals = none
}

// endAll ends the rows that make their last token in a step, several or by speculation.
func (v *VLLM) endAll(now, at clock.Time, st *step) {
	v.ended = v.ended[:0]
	if len(st.more.drafts) > 0 {
		v.verify(st)
	}
	for i := st.finals; i != none; i = v.rows[i].next {
		v.ended = append(v.ended, i)
	}
	if len(v.ended) > 1 { // in order of admission, as the running list has them
		slices.SortFunc(v.ended, func(i, j int32) int {
			return cmp.Compare(v.rows[i].admission, v.rows[j].admission)
		})
	}
	for _, i := range v.ended {
		v.end(now, at, i)
	}
}

// end tells of a row's last token and frees what it had.
func (v *VLLM) end(now, at clock.Time, i int32) {
	r := &v.rows[i]
	if r.half == workloads.PrefillHalf {
		v.pin(now, i)
		return
	}
	v.tell(Finished, at, i, r)
	v.giveBack(i, r, int64(r.prompt+r.output-1))
	v.others -= int64(r.prompt + r.output - 1)
	v.live--
	v.releaseRow(i)
	v.blocked = false
}

// tell appends an event of a row, filled in where it stands.
func (v *VLLM) tell(k Kind, at clock.Time, i int32, r *row) {
	n := len(v.out)
	if n == cap(v.out) {
		v.out = append(v.out, Event{})
	} else {
		v.out = v.out[:n+1]
	}
	e := &v.out[n]
	e.Kind, e.ID, e.At, e.Lost, e.Reason, e.Row = k, r.id, at, 0, 0, 0
	s := &v.times[i]
	e.Ready, e.Started, e.Prefilled = s.ready, s.started, s.prefilled
}

// told is tell of what a caller asks for, which stands for the row.
func (v *VLLM) told(k Kind, at clock.Time, i int32) {
	v.tell(k, at, i, &v.rows[i])
	v.out[len(v.out)-1].Row = i
}

// overfull tells whether the queue limit may reject a request in the front end.
func (v *VLLM) overfull() bool {
	return v.cfg.MaxWaiting > 0 && v.waiting.n+v.inFront > v.cfg.MaxWaiting
}
