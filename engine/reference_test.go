package engine

import (
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
	free    int32
	planned []*refStep // planned[0] runs
	t0      clock.Time
	n       int64
	a, b    int64
	bin     int
	runBin  int
	end     clock.Time
	last    map[*refReq]bool // rows of the newest scheduled step when all of them decoded
	out     []Event
}

type refReq struct {
	id                        int32
	prompt, output, made      int32
	computed, target, blocks  int32
	ready, started, prefilled clock.Time
	seen                      bool
}

type refStep struct {
	batch                   models.Batch
	rows                    map[*refReq]bool
	same                    bool
	started, firsts, finals []*refReq
}

func newReference(cfg Config) *reference {
	return &reference{cfg: cfg, free: cfg.KVBlocks - 1, end: clock.Never, bin: cfg.Clock}
}

func (e *reference) submit(now clock.Time, r workloads.Request) {
	q := &refReq{id: r.ID, prompt: r.Prompt, output: r.Output, target: r.Prompt}
	q.ready = now + clock.Time((e.cfg.Host.FrontFixedPs+e.cfg.Host.FrontPerTokenPs*int64(r.Prompt))/1000)
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
			e.out = append(e.out, Event{Kind: Rejected, ID: q.id, At: t, Ready: t})
			continue
		}
		e.waiting = append(e.waiting, q)
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
		e.a = e.cfg.Model.Step(s.batch, e.bin).Total()
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
			e.out = append(e.out, Event{FirstToken, q.id, at, q.ready, q.started, q.prefilled, 0})
		}
	}
	for _, q := range s.finals {
		e.out = append(e.out, Event{Finished, q.id, at, q.ready, q.started, q.prefilled, 0})
		e.free += q.blocks
		e.running = without(e.running, q)
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
		q.blocks += e.ceil(q.computed+n) - q.blocks
		s.rows[q] = true
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
	for i := 0; i < len(e.running); i++ {
		q := e.running[i]
		if q.made == q.output {
			continue // its last token is in flight
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
		for e.ceil(q.computed+n)-q.blocks > e.free {
			victim := q
			for k := len(e.running) - 1; k >= 0; k-- {
				if e.running[k].made < e.running[k].output {
					victim = e.running[k]
					break
				}
			}
			e.out = append(e.out, Event{Kind: Preempted, ID: victim.id, At: now, Lost: victim.computed})
			e.free += victim.blocks
			victim.blocks, victim.computed, victim.target = 0, 0, victim.prompt+victim.made
			e.running = without(e.running, victim)
			e.waiting = append([]*refReq{victim}, e.waiting...)
			preempted = true
			if victim == q {
				gone = true
				break
			}
		}
		if gone {
			break
		}
		e.free -= e.ceil(q.computed+n) - q.blocks
		give(q, n)
	}
	for !preempted && len(e.waiting) > 0 && budget > 0 && int32(len(e.running)) < e.cfg.MaxSeqs {
		q := e.waiting[0]
		n := min(q.target, budget)
		if t := e.cfg.LongPrefillTokens; t > 0 {
			n = min(n, t)
		}
		keep := int32(0)
		if len(e.running) > 0 {
			keep = e.cfg.WatermarkBlocks
		}
		if e.cfg.ReserveFullPrompt && e.ceil(q.target)+keep > e.free {
			break
		}
		if e.ceil(n)+keep > e.free {
			break
		}
		e.waiting = e.waiting[1:]
		e.running = append(e.running, q)
		if !q.seen {
			s.started = append(s.started, q)
		}
		e.free -= e.ceil(n)
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
	return true
}

func without(list []*refReq, q *refReq) []*refReq {
	for i := range list {
		if list[i] == q {
			return append(append([]*refReq{}, list[:i]...), list[i+1:]...)
		}
	}
	return list
}
