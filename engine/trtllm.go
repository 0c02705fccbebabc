package engine

import (
	"fmt"

	"slosim/sim/clock"
)

// CapacityPolicy says how TensorRT-LLM admits requests (CapacitySchedulerPolicy).
type CapacityPolicy uint8

// The capacity policies.
const (
	// GuaranteedNoEvict, the default, admits a request only if the blocks for its
	// prompt and max_new_tokens fit beside what all admitted ones may still take.
	// Nothing is ever paused.
	GuaranteedNoEvict CapacityPolicy = iota
	// MaxUtilization admits a request if the blocks of its prompt are free, and
	// pauses the requests started last when the next tokens do not fit.
	MaxUtilization
	// StaticBatch admits like GuaranteedNoEvict, but only while nothing generates.
	StaticBatch
)

// TRTLLMOptions are the settings of TensorRT-LLM that have no counterpart in
// Config. Config gives tokens_per_block (BlockSize, TensorRT-LLM's default is 32),
// max_batch_size (MaxSeqs) and max_num_tokens (MaxBatchedTokens).
type TRTLLMOptions struct {
	Policy       CapacityPolicy
	MaxNewTokens int32 // max_new_tokens that every client asks for; 0 = just what the request makes
}

// TRTLLM is the scheduler of TensorRT-LLM's batch manager: a capacity scheduler
// that decides by KV blocks which requests may take part, then a micro-batch
// scheduler that fills max_num_tokens: one token for every generating request,
// chunks of context with the rest, first come first served (in-flight batching).
// A request's first chunk takes the blocks of its whole prompt. Source:
// batch_manager/capacityScheduler.cpp, microBatchScheduler.cpp,
// kvCacheManager.cpp (getNeededBlocksOneStep, getRemainingBlocksToCompletion).
type TRTLLM struct {
	rowwise
	policy  CapacityPolicy
	partial bool // the context of the request started last is not done
}

// NewTRTLLM returns an idle replica. It panics on contradictory limits.
func NewTRTLLM(cfg Config, o TRTLLMOptions) *TRTLLM {
	if o.Policy > StaticBatch {
		panic(fmt.Sprintf("engine: no capacity policy %d", o.Policy))
	}
	t := &TRTLLM{policy: o.Policy}
	t.init(cfg, t, o.MaxNewTokens)
	return t
}

// schedule implements scheduler. The running list holds every started request in
// order of arrival, which is the order of admission: what is paused comes from
// its end and goes to the head of the queue.
func (t *TRTLLM) schedule(now clock.Time) {
	paused := t.policy == MaxUtilization && t.pause(now)
	t.decode()
	generating := t.build.batch.DecodeSeqs
	if t.policy == StaticBatch && generating > 0 {
		return
	}
	budget := t.cfg.MaxBatchedTokens - generating
	if t.partial {
		i := t.running[len(t.running)-1]
		t.running = t.running[:len(t.running)-1]
		budget -= t.context(i, budget)
	}
	for !t.partial && !paused && t.admissible(budget) {
		budget -= t.context(t.start(), budget)
	}
}

// pause takes the blocks of the requests started last until the next token of
// the others fits. It reports whether there were any.
func (t *TRTLLM) pause(now clock.Time) bool {
	if !t.decodeShort() {
		return false
	}
	for need := t.decodeNeed(); need > t.freeBlks; {
		i := t.running[len(t.running)-1]
		t.running = t.running[:len(t.running)-1]
		need -= t.needOf(&t.jobs[i])
		t.partial = false
		t.preempt(now, i)
		t.waiting.pushFront(i)
	}
	return true
}

// admissible tells whether the request at the head of the queue can start in this
// step, with budget tokens left: max_batch_size, tokens and the capacity policy.
func (t *TRTLLM) admissible(budget int32) bool {
	if t.waiting.n == 0 || t.live >= t.cfg.MaxSeqs {
		return false
	}
	j := &t.jobs[t.waiting.at(0)]
	switch {
	case t.chunk(j.target, budget) == 0:
		return false
	case t.policy == MaxUtilization:
		return t.blocksFor(j.target) <= t.freeBlks
	}
	return t.promised+t.toCompletion(j) <= t.cfg.KVBlocks-1
}

// start admits the head of the queue and takes its blocks.
func (t *TRTLLM) start() int32 {
	i := t.admit()
	j := &t.jobs[i]
	if t.policy != MaxUtilization {
		j.promised = t.toCompletion(j)
		t.promised += j.promised
	}
	t.grow(j, j.target)
	return i
}

// context schedules what the budget allows of a request's context, puts the
// request at the end of the running list, and returns the tokens.
func (t *TRTLLM) context(i, budget int32) int32 {
	j := &t.jobs[i]
	n := t.chunk(j.target-j.computed, budget)
	t.partial = n == 0 || !t.prefill(i, n)
	if j.made < j.output {
		t.running = append(t.running, i)
	}
	return n
}

// toCompletion returns the blocks that the request may come to hold: prompt and
// max_new_tokens, one token more than it can ever write.
func (t *TRTLLM) toCompletion(j *job) int32 { return t.blocksFor(j.prompt + j.asked) }

// chunk returns how many of a context's left tokens go into this step: all, or as
// many as fit in multiples of tokens_per_block.
func (t *TRTLLM) chunk(left, budget int32) int32 {
	if left <= budget {
		return left
	}
	return budget >> t.shift << t.shift
}
