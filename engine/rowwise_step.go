package engine

import (
	"fmt"

	"slosim/models"
	"slosim/sim/clock"
)

// rowStep is one scheduled step.
type rowStep struct {
	batch   models.Batch
	same    bool    // the rows of the step before, all decoding
	started []int32 // jobs with their first chunk in it, their first token still to come
	firsts  []int32 // jobs that make their first token
	finals  []int32 // jobs that make their last token
}

// fill schedules steps until the pipeline is full or nothing is left to do.
func (c *rowwise) fill(now clock.Time) {
	for c.steps < c.depth && c.schedule(now) {
	}
	if c.steps == 0 && c.waiting.n > 0 {
		panic(fmt.Sprintf("engine: %d requests wait, nothing runs and none was admitted", c.waiting.n))
	}
}

// schedule fixes the composition of the next step. It reports whether there was
// anything to do.
func (c *rowwise) schedule(now clock.Time) bool {
	st := &c.ring[c.steps]
	st.batch = models.Batch{}
	st.started, st.firsts, st.finals = st.started[:0], st.firsts[:0], st.finals[:0]
	c.build = st
	c.plan.schedule(now)
	if st.batch.Tokens == 0 {
		return false
	}
	st.same = !c.changed && st.batch.PrefillTokens == 0
	c.changed = st.batch.PrefillTokens > 0 || len(st.finals) > 0 && !c.keep
	c.steps++
	c.scheduled++
	return true
}

// admit takes the head of the queue in.
func (c *rowwise) admit() int32 {
	i := c.waiting.popFront()
	c.live++
	c.spent.Prompted += int64(c.jobs[i].target)
	return i
}

// prefill schedules n tokens of a job's prompt and reports whether they were the
// last; then its next token is made in this step.
func (c *rowwise) prefill(i, n int32) bool {
	j := &c.jobs[i]
	st := c.build
	if j.computed == 0 && !j.seen {
		st.started = append(st.started, i)
	}
	c.grow(j, j.computed+n)
	b := &st.batch
	b.Seqs++
	b.Tokens += n
	b.PrefillTokens += n
	b.PrefillArea += int64(n)*int64(j.computed) + int64(n)*int64(n)/2
	j.computed += n
	c.held += int64(n)
	if !j.decodes() {
		return false
	}
	j.made++
	if !j.seen {
		j.seen = true
		st.firsts = append(st.firsts, i)
	}
	if j.made == j.output {
		st.finals = append(st.finals, i)
	}
	return true
}

// decode schedules one output token of every running job whose prompt is done.
// Those that make their last leave the list, unless the scheduler keeps them;
// blocks and slot are theirs until that token is out.
func (c *rowwise) decode() {
	var rows int32
	var context int64
	kept := c.running[:0]
	for _, i := range c.running {
		j := &c.jobs[i]
		if j.computed < j.target {
			kept = append(kept, i)
			continue
		}
		j.computed++
		j.made++
		rows++
		context += int64(j.computed)
		if j.computed > j.room {
			c.grow(j, j.computed)
		}
		if j.made == j.output {
			c.build.finals = append(c.build.finals, i)
			if !c.keep {
				continue
			}
		}
		kept = append(kept, i)
	}
	c.running = kept
	c.held += int64(rows)
	b := &c.build.batch
	b.Seqs += rows
	b.Tokens += rows
	b.DecodeSeqs += rows
	b.DecodeCtx += context
}

// decodeShort tells whether the free blocks do not hold the next token of every
// running job whose prompt is done.
func (c *rowwise) decodeShort() bool {
	return len(c.running) > int(c.freeBlks) && c.decodeNeed() > c.freeBlks
}

// decodeNeed returns how many blocks the running jobs that decode take up with
// their next token.
func (c *rowwise) decodeNeed() int32 {
	need := int32(0)
	for _, i := range c.running {
		need += c.needOf(&c.jobs[i])
	}
	return need
}

// needOf returns how many blocks the job's next output token takes up: one or
// none.
func (c *rowwise) needOf(j *job) int32 {
	if j.computed == j.room && j.computed >= j.target {
		return 1
	}
	return 0
}

// preempt takes a job's blocks away; the scheduler puts it back into the queue.
// Tokens in flight still land and are prefilled again with the rest.
func (c *rowwise) preempt(now clock.Time, i int32) {
	j := &c.jobs[i]
	c.out = append(c.out, Event{Kind: Preempted, ID: j.id, At: now, Lost: j.computed})
	c.freeBlks += j.blocks
	c.promised -= j.promised
	c.held -= int64(j.computed)
	j.blocks, j.room, j.promised, j.computed, j.target = 0, 0, 0, 0, j.prompt+j.made
	c.live--
	c.changed = true
}

