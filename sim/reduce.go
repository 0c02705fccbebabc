package sim

import (
	"math"

	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// rep is what one replication leaves behind: every statistic, no samples.
type rep struct {
	phases  [][][]viewRep // [phase][class][view]
	series  [][]seriesRep // [class][view]
	slos    []sloRep
	pools   []poolRep
	stages  [][]stageRep // [budget][phase]
	sent    int64
	steps   int64
	actions []Action
	holds   []heldRep // per hold
	slas    []slaRep
	grew    bool // the backlog grew by more than 1 % of the last day's arrivals

	offered, held []int64   // per class behind a client-side cap: arrivals of the span; of them never sent within it
	idleFloor     []float64 // per objective: from the prompts that came, where lengths have no closed form; NaN else
}

// viewRep is a class, its own requests, or a cohort of it, in one phase.
type viewRep struct {
	n                         int64
	outcomes                  Outcomes
	ttft, answered, tpot, e2e summary
	prompt, output            summary
	byLength                  [lengthBands][2]float64 // TTFT P50 and P99, seconds; NaN when empty
	byLengthN                 [lengthBands]int64
	stage                     [stages]float64 // mean seconds; NaN without answers
}

// summary is one distribution, in seconds or tokens.
type summary struct {
	n                              int64
	mean, p50, p90, p95, p99, p999 float64
	most                           float64
	relError                       float64
	within                         *oneRun // of the only replication; nil with several
}

// views returns the views of a class: all of it and, when it has cohorts, its
// own requests and each cohort.
func (p *plan) views(class int) (names []string, groups [][]int) {
	all := p.classGroups(class)
	names, groups = []string{"all"}, [][]int{all}
	if len(all) > 1 {
		for _, g := range all {
			names = append(names, p.groups[g].name)
			groups = append(groups, []int{g})
		}
	}
	return names, groups
}

// reduce closes a replication and computes its statistics. A replication that
// was cut short is one whose clock stands before the end of the span.
func (c *cluster) reduce() *rep {
	p := c.plan
	end := c.loop.Now()
	cut := end < clock.Time(p.exp.Duration)
	for i := range c.flights {
		if f := &c.flights[i]; f.live && f.counted() {
			c.rec.undecided(f, end)
			c.tellEnd(f, OutcomeUndecided)
		}
	}
	r := &rep{sent: c.sent}
	for ph := range p.phases {
		var classes [][]viewRep
		for class := range p.exp.Traffic {
			var list []viewRep
			_, views := p.views(class)
			for _, groups := range views {
				list = append(list, c.rec.view(groups, ph))
			}
			classes = append(classes, list)
		}
		r.phases = append(r.phases, classes)
	}
	for class := range p.exp.Traffic {
		var list []seriesRep
		_, views := p.views(class)
		for v, groups := range views {
			list = append(list, c.rec.series(groups, v == 0))
		}
		r.series = append(r.series, list)
	}
	r.steps = c.oldSteps
	for _, replica := range c.replicas {
		r.steps += replica.Spent(end).Steps // which reports the last gaps, too
	}
	c.takeGaps()
	for k := range p.exp.SLOs {
		r.slos = append(r.slos, c.rec.sloRep(k, cut))
	}
	c.links.pass(end)
	c.mon.sum()
	for k := range c.mon.pools {
		pm := &c.mon.pools[k]
		r.pools = append(r.pools, poolRep{windows: pm.windows, total: pm.total, peakKV: pm.peakKV, thermal: pm.thermal, link: c.links.use(k), paid: c.paid(k, end), use: c.pools[k].use, itl: c.gaps[k].reduce()})
	}
	r.actions = c.actions
	r.holds = c.heldReps()
	r.slas = c.rec.slaReps()
	r.grew = c.grew()
	r.stages = c.rec.stageReps()
	for _, s := range c.sources {
		r.offered = append(r.offered, s.offered)
		held := int64(0)
		for _, r := range s.backlog[s.held:] {
			if r.Send >= 0 && r.Send < clock.Time(p.exp.Duration) {
				held++
			}
		}
		r.held = append(r.held, held)
	}
	for k := range p.exp.SLOs {
		r.idleFloor = append(r.idleFloor, c.rec.measuredFloor(k))
	}
	return r
}

// measuredFloor is an objective's idle floor over the prompts that came in the
// last phase; NaN where the closed form serves.
func (r *recorder) measuredFloor(k int) float64 {
	o := r.plan.exp.SLOs[k]
	if r.plan.severalPools(o.Class) {
		return math.NaN()
	}
	if _, _, ok := r.plan.idleFloor(o, 0); ok || o.Metric != slo.TTFT {
		return math.NaN()
	}
	var all, over int64
	for g := range r.plan.groups {
		if !r.plan.counts(o, g) {
			continue
		}
		length := float64(r.plan.idleLength(int(r.plan.poolOf[r.plan.groups[g].class]), o.Threshold))
		h := r.cells[g][len(r.plan.phases)-1].prompts
		all += h.N()
		h.Each(func(low, width float64, count int64) {
			if mid := low + width/2; !o.InBand(int32(mid)) {
				all -= count
			} else if mid >= length {
				over += count
			}
		})
	}
	return float64(over) / float64(all)
}

// grew tells whether more work waited at the end than a day before, by more than
// 1 % of that day's arrivals.
func (c *cluster) grew() bool {
	arrivals := int64(0)
	day := int(clock.Day / c.plan.width)
	for g := range c.rec.windows {
		w := c.rec.windows[g]
		for i := max(0, len(w)-day); i < len(w); i++ {
			arrivals += int64(w[i].arrivals)
		}
	}
	return float64(c.backlog[1]-c.backlog[0]) > 0.01*float64(arrivals)
}

// view merges groups within a phase.
func (r *recorder) view(groups []int, phase int) viewRep {
	intervals := r.sections(groups, phase)
	first := &r.cells[groups[0]][phase]
	sum := *first
	if len(groups) > 1 {
		sum = cell{prompts: stats.NewHist(stats.Fine), outputs: stats.NewHist(stats.Fine)}
		for _, g := range groups {
			sum.add(&r.cells[g][phase])
		}
	}
	v := viewRep{
		n:        sum.n,
		outcomes: Outcomes{OK: sum.ok, Rejected: sum.refused, TimedOut: sum.timeouts, Failed: sum.failed, Retries: sum.again, Lost: sum.lost, Late: sum.late, Young: sum.young, Refused: sum.why},
		ttft:     summarise(&sum.ttft, r.plan.exp.quantiles(&sum.ttft)),
		answered: summarise(&sum.ttft, func(qs ...float64) []float64 { return sum.ttft.FiniteQuantilesBy(r.plan.exp.rule(), qs...) }),
		tpot:     summarise(&sum.tpot, r.plan.exp.quantiles(&sum.tpot)),
		e2e:      summarise(&sum.e2e, r.plan.exp.quantiles(&sum.e2e)),
		prompt:   lengths(sum.prompts, float64(sum.promptSum)),
		output:   lengths(sum.outputs, float64(sum.outputSum)),
	}
	v.answered.n -= sum.ttft.Inf()
	if intervals != nil {
		intervals(&v)
	}
	for k, h := range sum.byLength {
		q := at(h, 1e-9)
		v.byLength[k] = [2]float64{q[0], q[2]}
		if h != nil {
			v.byLengthN[k] = h.N()
		}
	}
	for k := range v.stage {
		n := sum.answered
		if k == stageDecode {
			n = sum.ok
		}
		v.stage[k] = sum.stage[k] / float64(n) / 1e9
	}
	return v
}

func (c *cell) add(o *cell) {
	c.n += o.n
	c.ok += o.ok
	c.refused += o.refused
	c.timeouts += o.timeouts
	c.failed += o.failed
	c.again += o.again
	c.lost += o.lost
	c.late += o.late
	c.young += o.young
	c.answered += o.answered
	for k := range c.why {
		c.why[k] += o.why[k]
	}
	c.ttft.Merge(&o.ttft)
	c.tpot.Merge(&o.tpot)
	c.e2e.Merge(&o.e2e)
	c.prompts.Merge(o.prompts)
	c.outputs.Merge(o.outputs)
	for k, h := range o.byLength {
		mergeHist(&c.byLength[k], h)
	}
	c.promptSum += o.promptSum
	c.outputSum += o.outputSum
	for k := range c.stage {
		c.stage[k] += o.stage[k]
	}
}

func summarise(s *stats.Sample, quantiles func(qs ...float64) []float64) summary {
	q := quantiles(.5, .9, .95, .99, .999)
	for i := range q {
		q[i] /= 1e9
	}
	return summary{
		n: s.N() + s.Inf(), mean: s.Mean() / 1e9, p50: q[0], p90: q[1], p95: q[2], p99: q[3], p999: q[4],
		most: float64(s.Max()) / 1e9, relError: s.RelError(),
	}
}

func lengths(h *stats.Hist, sum float64) summary {
	q := h.Quantiles(.5, .9, .95, .99, .999)
	return summary{n: h.N(), mean: sum / float64(h.N()), p50: q[0], p90: q[1], p95: q[2], p99: q[3], p999: q[4], most: float64(h.Max()), relError: h.RelError()}
}

// seriesRep is a view over time in one replication.
type seriesRep struct {
	arrivals, done, bad              []float64 // per second, per second, share of arrivals
	ttft50, ttft99, tpot50, tpot99   []float64
	network, queue, prefill, publish []float64
	prompt50, prompt90, prompt99     []float64
	mix                              [][]float64
}

func (r *recorder) series(groups []int, mix bool) seriesRep {
	var s seriesRep
	seconds := r.plan.width.Seconds()
	for i := range r.plan.windows {
		w := r.windows[groups[0]][i]
		if len(groups) > 1 {
			w = window{}
			for _, g := range groups {
				w.add(&r.windows[g][i])
			}
		}
		if last := r.plan.exp.Duration - clock.Duration(i)*r.plan.width; last < r.plan.width {
			seconds = last.Seconds()
		}
		s.arrivals = append(s.arrivals, float64(w.arrivals)/seconds)
		s.done = append(s.done, float64(w.done)/seconds)
		s.bad = append(s.bad, float64(w.bad)/float64(w.arrivals))
		t, o, l := atWith(w.ttft, int64(w.lost), 1e-9), at(w.tpot, 1e-9), at(w.prompts, 1)
		s.ttft50, s.ttft99 = append(s.ttft50, t[0]), append(s.ttft99, t[2])
		s.tpot50, s.tpot99 = append(s.tpot50, o[0]), append(s.tpot99, o[2])
		s.prompt50, s.prompt90, s.prompt99 = append(s.prompt50, l[0]), append(s.prompt90, l[1]), append(s.prompt99, l[2])
		n := float64(w.answered) * 1e9
		s.network = append(s.network, w.stage[stageNetwork]/n)
		s.queue = append(s.queue, w.stage[stageQueue]/n)
		s.prefill = append(s.prefill, w.stage[stagePrefill]/n)
		s.publish = append(s.publish, w.stage[stagePublish]/n)
		if mix {
			s.mix = append(s.mix, mixOf(w.prompts))
		}
	}
	return s
}

func (w *window) add(o *window) {
	w.arrivals += o.arrivals
	w.done += o.done
	w.bad += o.bad
	w.answered += o.answered
	w.lost += o.lost
	for k := range w.stage {
		w.stage[k] += o.stage[k]
	}
	mergeHist(&w.ttft, o.ttft)
	mergeHist(&w.tpot, o.tpot)
	mergeHist(&w.prompts, o.prompts)
}

// mergeHist adds a coarse histogram to another; both may be missing.
func mergeHist(into **stats.Hist, h *stats.Hist) {
	if h == nil {
		return
	}
	if *into == nil {
		*into = stats.NewHist(stats.Coarse)
	}
	(*into).Merge(h)
}

// at returns P50, P90 and P99 of a histogram in a unit; NaN without values.
func at(h *stats.Hist, unit float64) [3]float64 { return atWith(h, 0, unit) }

// atWith is at over further values that lie beyond all others.
func atWith(h *stats.Hist, infinite int64, unit float64) [3]float64 {
	out := [3]float64{math.NaN(), math.NaN(), math.NaN()}
	n := infinite
	if h != nil {
		n += h.N()
	}
	if n == 0 {
		return out
	}
	for i, q := range [3]float64{.5, .9, .99} {
		out[i] = math.Inf(1)
		if rank := q * float64(n-1); rank <= float64(n-infinite-1) {
			out[i] = h.Quantiles(rank / math.Max(1, float64(n-infinite-1)))[0] * unit
		}
	}
	return out
}

// mixOf returns the shares of prompts by PromptEdges.
func mixOf(h *stats.Hist) []float64 {
	out := make([]float64, len(PromptEdges)+1)
	if h == nil {
		return out
	}
	n := float64(h.N())
	h.Each(func(low, width float64, count int64) {
		out[bandOf(low+width/2)] += float64(count) / n
	})
	return out
}

// poolRep is a pool in one replication.
type poolRep struct {
	windows []poolWindow
	total   poolWindow
	peakKV  float64
	thermal bool
	link    float64        // share of the link capacity in use
	itl     []gapRep       // per phase
	paid    clock.Duration // replica time
	use     []use          // per class
}

// sloRep is an objective in one replication.
type sloRep struct {
	phases     []counts
	blame      [][blameStages]int64
	outlook    slo.Outlook
	badMinutes int
	burn       []float64 // burn rate over the last hour, every budgetStep minutes
	alerts     []slo.Firing
	batches    [][2][]float64 // per phase: bad and all events of stats.Batches parts of it
	events     []slo.PolicyEvent
	weeks      []slo.Week
	good, bad  int64
	again      int64                // of bad: of second and later attempts
	bands      [lengthBands]bandRep // TTFT: last phase, by prompt length
	adjusted   []slo.Adjustment
	limit      float64 // seconds: mean threshold
}

func (r *recorder) sloRep(k int, cut bool) sloRep {
	l := &r.ledgers[k]
	s := sloRep{phases: l.phases, blame: l.blame, badMinutes: l.minutes.BadMinutes(r.plan.exp.SLOs[k].Target)}
	s.good, s.bad = l.minutes.Totals()
	s.again, s.bands = l.again, r.bands(k)
	s.adjusted, s.limit = r.adjustments(k)
	o := r.plan.exp.SLOs[k]
	s.outlook = slo.Look(l.minutes, r.plan.budget(k, s.good+s.bad), o.Window, o.Spent, slo.Forecast{Repeat: r.plan.needs() == "" && !cut, Step: r.plan.budgetStep()})
	history := r.plan.history[k]
	burn := slo.NewBurn(l.minutes, o.Target, func(d clock.Duration) float64 {
		if n := history[d/clock.Minute]; !math.IsNaN(n) {
			return n
		}
		return float64(s.good+s.bad) / r.plan.exp.Duration.Seconds() * d.Seconds()
	})
	s.alerts = burn.Guard(o.MinEvents).Alerts(o.Pairs())
	s.batches = r.batches(l)
	s.events = slo.Events(l.minutes, &o, r.plan.budget(k, s.good+s.bad), r.plan.needs() == "" && !cut, o.Window)
	s.weeks = slo.Weeks(l.minutes, &o, r.plan.budget(k, s.good+s.bad))
	step := r.plan.budgetStep()
	for m := step - 1; m < burn.Minutes(); m += step {
		rate, _ := burn.Rate(m, clock.Hour)
		s.burn = append(s.burn, rate)
	}
	return s
}

// budgetStep is how many minutes lie between two points of a budget's curves.
func (p *plan) budgetStep() int { return max(1, int(p.exp.Duration/clock.Minute)/360) }

// windowEvents returns the events that an objective's window holds: in closed
// form, or the measured rate carried on where there is none.
func (p *plan) windowEvents(k int, measured int64) float64 {
	if n := p.windowN[k]; !math.IsNaN(n) {
		return n
	}
	return float64(measured) / p.exp.Duration.Seconds() * p.exp.SLOs[k].Window.Seconds()
}

// budget returns the bad events that an objective allows in its window.
func (p *plan) budget(k int, measured int64) float64 {
	return (1 - p.exp.SLOs[k].Target) * p.windowEvents(k, measured)
}

// needs says what a projection to the end of the window lacks; "" when a whole
// day lies in the last phase.
func (p *plan) needs() string {
	last := p.phases[len(p.phases)-1]
	if last.to.Sub(last.from) >= clock.Day {
		return ""
	}
	return "needs duration ≥ " + (clock.Duration(last.from) + clock.Day).String() + ": a whole day in the last phase"
}
