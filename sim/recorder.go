package sim

import (
	"math/bits"

	"slosim/engine"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// Stages of a request's life, in order; StageNames names them.
const (
	stageNetwork = iota
	stageQueue
	stagePrefill
	stageDecode
	stagePublish
	stages
	rejectedStage   = stages     // of a bad event without an answer: turned away
	unansweredStage = stages + 1 // the same: still waiting when the run ended
	timedOutStage   = stages + 2 // the same: its client has gone
	failedStage     = stages + 3 // the same: its replica broke down
	noStage         = -1         // of a good event
	blameStages     = stages + 4
)

// recorder counts one replication's requests by group and phase, by group and
// window, and by objective. It sees events, never engines.
type recorder struct {
	plan    *plan
	cells   [][]cell       // [group][phase]
	windows [][]window     // [group][window]
	ledgers []ledger       // per objective
	stages  [][]*stageCell // [class][phase], of classes with stage budgets
	recent  []*recentTTFT  // per class: kept for autoscalers that look at it; nil otherwise

	promises []*promise // per objective: of adaptive ones; nil without any
	excuses  []*excuses // per SLA; nil without any
	refusal  Refusal    // of the request that is being closed

	window     int32 // the last one asked for
	begin, end clock.Time
}

// cell is a group within a phase.
type cell struct {
	goals            *goals
	recent           *recentTTFT // of its class; nil = nobody looks at it
	stages           *stageCell  // of its class and phase; nil without stage budgets
	n                int64
	ok, refused      int64
	timeouts, failed int64
	again            int64 // of n: further attempts
	lost             int64 // requests whose last attempt has failed
	late, young      int64
	why              [Refusals]int64 // of refused
	ttft, tpot, e2e  stats.Sample    // nanoseconds
	prompts, outputs *stats.Hist     // tokens
	promptSum        float64
	outputSum        float64
	stage            stageSums
	answered         int64
	byLength         [lengthBands]*stats.Hist // TTFT, nanoseconds
}

// lengthBands is the number of prompt-length buckets.
const lengthBands = 10

// bandOf returns the bucket of a prompt.
func bandOf(prompt float64) int {
	k := 0
	for k < len(PromptEdges) && prompt > PromptEdges[k] {
		k++
	}
	return k
}

// bandOfTokens is bandOf for whole tokens; the edges are 250·2^k.
func bandOfTokens(prompt int32) int {
	return min(bits.Len32(uint32(max(prompt-1, 0))/250), lengthBands-1)
}

// window is a group within a time window.
type window struct {
	arrivals, bad       int32
	done                int32 // last tokens that fell into the window, whenever the request was sent
	answered, lost      int32 // with a first token; rejected or never answered
	stage               stageSums
	ttft, tpot, prompts *stats.Hist
}

// ledger is an objective's events.
type ledger struct {
	minutes *slo.Ledger
	phases  []counts
	blame   [][blameStages]int64 // [group][stage]
	again   int64                // bad events of second and later attempts
}

type counts struct{ good, bad int64 }

func newRecorder(p *plan) *recorder {
	r := &recorder{plan: p}
	for range p.groups {
		cells := make([]cell, len(p.phases))
		for k := range cells {
			cells[k].prompts = stats.NewHist(stats.Fine)
			cells[k].outputs = stats.NewHist(stats.Fine)
		}
		r.cells = append(r.cells, cells)
		r.windows = append(r.windows, make([]window, p.windows))
	}
	for range p.exp.SLOs {
		r.ledgers = append(r.ledgers, ledger{
			minutes: slo.NewLedger(p.exp.Duration),
			phases:  make([]counts, len(p.phases)),
			blame:   make([][blameStages]int64, len(p.groups)),
		})
	}
	r.addStages()
	r.addExcuses()
	for g := range r.cells {
		for k := range r.cells[g] {
			c, class := &r.cells[g][k], p.groups[g].class
			c.goals = &p.goals[g]
			if r.stages != nil && r.stages[class] != nil {
				c.stages = r.stages[class][k]
			}
		}
	}
	return r
}

// windowOf returns the time window of an instant of the counted span.
func (r *recorder) windowOf(t clock.Time) int32 {
	if t < r.begin || t >= r.end {
		width := clock.Time(r.plan.width)
		r.window = int32(t / width)
		r.begin = clock.Time(r.window) * width
		r.end = r.begin + width
	}
	return r.window
}

// arrival counts a request from now on.
func (r *recorder) arrival(f *flight) {
	f.window = r.windowOf(f.req.Send)
	c, w := &r.cells[f.group][f.phase], &r.windows[f.group][f.window]
	f.cell, f.span = c, w
	c.n++
	if f.attempt > 0 {
		c.again++
	}
	w.arrivals++
	c.prompts.AddFine(int64(f.req.Prompt))
	c.outputs.AddFine(int64(f.req.Output))
	c.promptSum += float64(f.req.Prompt)
	c.outputSum += float64(f.req.Output)
	if w.prompts == nil {
		w.prompts = stats.NewHist(stats.Coarse)
	}
	w.prompts.AddCoarse(int64(f.req.Prompt))
}

// stagesOf cuts a request's life at its borders; the four parts of TTFT add up
// to it exactly.
func stagesOf(f *flight, e *engine.Event, first clock.Time) [stages]clock.Duration {
	return [stages]clock.Duration{
		stageNetwork: e.Ready.Sub(f.req.Send) - f.held,
		stageQueue:   e.Started.Sub(e.Ready) + f.held,
		stagePrefill: e.Prefilled.Sub(e.Started),
		stagePublish: first.Sub(e.Prefilled),
	}
}

// longest returns the stage that took most of the time.
func longest(s *[stages]clock.Duration) int {
	best := 0
	for k := range s {
		if s[k] > s[best] {
			best = k
		}
	}
	return best
}

func (r *recorder) firstToken(f *flight, e *engine.Event) {
	ttft := e.At.Sub(f.req.Send)
	parts := stagesOf(f, e, e.At)
	c, w := f.cell, f.span
	c.ttft.Add(int64(ttft))
	band := &c.byLength[bandOfTokens(f.req.Prompt)]
	if *band == nil {
		*band = stats.NewHist(stats.Coarse)
	}
	(*band).AddCoarse(int64(ttft))
	c.answered++
	w.answered++
	if c.recent != nil {
		c.recent.add(e.At, ttft)
	}
	c.stage.add(&parts)
	w.stage.add(&parts)
	if w.ttft == nil {
		w.ttft = stats.NewHist(stats.Coarse)
	}
	w.ttft.AddCoarse(int64(ttft))
	bad := false
	for _, k := range c.goals.ttft {
		if good := ttft <= r.limit(k, f); good {
			r.decide(k, f, e.At, true, noStage)
		} else {
			bad = bad || r.plan.exp.SLOs[k].InBand(f.req.Prompt)
			r.decide(k, f, e.At, false, longest(&parts))
		}
	}
	if bad {
		w.bad++
	}
	if len(c.goals.queue) > 0 {
		r.queued(f, e, &parts)
	}
}

// stageSums are times by stage, nanoseconds.
type stageSums [stages]float64

// add adds the stages up to the first token.
func (s *stageSums) add(parts *[stages]clock.Duration) {
	s[stageNetwork] += float64(parts[stageNetwork])
	s[stageQueue] += float64(parts[stageQueue])
	s[stagePrefill] += float64(parts[stagePrefill])
	s[stagePublish] += float64(parts[stagePublish])
}

func (r *recorder) finished(f *flight, e *engine.Event) {
	if f.first == clock.Never { // one token: first and last at once
		f.first = e.At
		r.firstToken(f, e)
	}
	c, w := f.cell, f.span
	goals := c.goals
	c.ok++
	e2e := e.At.Sub(f.req.Send)
	decode := e.At.Sub(f.first)
	c.e2e.Add(int64(e2e))
	c.stage[stageDecode] += float64(decode)
	w.stage[stageDecode] += float64(decode)
	if f.req.Output >= 2 {
		tpot := decode / clock.Duration(f.req.Output-1)
		c.tpot.Add(int64(r.plan.exp.reportedTPOT(tpot, e2e, f.req.Output)))
		if w.tpot == nil {
			w.tpot = stats.NewHist(stats.Coarse)
		}
		w.tpot.AddCoarse(int64(tpot))
		for _, k := range goals.tpot {
			r.decide(k, f, e.At, tpot <= r.limit(k, f), stageDecode)
		}
	}
	if len(goals.e2e) > 0 {
		parts := stagesOf(f, e, f.first)
		parts[stageDecode] = decode
		for _, k := range goals.e2e {
			r.decide(k, f, e.At, e2e <= r.limit(k, f), longest(&parts))
		}
	}
	for _, k := range goals.availability {
		r.decide(k, f, e.At, true, stageDecode)
	}
	if len(goals.goodput) > 0 {
		r.complete(f, e)
	}
	if c.stages != nil {
		c.stages.judge(f, e)
	}
}

// completed counts a last token in the window it falls into, whenever its request
// was sent.
func (r *recorder) completed(f *flight, e *engine.Event) {
	if e.At >= 0 && e.At < clock.Time(r.plan.exp.Duration) {
		r.windows[f.group][r.windowOf(e.At)].done++
	}
}

func (r *recorder) rejected(f *flight, now clock.Time, why Refusal) {
	c, w := f.cell, f.span
	c.refused++
	c.why[why]++
	c.ttft.AddInf()
	w.bad++
	w.lost++
	r.refusal = why
	goals := c.goals
	for _, list := range [][]int32{goals.ttft, goals.e2e, goals.queue, goals.goodput, goals.availability} {
		r.lost(list, f, now, OutcomeRejected, rejectedStage)
	}
	r.unanswered(f)
}

// failed closes a request whose replica broke down.
func (r *recorder) failed(f *flight, now clock.Time) {
	c, w, goals := f.cell, f.span, f.cell.goals
	c.failed++
	bad := func(list []int32) { r.lost(list, f, now, OutcomeFailed, failedStage) }
	if f.first == clock.Never {
		c.ttft.AddInf()
		w.bad++
		w.lost++
		bad(goals.ttft)
		bad(goals.queue)
	}
	bad(goals.e2e)
	bad(goals.goodput)
	bad(goals.availability)
	r.unanswered(f)
}

// timedOut closes a request whose client has gone at now, with so many tokens.
func (r *recorder) timedOut(f *flight, now clock.Time, sent int32) {
	c, w, goals := f.cell, f.span, f.cell.goals
	c.timeouts++
	bad := func(list []int32) { r.lost(list, f, now, "timeout", timedOutStage) }
	if f.first == clock.Never {
		c.ttft.AddInf()
		w.bad++
		w.lost++
		bad(goals.ttft)
		bad(goals.queue)
	} else if sent >= 2 {
		tpot := max(0, now.Sub(f.first)) / clock.Duration(sent-1)
		c.tpot.Add(int64(tpot))
		for _, k := range goals.tpot {
			r.decide(k, f, now, tpot <= r.limit(k, f), stageDecode)
		}
	}
	bad(goals.e2e)
	bad(goals.goodput)
	bad(goals.availability)
	r.unanswered(f)
}

// undecided closes a request that is still open at the end of the run.
func (r *recorder) undecided(f *flight, end clock.Time) {
	c, w, goals := f.cell, f.span, f.cell.goals
	age := end.Sub(f.req.Send)
	late := false
	miss := func(list []int32, first bool) {
		for _, k := range list {
			if o := &r.plan.exp.SLOs[k]; age > max(r.limit(k, f), 1) && first && o.InBand(f.req.Prompt) {
				late = true
				if !r.plan.skips[k]["undecided"] {
					r.decide(k, f, end, false, unansweredStage)
				}
			}
		}
	}
	waiting := f.first == clock.Never
	miss(goals.ttft, waiting)
	miss(goals.queue, waiting)
	miss(goals.e2e, true)
	// A stream that has begun may still end well: no availability event.
	miss(goals.availability, waiting && age >= minCoolDown)
	late = r.openGoodput(f, end) || late
	if waiting {
		if late || age >= minCoolDown {
			c.ttft.AddInf()
			w.bad++
			w.lost++
		}
	}
	if late {
		r.unanswered(f)
		c.late++
	} else {
		c.young++
	}
}

// decide counts one event of an objective, known at a time. A late TTFT or E2E is
// known to be bad as soon as its threshold has passed. Of a good event the stage
// does not matter.
func (r *recorder) decide(k int32, f *flight, at clock.Time, good bool, stage int) {
	l, o := &r.ledgers[k], &r.plan.exp.SLOs[k]
	if !o.InBand(f.req.Prompt) {
		return
	}
	if r.promises != nil {
		r.rate(k, f, at, stage)
	}
	decided := at
	if !good {
		at = knownBad(o, f, r.limit(k, f), at, stage)
	}
	l.minutes.Add(at, good)
	if good {
		l.phases[f.phase].good++
		return
	}
	if r.excuses != nil {
		r.excuse(k, f, decided, at, stage)
	}
	l.phases[f.phase].bad++
	l.blame[f.group][stage]++
	if f.attempt > 0 {
		l.again++
	}
}