// grow lets a job hold blocks for a number of tokens.
func (c *rowwise) grow(j *job, tokens int32) {
	n := c.blocksFor(tokens) - j.blocks
	if n <= 0 {
		return
	}
	j.blocks += n
	j.room = j.blocks << c.shift
	c.freeBlks -= n
	if c.freeBlks < 0 {
		panic(fmt.Sprintf("engine: request %d took %d KV blocks too many", j.id, -c.freeBlks))
	}
	c.minFree = min(c.minFree, c.freeBlks)
}

// blocksFor returns how many KV blocks hold a number of tokens.
func (c *rowwise) blocksFor(tokens int32) int32 {
	return int32((int64(tokens) + int64(c.cfg.BlockSize) - 1) >> c.shift)
}

// begin starts the first step of the ring at now.
func (c *rowwise) begin(now clock.Time) {
	st := &c.ring[0]
	r := &c.run
	if !st.same || c.bin != c.runBin || r.end == clock.Never {
		r.t0, r.n, c.runBin = now, 0, c.bin
		c.cost = c.cfg.Model.Step(st.batch, c.bin)
		r.a = c.cost.Total()
		r.b, c.growth = 0, models.Cost{}
		if st.batch.PrefillTokens == 0 {
			c.growth = c.cfg.Model.Slope(st.batch.DecodeSeqs, c.bin)
			r.b = c.growth.Total()
		}
	}
	r.end = r.at(r.n + 1)
	for _, i := range st.started {
		c.jobs[i].started = now
	}
}

// boundary processes the end of the running step.
func (c *rowwise) boundary() {
	now := c.run.end
	c.account()
	c.gap(now)
	c.publish(now, &c.ring[0])
	c.ring[0], c.ring[1] = c.ring[1], c.ring[0]
	c.steps--
	planned := c.steps > 0
	if planned {
		c.begin(now)
	}
	c.fill(now)
	if planned {
		return
	}
	if c.steps == 0 {
		c.run.end = clock.Never
		return
	}
	c.begin(now)
}

// gap reports the inter-token latencies of the step that ends: for most rows the
// time since the last step that decoded, whatever was prefilled in between; for
// the others since their first token.
func (c *rowwise) gap(now clock.Time) {
	if c.cfg.Gaps == nil {
		return
	}
	st := &c.ring[0]
	if rows := int64(st.batch.DecodeSeqs); rows > 0 {
		for _, f := range c.fresh {
			n := min(f.rows, rows)
			rows -= n
			c.cfg.Gaps.Gap(now, now.Sub(f.at), n)
		}
		if rows > 0 {
			c.cfg.Gaps.Gap(now, now.Sub(c.decoded), rows)
		}
		c.fresh, c.decoded = c.fresh[:0], now
	}
	if n := len(st.firsts); n > 0 {
		c.fresh = append(c.fresh, firstTokens{now, int64(n)})
	}
}

// firstTokens are rows whose first token came at one instant.
type firstTokens struct {
	at   clock.Time
	rows int64
}

// account adds the step that ends to the work done.
func (c *rowwise) account() {
	r := &c.run
	from := r.at(r.n)
	c.spent.Cost.Add(&c.cost, 1)
	if r.n > 0 && (r.b != 0 || c.growth.Memory != 0) {
		c.spent.Cost.Add(&c.growth, r.n)
	}
	r.n++
	c.spent.Steps++
	c.spent.Busy += r.end.Sub(from)
}

// visible returns when a step's tokens reach the clients. A serial front end takes
// them one after the other, and those of later steps wait behind them.
func (c *rowwise) visible(now clock.Time, st *rowStep) clock.Time {
	h := &c.cfg.Host
	at := now.Add(clock.Duration(h.PublishPerSeqPs * int64(st.batch.Seqs) / 1000))
	if h.StreamPerTokenPs == 0 {
		return at
	}
	tokens := int64(st.batch.DecodeSeqs) + int64(len(st.firsts))
	c.streamedPs = max(c.streamedPs, int64(now)*1000) + tokens*h.StreamPerTokenPs
	return max(at, clock.Time(c.streamedPs/1000))
}

// publish makes the tokens of a finished step visible and frees what ended.
func (c *rowwise) publish(now clock.Time, st *rowStep) {
	at := c.visible(now, st)
	for _, i := range st.firsts {
		j := &c.jobs[i]
		j.prefilled = now
		if j.output > 1 {
			c.out = append(c.out, j.event(FirstToken, at))
		}
	}
	for _, i := range st.finals {
		c.out = append(c.out, c.jobs[i].event(Finished, at))
		c.live--
		c.ended++
		if !c.keep {
			c.release(i)
		}
	}
}
