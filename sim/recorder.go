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

	// where each group's requests count that are sent from begin on, for less than span:
	// within one phase and one window
	here  []tally
	begin clock.Time
	span  uint64
	aside []tally // of each group's requests that do not count

	ownTPOT bool // reports have the time per output token as we define it
}

// tally is where a request counts. Flights keep theirs: it does not change.
type tally struct {
	cell   *cell // nil: nowhere
	window *window
	group  int32
	phase  int32
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
	promptSum        int64
	outputSum        int64
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
	objective *slo.Objective
	sure      clock.Duration // a metric of so much is good, whatever else there is to ask; −1 = ask
	minutes   *slo.Ledger
	phases    []counts
	blame     [][blameStages]int64 // [group][stage]
	again     int64                // bad events of second and later attempts
}

type counts struct{ good, bad int64 }

func newRecorder(p *plan) *recorder {
	r := &recorder{plan: p, aside: make([]tally, len(p.groups)), ownTPOT: p.exp.Metrics != GuideLLM}
	for g := range p.groups {
		r.aside[g].group = int32(g)
		cells := make([]cell, len(p.phases))
		for k := range cells {
			cells[k].prompts = stats.NewHist(stats.Fine)
			cells[k].outputs = stats.NewHist(stats.Fine)
		}
		r.cells = append(r.cells, cells)
		r.windows = append(r.windows, make([]window, p.windows))
	}
	for k := range p.exp.SLOs {
		r.ledgers = append(r.ledgers, ledger{
			objective: &p.exp.SLOs[k],
			sure:      p.exp.SLOs[k].Threshold,

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

// move goes to the phase and the window of an instant of the counted span.
func (r *recorder) move(t clock.Time, phase int32) {
	width := clock.Time(r.plan.width)
	k := t / width
	begin, end := k*width, (k+1)*width
	begin, end = max(begin, r.plan.phases[phase].from), min(end, r.plan.phases[phase].to)
	r.begin, r.span = begin, uint64(end-begin)
	r.here = make([]tally, len(r.aside))
	for g := range r.here {
		r.here[g] = tally{&r.cells[g][phase], &r.windows[g][k], int32(g), phase}
	}
}

// arrival counts a request of a group from now on.
func (r *recorder) arrival(f *flight, group int32, phase, attempt int32) {
	if uint64(f.req.Send-r.begin) >= r.span {
		r.move(f.req.Send, phase)
	}
	f.at = &r.here[group]
	c, w := f.at.cell, f.at.window
	c.n++
	if attempt > 0 {
		c.again++
	}
	w.arrivals++
	prompt, output := int64(f.req.Prompt), int64(f.req.Output)
	c.promptSum += prompt
	c.outputSum += output
	if !c.prompts.HitFine(prompt) {
		c.prompts.Add(prompt)
	}
	if !c.outputs.HitFine(output) {
		c.outputs.Add(output)
	}
	if w.prompts == nil || !w.prompts.HitCoarse(prompt) {
		addCoarse(&w.prompts, prompt)
	}
}

// dismiss lets a request count no more.
func (r *recorder) dismiss(f *flight) { f.at = &r.aside[f.at.group] }

// addCoarse counts a value in a histogram that its first value creates.
//
//go:noinline
func addCoarse(h **stats.Hist, v int64) {
	if *h == nil {
		*h = stats.NewHist(stats.Coarse)
	}
	(*h).Add(v)
}

// stagesOf cuts a request's life at its borders; the four parts of TTFT add up
// to it exactly.
func stagesOf(f *flight, e *engine.Event, first clock.Time) (s [stages]clock.Duration) {
	s[stageNetwork], s[stageQueue], s[stagePrefill], s[stagePublish] = partsOf(f, e, first)
	return s
}

// partsOf is stagesOf one by one, for which no memory is needed.
func partsOf(f *flight, e *engine.Event, first clock.Time) (network, queue, prefill, publish clock.Duration) {
	held := f.waited()
	return e.Ready.Sub(f.req.Send) - held, e.Started.Sub(e.Ready) + held, e.Prefilled.Sub(e.Started), first.Sub(e.Prefilled)
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
	c, w := f.at.cell, f.at.window
	v, key := int64(ttft), stats.KeyOf(int64(ttft))
	if !c.ttft.Hit(key, v) {
		c.ttft.AddMissed(v)
	}
	band := &c.byLength[bandOfTokens(f.req.Prompt)]
	if *band == nil || !(*band).HitCoarseKey(key) {
		addCoarse(band, v)
	}
	if w.ttft == nil || !w.ttft.HitCoarseKey(key) {
		addCoarse(&w.ttft, v)
	}
	c.answered++
	w.answered++
	if c.recent != nil {
		c.recent.add(e.At, ttft)
	}
	network, queue, prefill, publish := partsOf(f, e, e.At)
	add := func(k int, part clock.Duration) {
		x := float64(part)
		c.stage[k] += x
		w.stage[k] += x
	}
	add(stageNetwork, network)
	add(stageQueue, queue)
	add(stagePrefill, prefill)
	add(stagePublish, publish)
	bad := false
	for _, k := range c.goals.ttft {
		if l := &r.ledgers[k]; ttft <= l.sure {
			l.good(f, e.At)
		} else if r.late(k, f, e, ttft) {
			bad = true
		}
	}
	if bad {
		w.bad++
	}
	if len(c.goals.queue) > 0 {
		r.queued(f, e, queue)
	}
}

// late decides an objective on a TTFT that is not good for sure, and says whether it is bad.
func (r *recorder) late(k int32, f *flight, e *engine.Event, ttft clock.Duration) (bad bool) {
	if ttft <= r.limit(k, f) {
		r.decide(k, f, e.At, true, noStage)
		return false
	}
	parts := stagesOf(f, e, e.At)
	r.decide(k, f, e.At, false, longest(&parts))
	return r.ledgers[k].objective.InBand(f.req.Prompt)
}

// stageSums are times by stage, nanoseconds.
type stageSums [stages]float64

func (r *recorder) finished(f *flight, e *engine.Event) {
	if f.first == clock.Never { // one token: first and last at once
		f.first = e.At
		r.firstToken(f, e)
	}
	c, w := f.at.cell, f.at.window
	c.ok++
	e2e := e.At.Sub(f.req.Send)
	decode := e.At.Sub(f.first)
	if !c.e2e.Hit(stats.KeyOf(int64(e2e)), int64(e2e)) {
		c.e2e.AddMissed(int64(e2e))
	}
	c.stage[stageDecode] += float64(decode)
	w.stage[stageDecode] += float64(decode)
	if f.req.Output >= 2 {
		tpot := decode / clock.Duration(f.req.Output-1)
		v, key := int64(tpot), stats.KeyOf(int64(tpot))
		if !r.ownTPOT {
			c.tpot.Add(int64(r.plan.exp.reportedTPOT(tpot, e2e, f.req.Output)))
		} else if !c.tpot.Hit(key, v) {
			c.tpot.AddMissed(v)
		}
		if w.tpot == nil || !w.tpot.HitCoarseKey(key) {
			addCoarse(&w.tpot, v)
		}
	}
	if c.goals.ends || c.stages != nil {
		r.judge(f, e)
	}
}

// judge decides the objectives that wait for a request's last token.
func (r *recorder) judge(f *flight, e *engine.Event) {
	c, goals := f.at.cell, f.at.cell.goals
	e2e := e.At.Sub(f.req.Send)
	decode := e.At.Sub(f.first)
	if f.req.Output >= 2 {
		tpot := decode / clock.Duration(f.req.Output-1)
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
	if uint64(e.At-r.begin) < r.span {
		r.here[f.at.group].window.done++
	} else {
		r.completedElsewhere(f, e.At)
	}
}

func (r *recorder) completedElsewhere(f *flight, at clock.Time) {
	if at >= 0 && at < clock.Time(r.plan.exp.Duration) {
		r.windows[f.at.group][at/clock.Time(r.plan.width)].done++
	}
}

func (r *recorder) rejected(f *flight, now clock.Time, why Refusal) {
	c, w := f.at.cell, f.at.window
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
	c, w, goals := f.at.cell, f.at.window, f.at.cell.goals
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
	c, w, goals := f.at.cell, f.at.window, f.at.cell.goals
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
	c, w, goals := f.at.cell, f.at.window, f.at.cell.goals
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

// good counts a good event of an objective, known at a time, where there are no promises.
func (l *ledger) good(f *flight, at clock.Time) {
	if l.objective.InBand(f.req.Prompt) {
		l.minutes.Add(at, true)
		l.phases[f.at.phase].good++
	}
}

// decide counts one event of an objective, known at a time. A late TTFT or E2E is
// known to be bad as soon as its threshold has passed. Of a good event the stage
// does not matter.
func (r *recorder) decide(k int32, f *flight, at clock.Time, good bool, stage int) {
	l := &r.ledgers[k]
	o := l.objective
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
		l.phases[f.at.phase].good++
		return
	}
	if r.excuses != nil {
		r.excuse(k, f, decided, at, stage)
	}
	l.phases[f.at.phase].bad++
	l.blame[f.at.group][stage]++
	if f.attempt > 0 {
		l.again++
	}
}
