package sim

import (
	"math"

	"slosim/engine"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// goals lists, per metric, the objectives that count a group's requests. Those on
// ITL are decided by the pools' gap meters.
type goals struct {
	ttft, tpot, e2e, queue, goodput, availability, itl []int32

	ends bool // some of those that a finished request decides: tpot, e2e, goodput, availability
}

func (g *goals) list(m slo.Metric) *[]int32 {
	return map[slo.Metric]*[]int32{
		slo.TTFT: &g.ttft, slo.TPOT: &g.tpot, slo.E2E: &g.e2e, slo.Queue: &g.queue,
		slo.Goodput: &g.goodput, slo.Availability: &g.availability, slo.ITL: &g.itl,
	}[m]
}

// queued decides the objectives on the time in the queue, known with the first
// token.
func (r *recorder) queued(f *flight, e *engine.Event, queue clock.Duration) {
	for _, k := range r.plan.goals[f.at.group].queue {
		r.decide(k, f, e.At, queue <= r.limit(k, f), stageQueue)
	}
}

// complete decides goodput of a request that has all its tokens.
func (r *recorder) complete(f *flight, e *engine.Event) {
	for _, k := range r.plan.goals[f.at.group].goodput {
		l := &r.plan.exp.SLOs[k].All
		parts := stagesOf(f, e, f.first)
		decode := e.At.Sub(f.first)
		late := l.TTFT > 0 && f.first.Sub(f.req.Send) > l.TTFT
		slow := l.TPOT > 0 && f.req.Output >= 2 && decode/clock.Duration(f.req.Output-1) > l.TPOT
		long := l.E2E > 0 && e.At.Sub(f.req.Send) > l.E2E
		stage := longest(&parts) // of the time to the first token
		if !late {
			parts[stageDecode] = decode
			if stage = longest(&parts); slow {
				stage = stageDecode
			}
		}
		r.decide(k, f, e.At, !late && !slow && !long, stage)
	}
}

// lost decides as bad, at now, the objectives of a list that count an outcome.
func (r *recorder) lost(list []int32, f *flight, now clock.Time, outcome string, stage int) {
	for _, k := range list {
		if !r.plan.skips[k][outcome] {
			r.decide(k, f, now, false, stage)
		}
	}
}

// openGoodput decides goodput of a request that is still open at the end: bad as
// soon as one of its thresholds has passed. It returns whether any has.
func (r *recorder) openGoodput(f *flight, end clock.Time) (late bool) {
	for _, k := range r.plan.goals[f.at.group].goodput {
		l := r.plan.exp.SLOs[k].All
		first := min(f.first, end).Sub(f.req.Send)
		bad := l.TTFT > 0 && first > l.TTFT || l.E2E > 0 && end.Sub(f.req.Send) > l.E2E ||
			l.TTFT == 0 && f.first == clock.Never && end.Sub(f.req.Send) >= minCoolDown
		if bad {
			late = true
			r.lost([]int32{k}, f, end, OutcomeUndecided, unansweredStage)
		}
	}
	return late
}

// knownBad returns when it was known that an event of an objective, decided at a
// time, is bad: as soon as a threshold had passed.
func knownBad(o *slo.Objective, f *flight, limit clock.Duration, at clock.Time, stage int) clock.Time {
	passed := func(limit clock.Duration) {
		if limit > 0 {
			at = min(at, f.req.Send.Add(limit))
		}
	}
	switch o.Metric {
	case slo.TTFT, slo.E2E:
		passed(limit)
	case slo.Goodput:
		if f.first > f.req.Send.Add(o.All.TTFT) {
			passed(o.All.TTFT)
		}
		passed(o.All.E2E)
	default:
		if stage == unansweredStage {
			passed(minCoolDown)
		}
	}
	return at
}

// bandShare returns the share of a group's prompts that an objective counts; NaN
// where the lengths have no closed form.
func (p *plan) bandShare(o *slo.Objective, g int) float64 {
	if !o.Banded() {
		return 1
	}
	prompt, _, ok := p.lengthsOf(g)
	if !ok {
		return math.NaN()
	}
	share := prompt.ShareAtLeast(max(o.MinPrompt, 1))
	if o.MaxPrompt > 0 {
		share -= prompt.ShareAtLeast(o.MaxPrompt)
	}
	return max(0, share)
}

// judge counts tokens of a pool as good or bad for each objective on ITL.
func (m *gapMeter) judge(end clock.Time, phase int, length clock.Duration, tokens int64) {
	if m.ledgers == nil {
		m.ledgers = make([]*ledger, len(m.plan.exp.SLOs))
		for k, o := range m.plan.exp.SLOs {
			if o.Metric == slo.ITL {
				m.ledgers[k] = &ledger{minutes: slo.NewLedger(m.plan.exp.Duration), phases: make([]counts, len(m.plan.phases)), blame: make([][blameStages]int64, len(m.plan.groups))}
			}
		}
	}
	for k, l := range m.ledgers {
		if l == nil {
			continue
		}
		good := length <= m.plan.exp.SLOs[k].Threshold
		l.minutes.AddN(end, good, tokens)
		if good {
			l.phases[phase].good += tokens
		} else {
			l.phases[phase].bad += tokens
		}
	}
}

// takeGaps moves the tokens that the pools of a class have judged into the
// objectives on its ITL.
func (c *cluster) takeGaps() {
	for k, o := range c.plan.exp.SLOs {
		if o.Metric != slo.ITL {
			continue
		}
		for pool := range c.gaps {
			m := c.gaps[pool]
			if m.ledgers == nil || !c.plan.servesClass(pool, o.Class) {
				continue
			}
			into, from := &c.rec.ledgers[k], m.ledgers[k]
			into.minutes.Merge(from.minutes)
			for ph, n := range from.phases {
				into.phases[ph].good += n.good
				into.phases[ph].bad += n.bad
			}
		}
	}
}

// servesClass tells whether a pool makes output tokens of a class.
func (p *plan) servesClass(pool int, class string) bool {
	for c := range p.exp.Traffic {
		if p.exp.Traffic[c].Name != class {
			continue
		}
		if int(p.poolOf[c]) == pool {
			return true
		}
		for _, k := range p.poolsOf[c] {
			if int(k) == pool {
				return true
			}
		}
	}
	return false
}
