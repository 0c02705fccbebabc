package engine

import (
	"cmp"
	"fmt"
	"math/bits"
	"unsafe"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// VLLM is the scheduler of vLLM V1: running requests first, then waiting ones,
// under one token budget, with chunked prefill, strict first come first served
// admission, and preemption by recompute of the request admitted last.
//
// Decode rows are never touched one by one. A step's aggregates follow from the
// step before, so a step without prefill costs O(1); a run of steps with the same
// rows is one closed-form stretch.
type VLLM struct {
	// The order of the fields is that of their use, because the processor's cache holds a
	// small part of all replicas: what every look at a replica needs comes before idle, in
	// lines of 64 bytes between which nothing is split that is used together.
	run stretch

	due     clock.Time // readiness of the first request of the front end; Never without
	visible clock.Time // next event if no request arrives, when calm is known
	calm    int64      // coming boundaries that are quiet; unknown = to be worked out
	admits  int64      // while calm is known: boundary of the stretch that admits the only request of the front end; 0 = to be seen
	newest  int64      // the newest scheduled step
	heldSum int64      // KV tokens of rows that decode in it
	others  int64      // KV tokens of rows that run but do not decode
	front   tag        // that request

	decodes  int32 // decoding rows
	freeBlks int32
	minFree  int32
	rejects  int32 // of the front end: too long for the engine
	bin      int32
	runBin   int32 // of the stretch
	runRows  int32 // that decode in it
	drafts   int32 // running rows that speculate
	inFront  int32 // requests in the front end
	steps    int8  // of the ring in use: the running one and, with async scheduling, the planned one
	depth    int8  // steps whose composition is fixed ahead
	log2     uint8 // of the block size
	mine     uint8 // which of costs is that of the stretch's first step; the other is foreseen
	// filing: content is filed in the cache. That begins with the first request whose
	// content others may have, and with the first preemption. What ended before can
	// never be found again, and would be evicted before all that came later: its blocks
	// are as good as free.
	filing   bool
	stepping bool // cfg.Stepping
	changed  bool // the next step's rows differ from the newest's
	blocked  bool // the head of the queue did not fit, and nothing was freed since
	apart    bool // of the step being scheduled: some rows may be treated apart
	halves   bool // it has been given halves of requests
	kept     bool // order is
	retired  bool // the rows that end in the newest step have left the aggregates
	running  *step
	planned  *step // the one after it

	waiting deque
	out     []Event
	joiners few // rows whose last chunk is in step newest

	rows   []row
	times  []stamps
	vacant int32   // list of free rows
	live   int32   // running rows
	cfg    *Config // replicas may share it

	ring  [2]step
	costs [2]models.Cost
	spent Spent
	model models.Filler

	ahead    preview
	admitted int64

	growth  models.Growth // of the stretch, per step
	hints   *Hint         // where somebody looks for what comes next; nil = nobody does
	residue residues
	finish  ends
	partial []int32 // prefilling rows in order of admission

	idle    someRows // of the step being scheduled: decoding rows without budget
	waste   someRows // of the step being scheduled: ended rows that still take part
	late    someRows // the same for the step after it
	spec    someRows // of the step being scheduled: rows that speculate, KV with their drafts
	drafted int32    // of the step being scheduled: their tokens

	inbox     []arrival // the front end but for its first request, in order of readiness
	asides    []aside   // of rows
	content   []content // of rows, with a prefix cache
	submitted int64     // requests so far: the identity of content that nobody shares
	arrived   int64     // requests at the scheduler so far
	onTheWay  int32     // requests whose KV is still to arrive
	order     order
	ended     []int32 // rows that end with the step being published
	chunked   []int32 // rows with a chunk whose blocks are not yet filed
	joining   []int32 // joiners but for the first
	more      [2]stepMore

	cache cache
	store store

	_ [40]byte // an odd number of lines: the same of many replicas share no place in a cache
}

// someRows are rows that a step treats apart.
type someRows struct {
	rows int32
	held int64 // KV tokens they hold
}

func (s *someRows) add(rows int32, held int64) {
	s.rows += rows
	s.held += int64(rows) * held
}

// step is one scheduled step: a line of the processor's cache, and what it seldom needs.
type step struct {
	batch   models.Batch
	started few   // rows admitted in it, their first token still to come
	firsts  few   // rows that make their first token
	finals  int32 // list of rows that make their last token
	same    bool  // same rows as the step before, all decoding
	extras  bool  // it loads or drafts
	more    *stepMore
}

type stepMore struct {
	started, firsts []int32 // but for the first
	drafts          []int32 // rows that speculate
	loadPs          int64   // time to load from the second tier before it
}

// clear makes a step one without rows that make or begin anything.
func (st *step) clear() {
	st.started.n, st.firsts.n, st.finals = 0, 0, none
	if st.extras {
		st.extras, st.more.drafts, st.more.loadPs = false, st.more.drafts[:0], 0
	}
}

// publishes tells whether anything becomes visible with the step's end.
func (st *step) publishes() bool { return st.firsts.n|(st.finals-none) != 0 || st.extras }

// at returns the running step (0) or the one after it (1).
func (v *VLLM) at(k int8) *step {
	if k == 0 {
		return v.running
	}
	return v.planned
}

// pass makes the planned step the running one, and its place free for the next.
func (v *VLLM) pass() { v.running, v.planned = v.planned, v.running }

// Places returns room for n replicas side by side, for Begin. It begins at the edge of a
// line of the processor's cache: Go's runtime lets what is large begin at a page.
func Places(n int) []VLLM { return make([]VLLM, max(n, alignedFrom))[:n] }

// alignedFrom is how many replicas are large: more than 32 KB.
const alignedFrom = 32<<10/int(unsafe.Sizeof(VLLM{})) + 1

// NewVLLM is Begin somewhere.
func NewVLLM(cfg *Config) *VLLM { return new(VLLM).Begin(cfg) }

// Begin makes v an idle replica, whatever it was before, and returns it. It keeps cfg, which
// must not change; other replicas may share it. It panics when the limits contradict each
// other: the caller validates them with the experiment.
func (v *VLLM) Begin(cfg *Config) *VLLM {
	if cfg.BlockSize < 1 || cfg.BlockSize&(cfg.BlockSize-1) != 0 || cfg.KVBlocks < 2 || cfg.MaxSeqs < 1 || cfg.MaxSeqs > maxRows || cfg.MaxBatchedTokens < cfg.MaxSeqs ||
		(cfg.MaxModelLen+cfg.BlockSize-1)/cfg.BlockSize > cfg.KVBlocks-1 {
		panic(fmt.Sprintf("engine: impossible limits: block size %d, %d blocks, %d sequences, %d tokens per step, %d tokens of context", cfg.BlockSize, cfg.KVBlocks, cfg.MaxSeqs, cfg.MaxBatchedTokens, cfg.MaxModelLen))
	}
	*v = VLLM{
		cfg:      cfg,
		log2:     uint8(bits.TrailingZeros32(uint32(cfg.BlockSize))),
		freeBlks: cfg.KVBlocks - 1,
		minFree:  cfg.KVBlocks - 1,
		retired:  true,
		vacant:   none,
		newest:   -1,
		bin:      int32(cfg.Clock),
		depth:    int8(cfg.depth()),
		model:    models.FillerOf(cfg.Model),
		due:      clock.Never,
		calm:     unknown,
	}
	v.finish.init()
	v.residue.init(cfg.BlockSize)
	v.cache.init()
	v.store.init(cfg.Offload)
	v.cache.store = &v.store
	v.running, v.planned = &v.ring[0], &v.ring[1]
	v.running.more, v.planned.more = &v.more[0], &v.more[1]
	v.running.finals, v.planned.finals = none, none
	v.ahead.step = int64(none)
	v.stepping = cfg.Stepping
	v.filing = cfg.PrefixCache && cfg.Offload.Blocks > 0 // the second tier keeps all
	v.run.end = clock.Never
	return v
}

// Submit implements Replica.
func (v *VLLM) Submit(now clock.Time, r *workloads.Request) int32 {
	if !v.resting(now) {
		v.advance(now)
	}
	h := &v.cfg.Host
	v.admits = 0
	ready := now.Add(clock.Duration(uint64(h.FrontFixedPs+h.FrontPerTokenPs*int64(r.Prompt)) / 1000))
	i := none
	if r.Prompt >= v.cfg.MaxModelLen {
		v.rejects++
	} else {
		i = v.takeRow()
		w := &v.rows[i]
		w.id, w.prompt, w.target = r.ID, r.Prompt, r.Prompt
		w.output = min(max(r.Output, 1), v.cfg.MaxModelLen-r.Prompt)
		w.state, w.half, w.hit = waiting, r.Handover, r.Cached
		v.times[i] = stamps{ready: ready}
		if v.cfg.Priority {
			v.asides[i].priority = r.Priority
		}
		if v.cfg.PrefixCache {
			v.submitted++
			v.content[i].chain = v.chainOf(r, v.submitted)
			v.filing = v.filing || r.Chain.Known()
		}
		v.halves = v.halves || r.Handover != workloads.Whole
		if r.Handover == workloads.PrefillHalf {
			w.output = 1 // its token is thrown away
		}
	}
	if v.inFront++; v.inFront == 1 {
		v.due, v.front = ready, tag{i, r.ID}
	} else {
		v.lineUp(arrival{ready, tag{i, r.ID}})
	}
	return i
}

// SetClock implements Replica.
func (v *VLLM) SetClock(now clock.Time, bin int) {
	v.advance(now)
	v.bin, v.calm = int32(bin), unknown
}

// Advance implements Replica.
func (v *VLLM) Advance(now clock.Time, out []Event) []Event {
	if len(v.out) > 0 { // of a Submit or another call in between
		out = append(out, v.out...)
	}
	own := v.out[:0]
	v.out = out
	v.advance(now)
	out, v.out = v.out, own
	return out
}

// Load implements Replica.
func (v *VLLM) Load(now clock.Time) Load {
	v.advance(now)
	total := v.cfg.KVBlocks - 1
	return Load{
		Running: v.live,
		Waiting: v.waiting.n + v.inFront - v.rejects + v.onTheWay,
		Tokens:  v.heldSum + v.others,
		Blocks:  total - v.freeBlks,
		Peak:    total - v.minFree,
		Total:   total,
	}
}

// Spent implements Replica.
func (v *VLLM) Spent(now clock.Time) *Spent {
	s, r := &v.spent, &v.run
	if v.resting(now) {
		n, from := r.n, r.from
		if r.end <= now {
			n = r.ended(now)
			from = r.at(n)
		}
		v.book(n, from)
		s.Until = from
	} else {
		v.advance(now)
		v.book(r.n, r.from)
		s.Until = now
		if v.steps > 0 {
			s.Until = r.from
		}
	}
	return s
}

// resting tells whether nothing but the ends of equal steps lies between the last look
// and now: they can be passed later, all at once. Not where their blocks are taken from
// cached content, which routers ask for.
func (v *VLLM) resting(now clock.Time) bool {
	return v.calm > 0 && now < v.visible && now < v.due && !v.filing
}

// advance processes everything that happens inside the replica up to now. At
// equal times a step's end comes before an arrival.
func (v *VLLM) advance(now clock.Time) {
	if v.admits > 0 && v.calm != unknown && v.run.at(v.admits) <= now {
		v.admitForeseen()
	}
	for {
		switch limit := min(now, v.due); {
		case v.run.end <= limit:
			v.boundary(limit)
		case v.due <= now:
			v.accept()
		default:
			return
		}
	}
}

// accept moves the first request out of the front end into the waiting queue, or
// turns it away.
func (v *VLLM) accept() {
	a, ready := v.front, v.due
	v.nextDue()
	v.calm = unknown
	if a.row == none {
		v.rejects--
		v.out = append(v.out, Event{Kind: Rejected, Reason: TooLong, ID: a.id, At: ready, Ready: ready})
		return
	}
	if v.cfg.MaxWaiting > 0 && v.waiting.n >= v.cfg.MaxWaiting {
		v.out = append(v.out, Event{Kind: Rejected, Reason: QueueFull, ID: a.id, At: ready, Ready: ready})
		v.releaseRow(a.row)
		return
	}
	v.enter(a.row)
	v.enqueue(a.row)
	v.kick(ready)
}

// enter numbers a row that arrives at the scheduler.
func (v *VLLM) enter(i int32) {
	v.arrived++
	if v.cfg.Priority || v.cfg.Spec.Drafts > 0 {
		v.asides[i].arrival = v.arrived
	}
}

// kick starts an idle engine at once; a busy one looks at its queue at the end of
// a step.
func (v *VLLM) kick(now clock.Time) {
	if v.steps == 0 {
		v.start(now)
	}
}

// start fills the ring when it is empty and begins the first step.
func (v *VLLM) start(now clock.Time) {
	for v.steps < v.depth && v.schedule(now, v.at(v.steps)) {
	}
	switch st, r := v.running, &v.run; {
	case v.steps == 0:
		r.end = clock.Never
	case st.same && v.bin == v.runBin && r.end != clock.Never:
		r.end = r.at(r.n + 1)
	default:
		v.begin(now, st)
	}
}

// enqueue puts an arrival in its place in the queue.
func (v *VLLM) enqueue(i int32) {
	if !v.cfg.Priority {
		v.waiting.pushBack(i)
		if v.waiting.n <= v.cfg.SkipAhead+1 {
			v.blocked = false
		}
		return
	}
	k := v.waiting.n
	for k > 0 && v.first(i, v.waiting.at(k-1)) {
		k--
	}
	v.waiting.insert(k, i)
	if k <= v.cfg.SkipAhead {
		v.blocked = false
	}
}

// first tells whether row i goes before row j under the priority policy. Rows that
// wait with all their blocks reserved go first: somebody else may need those.
func (v *VLLM) first(i, j int32) bool {
	if a, b := &v.rows[i], &v.rows[j]; a.state == waiting && b.state == waiting && a.loaded != b.loaded {
		return a.loaded
	}
	a, b := &v.asides[i], &v.asides[j]
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.arrival, b.arrival)) < 0
}

// blocksFor returns how many KV blocks hold a number of tokens.
func (v *VLLM) blocksFor(tokens int64) int32 {
	return int32((tokens + v.residue.mask) >> v.shift())
}

// shift returns the log2 of the block size, and says that it is less than 32.
func (v *VLLM) shift() uint { return uint(v.log2 & 31) }
