package engine

import (
	"fmt"
	"math/bits"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// rowwise is what the schedulers of SGLang, TensorRT-LLM, TGI and static batching
// share: front end, queue, KV blocks, steps and their times, events. What goes
// into a step is the scheduler's decision.
//
// Unlike VLLM it visits every scheduled request in every step: slower, but a
// scheduler written on top of it reads like the engine that it stands for. Of
// Config it leaves out vLLM's own switches (ReserveFullPrompt, WatermarkBlocks,
// LongPrefillTokens, SkipAhead), Priority, StopEOS, PrefixCache and Stepping.
type rowwise struct {
	cfg   Config
	shift uint // log2 of the block size
	depth int  // steps fixed ahead: the running one and, with overlap, the next
	plan  scheduler
	ask   int32 // max_new_tokens of every request; 0: its own output
	keep  bool  // a finished request keeps blocks and slot until the scheduler releases them

	front   frontend
	jobs    []job
	vacant  int32   // first free slot of jobs
	waiting deque   // the queue
	running []int32 // admitted requests that have tokens to make, in the scheduler's order
	live    int32   // admitted requests that have not finished

	freeBlks int32
	minFree  int32
	promised int32 // sum of the live jobs' promised blocks
	held     int64 // KV tokens of all jobs
	ended    int64 // requests finished so far

	build     *rowStep   // the step being scheduled
	changed   bool       // its rows are not those of the step before, all decoding
	ring      [2]rowStep // ring[0] runs, ring[1] is planned
	steps     int        // of ring in use
	scheduled int64      // steps so far

	fresh   []firstTokens // since the last step that decoded
	decoded clock.Time    // end of that step

	streamedPs int64 // when a serial front end is done with the tokens made so far

	run    stretch
	cost   models.Cost // of the stretch's first step
	growth models.Cost // per further step
	runBin int         // clock bin of the stretch
	bin    int
	spent  Spent
	out    []Event
}

// scheduler decides what a step computes: the part in which the kinds differ.
type scheduler interface {
	// schedule fills the core's next step through its admit, prefill, decode and
	// preempt. A step without tokens does not run. While nothing runs it must find
	// something to do unless the queue is empty.
	schedule(now clock.Time)
}

// init makes an idle core. It panics when the limits contradict each other: the
// caller validates them with the experiment.
func (c *rowwise) init(cfg Config, plan scheduler, ask int32) {
	if cfg.BlockSize < 1 || cfg.BlockSize&(cfg.BlockSize-1) != 0 || cfg.KVBlocks < 2 || cfg.MaxSeqs < 1 || cfg.MaxBatchedTokens < max(cfg.MaxSeqs, cfg.BlockSize) ||
		(cfg.MaxModelLen+cfg.BlockSize-1)/cfg.BlockSize > cfg.KVBlocks-1 || ask < 0 {
		panic(fmt.Sprintf("engine: impossible limits: block size %d, %d blocks, %d sequences, %d tokens per step, %d tokens of context, %d asked tokens", cfg.BlockSize, cfg.KVBlocks, cfg.MaxSeqs, cfg.MaxBatchedTokens, cfg.MaxModelLen, ask))
	}
	*c = rowwise{
		cfg:      cfg,
		shift:    uint(bits.TrailingZeros32(uint32(cfg.BlockSize))),
		depth:    cfg.depth(),
		plan:     plan,
		ask:      ask,
		vacant:   none,
		freeBlks: cfg.KVBlocks - 1,
		minFree:  cfg.KVBlocks - 1,
		bin:      cfg.Clock,
	}
	c.run.end = clock.Never
}

// Submit implements Replica.
func (c *rowwise) Submit(now clock.Time, r *workloads.Request) int32 {
	c.advance(now)
	h := &c.cfg.Host
	a := inbound{id: r.ID, job: none, ready: now.Add(clock.Duration((h.FrontFixedPs + h.FrontPerTokenPs*int64(r.Prompt)) / 1000))}
	if r.Prompt >= c.cfg.MaxModelLen {
		a.reject = true
	} else {
		room := c.cfg.MaxModelLen - r.Prompt
		output := min(max(r.Output, 1), room)
		a.job = c.takeSlot()
		c.jobs[a.job] = job{id: r.ID, prompt: r.Prompt, target: r.Prompt, output: output, asked: min(max(output, c.ask), room), ready: a.ready}
	}
	c.front.add(a)
	return a.job
}

// SetClock implements Replica.
func (c *rowwise) SetClock(now clock.Time, bin int) {
	c.advance(now)
	c.bin = bin
}

// Advance implements Replica.
func (c *rowwise) Advance(now clock.Time, out []Event) []Event {
	c.advance(now)
	out = append(out, c.out...)
	c.out = c.out[:0]
	return out
}

// Load implements Replica.
func (c *rowwise) Load(now clock.Time) Load {
	c.advance(now)
	total := c.cfg.KVBlocks - 1
	return Load{
		Running: c.live,
		Waiting: c.waiting.n + int32(c.front.len()-c.front.rejects),
		Tokens:  c.held,
		Blocks:  total - c.freeBlks,
		Peak:    total - c.minFree,
		Total:   total,
	}
}

// Spent implements Replica.
func (c *rowwise) Spent(now clock.Time) *Spent {
	c.advance(now)
	s := &c.spent
	s.Until = now
	if c.steps > 0 {
		s.Until = c.run.at(c.run.n)
	}
	return s
}

// HintAt implements Replica.
func (c *rowwise) HintAt(*Hint) {}

// Next implements Replica.
func (c *rowwise) Next() (clock.Time, bool) {
	next := c.run.end
	crowded := c.cfg.MaxWaiting > 0 && int(c.waiting.n)+c.front.len() > int(c.cfg.MaxWaiting)
	if c.steps == 0 || c.front.rejects > 0 || crowded {
		next = min(next, c.front.next())
	}
	if len(c.out) > 0 {
		next = min(next, c.out[0].At)
	}
	return next, next != clock.Never
}

// advance processes everything that happens inside the replica up to now. At
// equal times a step's end comes before an arrival.
func (c *rowwise) advance(now clock.Time) {
	for {
		ready := c.front.next()
		switch {
		case c.run.end <= now && c.run.end <= ready:
			c.boundary()
		case ready <= now:
			c.accept()
		default:
			return
		}
	}
}

// accept moves the first request out of the front end into the queue, or turns it
// away. An idle replica starts at once; otherwise the request waits for a
// boundary.
func (c *rowwise) accept() {
	a := c.front.pop()
	if a.reject {
		c.out = append(c.out, Event{Kind: Rejected, Reason: TooLong, ID: a.id, At: a.ready, Ready: a.ready})
		return
	}
	if c.cfg.MaxWaiting > 0 && c.waiting.n >= c.cfg.MaxWaiting {
		c.out = append(c.out, Event{Kind: Rejected, Reason: QueueFull, ID: a.id, At: a.ready, Ready: a.ready})
		c.release(a.job)
		return
	}
	c.waiting.pushBack(a.job)
	if c.steps == 0 {
		c.fill(a.ready)
		c.begin(a.ready)
	}
}
