package engine

import "slosim/sim/clock"

// Prefill and decode on different replicas, as vLLM's NIXL connector does it: the
// prefill side keeps a finished prompt's blocks until the decode side has pulled
// them; the decode side reserves blocks for the whole prompt before the pull and
// holds them, without a place in running, while it waits.

// pin takes a prompt that is done out of running and keeps its blocks.
func (v *VLLM) pin(now clock.Time, i int32) {
	r := &v.rows[i]
	v.told(KVReady, now, i)
	r.state = pinned
	v.live--
	v.blocked = false // a place in running is free
}

// Release implements Handing: another replica has the KV of a pinned prompt.
func (v *VLLM) Release(now clock.Time, i int32) {
	v.advance(now)
	r := &v.rows[i]
	v.giveBack(i, r, int64(r.prompt))
	v.others -= int64(r.prompt)
	v.releaseRow(i)
	v.blocked, v.calm = false, unknown
	v.kick(now)
}

// reserve gives the request at place k of the queue the blocks of its whole
// prompt and lets it wait for its KV. It reports whether they fit.
func (v *VLLM) reserve(k int32, now clock.Time) bool {
	i := v.waiting.at(k)
	r := &v.rows[i]
	need := v.blocksFor(int64(r.prompt))
	if need > v.freeBlks {
		return false
	}
	v.waiting.remove(k)
	v.take(need)
	r.blocks, r.state = need, loading
	v.onTheWay++
	v.told(Reserved, now, i)
	return true
}

// Arrived implements Handing: the KV of a reserved prompt is there. The request
// goes to the head of the queue and computes its last prompt token again.
func (v *VLLM) Arrived(now clock.Time, i int32) {
	v.advance(now)
	r := &v.rows[i]
	r.loaded, r.computed, r.state = true, r.prompt-1, waiting
	v.onTheWay--
	v.waiting.pushFront(i)
	v.blocked, v.calm = false, unknown
	v.kick(now)
}
