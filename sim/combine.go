package sim

import (
	"fmt"
	"math"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// thinP99 is how many observations a P99 needs in each replication.
const thinP99 = 1000

// combine turns the replications into a result.
func (p *plan) combine(reps []*rep, seeds []uint64, end clock.Time, partial bool) *Result {
	r := &Result{Experiment: p.exp, Seeds: seeds, Partial: partial, End: end}
	for _, rep := range reps {
		r.Requests += rep.sent
		r.Steps += rep.steps
	}
	for ph := range p.phases {
		if p.phases[ph].from < end {
			r.Phases = append(r.Phases, p.phase(reps, ph))
			r.Phases[ph].To = min(r.Phases[ph].To, end)
		}
	}
	cut := end < clock.Time(p.exp.Duration)
	for k := range p.exp.SLOs {
		r.SLOs = append(r.SLOs, p.slo(reps, k, len(r.Phases), cut))
	}
	for k := range p.exp.Pools {
		r.Pools = append(r.Pools, p.pool(reps, k, len(r.Phases), end))
	}
	if next := len(r.Phases); next < len(p.phases) {
		for i := range r.SLOs {
			r.SLOs[i].Status = Undecided
			r.SLOs[i].Reason = fmt.Sprintf("the run was stopped before phase %q: %s", p.phases[next].name, r.SLOs[i].Reason)
		}
	}
	r.Costs = p.costs(reps, r.Pools)
	r.SLAs = p.slas(reps, r)
	r.Stages = p.stageReports(reps, len(r.Phases))
	r.Series = p.series(reps, end)
	r.Actions = reps[0].actions
	r.Held = p.heldChanges(reps)
	r.Verdict = verdictOf(r)
	r.Findings = p.findings(r)
	r.Warnings = p.warnings(r, reps)
	r.NotModelled = notModelled(p.exp)
	return r
}

// over collects one value per replication.
func over[T any](items []T, f func(T) float64) []float64 {
	out := make([]float64, len(items))
	for i, x := range items {
		out[i] = f(x)
	}
	return out
}

// sumOf adds up one count over the replications.
func sumOf[T any](items []T, f func(T) int64) int64 {
	n := int64(0)
	for _, x := range items {
		n += f(x)
	}
	return n
}

func (p *plan) phase(reps []*rep, ph int) Phase {
	out := Phase{Name: p.phases[ph].name, From: p.phases[ph].from, To: p.phases[ph].to}
	for class := range p.exp.Traffic {
		names, _ := p.views(class)
		for v, name := range names {
			list := make([]viewRep, len(reps))
			for i, rep := range reps {
				list[i] = rep.phases[ph][class][v]
			}
			cp := combineView(list)
			if cp.N == 0 && v > 0 {
				continue // a cohort before its launch
			}
			cp.Class, cp.Cohort = p.exp.Traffic[class].Name, name
			out.Classes = append(out.Classes, cp)
		}
	}
	return out
}

func combineView(list []viewRep) ClassPhase {
	c := ClassPhase{
		TTFT:     distribution(list, func(v viewRep) summary { return v.ttft }),
		Answered: distribution(list, func(v viewRep) summary { return v.answered }),
		TPOT:     distribution(list, func(v viewRep) summary { return v.tpot }),
		E2E:      distribution(list, func(v viewRep) summary { return v.e2e }),
		Prompt:   distribution(list, func(v viewRep) summary { return v.prompt }),
		Output:   distribution(list, func(v viewRep) summary { return v.output }),
	}
	for _, v := range list {
		c.N += v.n
		c.Outcomes.OK += v.outcomes.OK
		c.Outcomes.Rejected += v.outcomes.Rejected
		c.Outcomes.TimedOut += v.outcomes.TimedOut
		c.Outcomes.Failed += v.outcomes.Failed
		c.Outcomes.Late += v.outcomes.Late
		c.Outcomes.Young += v.outcomes.Young
		c.Outcomes.Retries += v.outcomes.Retries
		c.Outcomes.Lost += v.outcomes.Lost
		for k, n := range v.outcomes.Refused {
			c.Outcomes.Refused[k] += n
		}
	}
	stage := func(k int) stats.Estimate {
		return stats.Of(over(list, func(v viewRep) float64 { return v.stage[k] }), c.N)
	}
	for k := range lengthBands {
		b := LengthBand{UpTo: math.Inf(1), N: sumOf(list, func(v viewRep) int64 { return v.byLengthN[k] })}
		if k < len(PromptEdges) {
			b.UpTo = PromptEdges[k]
		}
		b.P50 = stats.Of(over(list, func(v viewRep) float64 { return v.byLength[k][0] }), b.N)
		b.P99 = stats.Of(over(list, func(v viewRep) float64 { return v.byLength[k][1] }), b.N)
		c.ByLength = append(c.ByLength, b)
	}
	c.Stages = Stages{stage(stageNetwork), stage(stageQueue), stage(stagePrefill), stage(stageDecode), stage(stagePublish)}
	return c
}

func distribution(list []viewRep, part func(viewRep) summary) Distribution {
	parts := make([]summary, len(list))
	n := int64(0)
	d := Distribution{}
	thin, thinner := false, false
	for i, v := range list {
		parts[i] = part(v)
		n += parts[i].n
		thin = thin || parts[i].n < thinP99
		thinner = thinner || parts[i].n < 10*thinP99
		d.Max = max(d.Max, parts[i].most)
		d.RelError = max(d.RelError, parts[i].relError)
	}
	d.Exact = d.RelError == 0
	d.Mean = stats.Of(over(parts, func(s summary) float64 { return s.mean }), n)
	d.P50 = stats.Of(over(parts, func(s summary) float64 { return s.p50 }), n)
	d.P90 = stats.Of(over(parts, func(s summary) float64 { return s.p90 }), n)
	d.P95 = stats.Of(over(parts, func(s summary) float64 { return s.p95 }), n)
	d.P99 = stats.Of(over(parts, func(s summary) float64 { return s.p99 }), n)
	d.P999 = stats.Of(over(parts, func(s summary) float64 { return s.p999 }), n)
	if len(parts) == 1 && parts[0].within != nil {
		parts[0].within.put(&d)
	}
	d.P99.Thin, d.P999.Thin = thin, thinner
	for _, e := range []*stats.Estimate{&d.Mean, &d.P50, &d.P90, &d.P95, &d.P99, &d.P999} {
		e.Lo = max(e.Lo, 0) // neither times nor lengths are negative
	}
	return d
}

func (p *plan) pool(reps []*rep, k, phases int, end clock.Time) PoolResult {
	spec := &p.exp.Pools[k]
	hours := end.Seconds() / 3600
	list := make([]poolRep, len(reps))
	for i, rep := range reps {
		list[i] = rep.pools[k]
	}
	n := sumOf(list, func(r poolRep) int64 { return r.total.samples })
	mean := func(f func(w *poolWindow) float64) stats.Estimate {
		return stats.Of(over(list, func(r poolRep) float64 { return f(&r.total) / float64(r.total.samples) }), n)
	}
	out := PoolResult{
		Name: spec.Name, Replicas: spec.Replicas, GPUs: spec.GPUs(),
		KVBlocks:    spec.Engine.KVBlocks,
		KVTokens:    int64(spec.Engine.KVBlocks-1) * int64(spec.Engine.BlockSize),
		Preemptions: stats.Of(over(list, func(r poolRep) float64 { return float64(r.total.preemptions) }), n),
		LostTokens:  stats.Of(over(list, func(r poolRep) float64 { return float64(r.total.lost) }), n),
		Busy:        stats.Of(over(list, func(r poolRep) float64 { return r.total.busy.Seconds() / r.total.span.Seconds() }), n),
	}
	out.PrefixHit = stats.Of(over(list, func(r poolRep) float64 { return float64(r.total.hit) / float64(r.total.prompted) }), n)
	out.PrefixLoaded = stats.Of(over(list, func(r poolRep) float64 { return float64(r.total.loaded) / float64(r.total.prompted) }), n)
	out.LinkUse = stats.Of(over(list, func(r poolRep) float64 { return r.link }), n)
	for i := range phases {
		out.ITL = append(out.ITL, combineGaps(list, i, p.phases[i].name))
	}
	out.spend(spec, list, hours)
	out.Serving = stats.Of(over(list, func(r poolRep) float64 { return float64(r.total.ups) / float64(r.total.looks) }), n)
	out.Paid = stats.Of(over(list, func(r poolRep) float64 { return float64(r.total.bound) / float64(r.total.looks) }), n)
	bin := 0
	if spec.Thermal.Enabled {
		out.ClockMHz = mean(func(w *poolWindow) float64 { return w.clock })
		if !math.IsNaN(out.ClockMHz.V) { // else no replica ever served
			bin = int(math.Round(out.ClockMHz.V / models.ClockStepMHz))
		}
	}
	out.Load = p.loads(k, bin, out.PrefixHit.V)[:phases]
	if last := len(out.Load) - 1; last >= 0 && out.Load[last].Saturation > 0 {
		out.SaturationRate = out.Load[last].Saturation
		out.PeakLoad = out.Load[last].PeakRate / out.SaturationRate
	}
	out.Unused = p.unused(k, &out)
	var work poolWindow
	for i := range list {
		work.merge(&list[i].total)
		out.KVPeak = max(out.KVPeak, list[i].peakKV)
	}
	out.Split = splitOf(&work)
	if spec.Thermal.Enabled {
		out.PowerW = mean(func(w *poolWindow) float64 { return w.power })
		out.TempC = mean(func(w *poolWindow) float64 { return w.temp })
		out.ClockMinMHz, out.TempMaxC = work.clockMin, work.tempMax
	}
	return out
}

func splitOf(w *poolWindow) StepSplit {
	t := float64(w.work.Total())
	if t == 0 {
		return StepSplit{}
	}
	c := &w.work
	return StepSplit{float64(c.Gemm) / t, float64(c.Attn) / t, float64(c.Comm) / t, float64(c.Small) / t, float64(c.Head) / t, float64(c.Host) / t}
}

// meanOf averages what is not NaN; NaN when nothing is left.
func meanOf(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / float64(n)
}

func extremes(values []float64) (lo, hi float64) {
	lo, hi = math.NaN(), math.NaN()
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if math.IsNaN(lo) || v < lo {
			lo = v
		}
		if math.IsNaN(hi) || v > hi {
			hi = v
		}
	}
	return lo, hi
}

