package engine

import (
	"slices"

	"slosim/sim/clock"
)

// Cancel implements Replica, as vLLM aborts: at once out of the front end and the
// queue; a running request gives its blocks back and is in no further step, while
// the steps that are fixed already take the time they take. One whose last token is
// in flight ends by itself.
func (v *VLLM) Cancel(now clock.Time, i, id int32) (sent int32, gone bool) {
	v.advance(now)
	v.calm = unknown
	if i < 0 || v.rows[i].id != id {
		return 0, false
	}
	r := &v.rows[i]
	sent = r.made
	switch r.state {
	case waiting:
		if !v.leaveFront(i) {
			v.waiting.remove(v.waiting.find(i))
		}
		v.giveBack(i, r, int64(r.computed))
	case prefilling, joining, drafting:
		v.others -= int64(r.computed)
		switch r.state {
		case joining:
			sent-- // in flight
		case drafting:
			v.drafts--
		}
		v.partial = without(v.partial, i)
		v.joiners.remove(i, &v.joining)
		v.leaveRunning(i, int64(r.computed))
	case decoding:
		if r.last == v.newest {
			return 0, false
		}
		held := r.heldAt0 + v.newest
		sent = max(0, r.output-int32(r.last-v.newest)-int32(v.steps))
		v.finish.remove(i)
		v.leaveDecode(r, held)
		v.leaveRunning(i, held)
	default:
		return 0, false
	}
	v.releaseRow(i)
	v.blocked = false
	v.out = slices.DeleteFunc(v.out, func(e Event) bool { return e.ID == id })
	return sent, true
}

// leaveRunning takes a row with so many tokens of KV out of running and out of the
// steps that are fixed, and frees its blocks.
func (v *VLLM) leaveRunning(i int32, held int64) {
	for k := range v.steps {
		st := v.at(k)
		st.started.remove(i, &st.more.started)
		st.firsts.remove(i, &st.more.firsts)
		st.more.drafts = without(st.more.drafts, i)
	}
	v.giveBack(i, &v.rows[i], held)
	v.live--
	v.changed = true
}

// find returns the place of a row in the queue, from its head on.
func (d *deque) find(i int32) int32 {
	k := int32(0)
	for d.at(k) != i {
		k++
	}
	return k
}

// Cancel implements Replica. Of a running request the next token becomes the last:
// schedulers of their own kinds are spared a second way out.
func (c *rowwise) Cancel(now clock.Time, i, id int32) (sent int32, gone bool) {
	c.advance(now)
	if i < 0 || c.jobs[i].id != id || c.jobs[i].output == 0 {
		return 0, false
	}
	j := &c.jobs[i]
	k := slices.IndexFunc(c.front.list[c.front.head:], func(a inbound) bool { return a.job == i })
	switch queued := c.waiting.has(i); {
	case k >= 0:
		k += c.front.head
		c.front.list = slices.Delete(c.front.list, k, k+1)
	case queued:
		c.waiting.remove(c.waiting.find(i))
	default:
		j.output = min(j.output, j.made+1)
		return 0, false
	}
	sent = j.made
	c.release(i)
	c.out = slices.DeleteFunc(c.out, func(e Event) bool { return e.ID == id })
	return sent, true
}

func (d *deque) has(i int32) bool {
	for k := range d.n {
		if d.at(k) == i {
			return true
		}
	}
	return false
}
