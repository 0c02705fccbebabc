package engine

import (
	"slices"
	"sort"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// reference is the scheduler written the slow and obvious way, straight from the
// rules: a list of requests, each visited in every step. It shares no code with
// VLLM but the step model; the property tests hold the two against each other.
type reference struct {
	cfg     Config
	front   []*refReq
	waiting []*refReq
	running []*refReq
	blocks  []*refBlock // free ones: the next to give out first
	index   map[uint64]*refBlock
	serial  int
	planned []*refStep // planned[0] runs
	t0      clock.Time
	n       int64
	a, b    int64
	bin     int
	runBin  int
	end     clock.Time
	last    map[*refReq]bool // rows of the newest scheduled step when all of them decoded
	out     []Event
	arrived int
	steps   int      // scheduled so far
	tier    []uint64 // content of the second tier, least recently used first
}

type refReq struct {
	id                        int32
	prompt, output, made      int32
	computed, target, filed   int32
	held                      []*refBlock
	chain                     workloads.Chain
	ready, started, prefilled clock.Time
	seen                      bool
	priority                  int32
	arrival                   int
	newest                    int // step that scheduled it last
}

// refBlock is one KV block.
type refBlock struct {
	id     uint64
	hashed bool
	refs   int
}

func (e *reference) free() int32 { return int32(len(e.blocks)) }

// give takes n blocks from the head of the free list, forgetting their content.
func (e *reference) allocate(q *refReq, n int32) {
	for range n {
		b := e.blocks[0]
		e.blocks = e.blocks[1:]
		if b.hashed {
			delete(e.index, b.id)
			e.offload(b.id)
		}
		*b = refBlock{refs: 1}
		q.held = append(q.held, b)
	}
}

// hits returns the cached blocks at the start of a request's content, and how
// many of them lie in the free list.
func (e *reference) hits(q *refReq) (found []*refBlock, idle int32) {
	if !e.cfg.PrefixCache {
		return nil, 0
	}
	for k := int32(0); k < (q.target-1)/e.cfg.BlockSize; k++ {
		b := e.index[q.chain.Unit(k)]
		if b == nil {
			break
		}
		found = append(found, b)
		if b.refs == 0 {
			idle++
		}
	}
	return found, idle
}

func (e *reference) touch(q *refReq, found []*refBlock) {
	for _, b := range found {
		if b.refs == 0 {
			for k := range e.blocks {
				if e.blocks[k] == b {
					e.blocks = append(append([]*refBlock{}, e.blocks[:k]...), e.blocks[k+1:]...)
					break
				}
			}
		}
		b.refs++
		q.held = append(q.held, b)
	}
	q.computed = int32(len(found)) * e.cfg.BlockSize
}

// offload moves a block's content to the new end of the second tier.
func (e *reference) offload(id uint64) {
	if k := slices.Index(e.tier, id); k >= 0 {
		e.tier = slices.Delete(e.tier, k, k+1)
	}
	e.tier = append(e.tier, id)
	if n := len(e.tier) - int(e.cfg.Offload.Blocks); n > 0 {
		e.tier = e.tier[n:]
	}
}

// far returns how many blocks after the found ones lie in the second tier.
func (e *reference) far(q *refReq, found int32) int32 {
	n := int32(0)
	for e.cfg.PrefixCache && found+n < (q.target-1)/e.cfg.BlockSize && slices.Contains(e.tier, q.chain.Unit(found+n)) {
		n++
	}
	return n
}

// hash makes full blocks findable unless an equal one is already.
func (e *reference) hash(q *refReq, tokens int32) {
	for k := int32(0); e.cfg.PrefixCache && k < tokens/e.cfg.BlockSize; k++ {
		if id := q.chain.Unit(k); k >= q.filed && e.index[id] == nil {
			q.held[k].hashed, q.held[k].id = true, id
			e.index[id] = q.held[k]
		}
		q.filed = max(q.filed, k+1)
	}
}

// release gives a request's blocks back, its tail first: cached ones to the end of
// the free list, the others to its head.
func (e *reference) release(q *refReq, tokens int32) {
	e.hash(q, tokens)
	for k := len(q.held) - 1; k >= 0; k-- {
		b := q.held[k]
		b.refs--
		switch {
		case b.refs > 0:
		case b.hashed:
			e.blocks = append(e.blocks, b)
		default:
			e.blocks = append([]*refBlock{b}, e.blocks...)
		}
	}
	q.held, q.filed = nil, 0
}

type refStep struct {
	batch                   models.Batch
	loadPs                  int64
	rows                    map[*refReq]bool
	same                    bool
	started, firsts, finals []*refReq
}

func newReference(cfg Config) *reference {
	e := &reference{cfg: cfg, index: map[uint64]*refBlock{}, end: clock.Never, bin: cfg.Clock}
	for range cfg.KVBlocks - 1 {
		e.blocks = append(e.blocks, &refBlock{})
	}
	return e
}

func (e *reference) submit(now clock.Time, r workloads.Request) {
	q := &refReq{id: r.ID, priority: r.Priority, prompt: r.Prompt, output: r.Output, target: r.Prompt}
	q.ready = now + clock.Time((e.cfg.Host.FrontFixedPs+e.cfg.Host.FrontPerTokenPs*int64(r.Prompt))/1000)
	if q.prompt < e.cfg.MaxModelLen {
		e.serial++
	}
	if q.chain = r.Chain; !q.chain.Known() {
		q.chain = workloads.Chain{Session: uint64(e.serial) | 1<<60, UnitSize: e.cfg.BlockSize}
	}
	if q.output > e.cfg.MaxModelLen-q.prompt {
		q.output = e.cfg.MaxModelLen - q.prompt
	}
	e.front = append(e.front, q)
	sort.SliceStable(e.front, func(i, j int) bool { return e.front[i].ready < e.front[j].ready })
}

func (e *reference) next() clock.Time {
	t := e.end
	if len(e.front) > 0 && e.front[0].ready < t {
		t = e.front[0].ready
	}
	return t
}

func (e *reference) advance(now clock.Time) {
	for t := e.next(); t <= now; t = e.next() {
		if t == e.end {
			e.boundary(t)
			continue
		}
		q := e.front[0]
		e.front = e.front[1:]
		if q.prompt >= e.cfg.MaxModelLen {
			e.out = append(e.out, Event{Kind: Rejected, Reason: TooLong, ID: q.id, At: t, Ready: t})
			continue
		}
		if e.cfg.MaxWaiting > 0 && len(e.waiting) >= int(e.cfg.MaxWaiting) {
			e.out = append(e.out, Event{Kind: Rejected, Reason: QueueFull, ID: q.id, At: t, Ready: t})
			continue
		}
		e.arrived++
		q.arrival = e.arrived
		e.waiting = append(e.waiting, q)
		e.sortWaiting()
		if len(e.planned) == 0 {
			e.plan(t)
			e.start(t)
		}
	}
}

func (e *reference) plan(now clock.Time) {
	for len(e.planned) < e.cfg.depth() && e.schedule(now) {
	}
}

func (e *reference) start(now clock.Time) {
	s := e.planned[0]
	if !s.same || e.bin != e.runBin {
		e.t0, e.n, e.runBin = now, 0, e.bin
		e.a = e.cfg.Model.Step(s.batch, e.bin).Total() + s.loadPs
		e.b = 0
		if s.batch.PrefillTokens == 0 {
			e.b = e.cfg.Model.Slope(s.batch.DecodeSeqs, e.bin).Total()
		}
	}
	m := e.n + 1
	e.end = e.t0 + clock.Time((e.a*m+e.b*(m*(m-1)/2))/1000)
	for _, q := range s.started {
		q.started = now
	}
}

func (e *reference) boundary(now clock.Time) {
	s := e.planned[0]
	e.planned = e.planned[1:]
	e.n++
	at := now + clock.Time(e.cfg.Host.PublishPerSeqPs*int64(s.batch.Seqs)/1000)
	for _, q := range s.firsts {
		q.prefilled = now
		if q.output > 1 {
			e.out = append(e.out, Event{Kind: FirstToken, ID: q.id, At: at, Ready: q.ready, Started: q.started, Prefilled: q.prefilled})
		}
	}
	for _, q := range s.finals {
		e.out = append(e.out, Event{Kind: Finished, ID: q.id, At: at, Ready: q.ready, Started: q.started, Prefilled: q.prefilled})
		e.release(q, q.prompt+q.output-1)
		e.running = withoutReq(e.running, q)
	}
	if len(e.planned) > 0 {
		e.start(now)
		e.plan(now)
		return
	}
	e.plan(now)
	e.end = clock.Never
	if len(e.planned) > 0 {
		e.start(now)
	}
}

func (e *reference) ceil(tokens int32) int32 { return (tokens + e.cfg.BlockSize - 1) / e.cfg.BlockSize }

func (e *reference) schedule(now clock.Time) bool {
	s := &refStep{rows: map[*refReq]bool{}}
	budget := e.cfg.MaxBatchedTokens
	preempted := false
	allDecode := true
	give := func(q *refReq, n int32) {
		s.rows[q] = true
		q.newest = e.steps
		s.batch.Seqs++
		s.batch.Tokens += n
		decode := q.seen && q.computed == q.target
		if decode {
			q.target++
		}
		if n == 1 && decode {
			s.batch.DecodeSeqs++
			s.batch.DecodeCtx += int64(q.computed + 1)
		} else {
			allDecode = false
			s.batch.PrefillTokens += n
			s.batch.PrefillArea += int64(n)*int64(q.computed) + int64(n)*int64(n)/2
		}
		q.computed += n
		budget -= n
		if !decode {
			e.hash(q, q.computed)
		}
		if q.computed == q.target {
			q.made++
			if !q.seen {
				q.seen = true
				s.firsts = append(s.firsts, q)
			}
			if q.made == q.output {
				s.finals = append(s.finals, q)
			}
		}
	}
	type share struct {
		q *refReq
		n int32
	}
	var shares []share
	for i := 0; i < len(e.running); i++ {
		q := e.running[i]
		if q.made == q.output { // its last token is in flight
			if e.cfg.StopEOS && e.cfg.Host.Async && q.newest == e.steps-1 && budget > 0 {
				budget--
				s.batch.Seqs++
				s.batch.Tokens++
				s.batch.DecodeSeqs++
				s.batch.DecodeCtx += int64(q.computed + 1)
				s.rows[q] = true
				allDecode = false
			}
			continue
		}
		n := q.target - q.computed
		if n == 0 {
			n = 1
		}
		if t := e.cfg.LongPrefillTokens; t > 0 {
			n = min(n, t)
		}
		n = min(n, budget)
		if n == 0 {
			allDecode = false // this step leaves a running row out
			continue
		}
		gone := false
		for e.ceil(q.computed+n)-int32(len(q.held)) > e.free() {
			victim := q
			for k := len(e.running) - 1; k >= 0; k-- {
				c := e.running[k]
				if c.made == c.output {
					continue
				}
				if !e.cfg.Priority {
					victim = c
					break
				}
				if c.priority > victim.priority || c.priority == victim.priority && c.arrival > victim.arrival {
					victim = c
				}
			}
			for k := range shares {
				if shares[k].q == victim {
					budget += shares[k].n
					shares = append(shares[:k], shares[k+1:]...)
					break
				}
			}
			e.out = append(e.out, Event{Kind: Preempted, ID: victim.id, At: now, Lost: victim.computed})
			e.release(victim, victim.computed)
			victim.computed, victim.target = 0, victim.prompt+victim.made
			for k := range e.running {
				if e.running[k] == victim && k < i {
					i-- // the cursor stays on q
					break
				}
			}
			e.running = withoutReq(e.running, victim)
			e.requeue(victim)
			preempted = true
			if victim == q {
				gone = true
				break
			}
		}
		if gone {
			i--
			continue
		}
		e.allocate(q, e.ceil(q.computed+n)-int32(len(q.held)))
		budget -= n
		shares = append(shares, share{q, n})
	}
	for _, x := range shares {
		budget += x.n // give takes it again
		give(x.q, x.n)
	}
	for k := 0; !preempted && k < len(e.waiting) && budget > 0 && int32(len(e.running)) < e.cfg.MaxSeqs; {
		q := e.waiting[k]
		found, idle := e.hits(q)
		far := e.far(q, int32(len(found)))
		hit := (int32(len(found)) + far) * e.cfg.BlockSize
		n := min(q.target-hit, budget)
		if t := e.cfg.LongPrefillTokens; t > 0 {
			n = min(q.target-hit, budget, t)
		}
		keep := int32(0)
		if len(e.running) > 0 {
			keep = e.cfg.WatermarkBlocks
		}
		extra := idle - int32(len(found)) + keep
		if e.cfg.ReserveFullPrompt && e.ceil(q.target)+extra > e.free() || e.ceil(hit+n)+extra > e.free() {
			if k++; k > int(e.cfg.SkipAhead) {
				break
			}
			continue
		}
		e.waiting = append(append([]*refReq{}, e.waiting[:k]...), e.waiting[k+1:]...)
		e.running = append(e.running, q)
		if !q.seen {
			s.started = append(s.started, q)
		}
		e.touch(q, found)
		for k := far - 1; k >= 0; k-- {
			e.offload(q.chain.Unit(int32(len(found)) + k))
		}
		s.loadPs += int64(far) * e.cfg.Offload.BlockPs
		q.computed = hit
		e.allocate(q, e.ceil(hit+n)-int32(len(q.held)))
		give(q, n)
	}
	if len(s.rows) == 0 {
		return false
	}
	s.same = allDecode && e.last != nil && len(e.last) == len(s.rows)
	for q := range s.rows {
		s.same = s.same && e.last[q]
	}
	e.last = nil
	if allDecode {
		e.last = s.rows
	}
	e.planned = append(e.planned, s)
	e.steps++
	return true
}

// cancel forgets a request unless its last token is in flight.
func (e *reference) cancel(id int32) {
	is := func(q *refReq) bool { return q.id == id }
	for _, list := range []*[]*refReq{&e.front, &e.waiting, &e.running} {
		k := slices.IndexFunc(*list, is)
		if k < 0 {
			continue
		}
		q := (*list)[k]
		if q.prompt >= e.cfg.MaxModelLen || q.made == q.output {
			return
		}
		*list = slices.Delete(*list, k, k+1)
		e.release(q, q.computed)
		for _, s := range e.planned {
			s.started, s.firsts = withoutReq(s.started, q), withoutReq(s.firsts, q)
		}
		return
	}
}

// requeue puts a preempted request back.
func (e *reference) requeue(q *refReq) {
	e.waiting = append([]*refReq{q}, e.waiting...)
	e.sortWaiting()
}

func (e *reference) sortWaiting() {
	if e.cfg.Priority {
		sort.SliceStable(e.waiting, func(i, j int) bool {
			a, b := e.waiting[i], e.waiting[j]
			return a.priority < b.priority || a.priority == b.priority && a.arrival < b.arrival
		})
	}
}

func withoutReq(list []*refReq, q *refReq) []*refReq {
	for i := range list {
		if list[i] == q {
			return append(append([]*refReq{}, list[:i]...), list[i+1:]...)
		}
	}
	return list
}