// series averages the windows over the replications, up to the end of the span.
func (p *plan) series(reps []*rep, end clock.Time) Series {
	s := Series{Width: p.width}
	windows := 0
	for i := range p.windows {
		if t := clock.Time(i) * clock.Time(p.width); t < end {
			s.T = append(s.T, t)
			windows++
		}
	}
	for class := range p.exp.Traffic {
		names, _ := p.views(class)
		for v, name := range names {
			list := make([]*seriesRep, len(reps))
			for i, rep := range reps {
				list[i] = &rep.series[class][v]
			}
			cs := combineSeries(list, windows)
			cs.Class, cs.Cohort = p.exp.Traffic[class].Name, name
			s.Classes = append(s.Classes, cs)
		}
	}
	for k := range p.exp.Pools {
		s.Pools = append(s.Pools, p.poolSeries(reps, k, windows))
	}
	return s
}

func combineSeries(list []*seriesRep, windows int) ClassSeries {
	line := func(f func(r *seriesRep) []float64) []float64 {
		out := make([]float64, windows)
		for i := range out {
			out[i] = meanOf(over(list, func(r *seriesRep) float64 { return f(r)[i] }))
		}
		return out
	}
	c := ClassSeries{
		Arrivals:    line(func(r *seriesRep) []float64 { return r.arrivals }),
		Completions: line(func(r *seriesRep) []float64 { return r.done }),
		Bad:         line(func(r *seriesRep) []float64 { return r.bad }),
		TTFTP50:     line(func(r *seriesRep) []float64 { return r.ttft50 }),
		TTFTP99:     line(func(r *seriesRep) []float64 { return r.ttft99 }),
		TPOTP50:     line(func(r *seriesRep) []float64 { return r.tpot50 }),
		TPOTP99:     line(func(r *seriesRep) []float64 { return r.tpot99 }),
		Network:     line(func(r *seriesRep) []float64 { return r.network }),
		Queue:       line(func(r *seriesRep) []float64 { return r.queue }),
		Prefill:     line(func(r *seriesRep) []float64 { return r.prefill }),
		Publish:     line(func(r *seriesRep) []float64 { return r.publish }),
		PromptP50:   line(func(r *seriesRep) []float64 { return r.prompt50 }),
		PromptP90:   line(func(r *seriesRep) []float64 { return r.prompt90 }),
		PromptP99:   line(func(r *seriesRep) []float64 { return r.prompt99 }),
	}
	for i := range windows {
		lo, hi := extremes(over(list, func(r *seriesRep) float64 { return r.ttft99[i] }))
		c.TTFTP99Lo, c.TTFTP99Hi = append(c.TTFTP99Lo, lo), append(c.TTFTP99Hi, hi)
	}
	if list[0].mix != nil {
		for i := range windows {
			mix := make([]float64, len(PromptEdges)+1)
			for b := range mix {
				mix[b] = meanOf(over(list, func(r *seriesRep) float64 { return r.mix[i][b] }))
			}
			c.PromptMix = append(c.PromptMix, mix)
		}
	}
	return c
}

