package engine

import "slosim/sim/clock"

// job is one request inside a row-wise replica. It decodes once computed has
// reached target; from then on computed grows by one with every output token.
type job struct {
	id     int32
	prompt int32
	output int32 // tokens to make, ≥ 1
	asked  int32 // max_new_tokens, ≥ output: all that an admission rule may know
	made   int32 // output tokens scheduled so far

	target   int32 // tokens to prefill: the prompt and, after a preemption, what was made
	computed int32 // tokens whose KV is held or in flight
	blocks   int32 // KV blocks held
	room     int32 // tokens that they hold
	promised int32 // KV blocks that it may come to hold in all, where the kind reserves them
	seen     bool  // its first token is visible or in flight
	next     int32 // next free slot

	ready, started, prefilled clock.Time
}

// decodes tells whether the prompt is done and output is being made.
func (j *job) decodes() bool { return j.computed >= j.target }

func (j *job) event(k Kind, at clock.Time) Event {
	return Event{Kind: k, ID: j.id, At: at, Ready: j.ready, Started: j.started, Prefilled: j.prefilled}
}

// takeSlot returns a slot of the table of jobs.
func (c *rowwise) takeSlot() int32 {
	i := c.vacant
	if i == none {
		c.jobs = append(c.jobs, job{})
		return int32(len(c.jobs) - 1)
	}
	c.vacant = c.jobs[i].next
	return i
}

// release returns a job's blocks and its slot.
func (c *rowwise) release(i int32) {
	j := &c.jobs[i]
	c.freeBlks += j.blocks
	c.promised -= j.promised
	c.held -= int64(j.computed)
	*j = job{next: c.vacant}
	c.vacant = i
}