func (p *plan) poolSeries(reps []*rep, k, windows int) PoolSeries {
	s := PoolSeries{Name: p.exp.Pools[k].Name}
	thermal := p.exp.Pools[k].Thermal.Enabled
	for i := range windows {
		var w poolWindow
		for _, rep := range reps {
			w.merge(&rep.pools[k].windows[i])
		}
		n := float64(w.samples)
		s.Running = append(s.Running, w.running/n)
		s.Waiting = append(s.Waiting, w.waiting/n)
		s.KVUse = append(s.KVUse, w.kv/n)
		s.KVMax = append(s.KVMax, w.kvMax)
		s.Busy = append(s.Busy, w.busy.Seconds()/w.span.Seconds())
		seconds := float64(w.looks) * monitorInterval.Seconds()
		s.Serving = append(s.Serving, float64(w.ups)/float64(w.looks))
		s.Paid = append(s.Paid, float64(w.bound)/float64(w.looks))
		s.Preempt = append(s.Preempt, float64(w.preemptions)/seconds)
		s.PrefixHit = append(s.PrefixHit, float64(w.hit)/float64(w.prompted))
		s.Split = append(s.Split, splitOf(&w))
		if thermal {
			s.ClockMHz = append(s.ClockMHz, w.clock/n)
			s.PowerW = append(s.PowerW, w.power/n)
			s.TempC = append(s.TempC, w.temp/n)
			s.TempMaxC = append(s.TempMaxC, w.tempMax)
		}
	}
	return s
}
