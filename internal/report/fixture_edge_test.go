package report

import (
	"math"
	"strings"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// fixture is a result with the number of charts that its page must show.
type fixture struct {
	result *sim.Result
	meta   Meta
	charts int
}

// fixtures are the results that every output must be able to tell.
func fixtures() map[string]fixture {
	return map[string]fixture{
		"prompt-growth":   {promptGrowth(), metaFixture(), 16},
		"met":             {metRun(), metaFixture(), 14},
		"partial":         {partialRun(), metaFixture(), 15},
		"one-replication": {oneReplication(), metaFixture(), 16},
		"empty":           {emptyRun(), metaFixture(), 0},
		"never-answered":  {neverAnswered(), metaFixture(), 16},
		"gaps":            {gaps(), metaFixture(), 16},
		"hostile":         {hostile(), hostileMeta(), 16},
		"many":            {many(), metaFixture(), 50},
		"cluster":         {clusterRun(), metaFixture(), 17},
	}
}

// metRun has no change and keeps its promise.
func metRun() *sim.Result {
	r := promptGrowth()
	r.Experiment.Changes, r.Experiment.SLOs = nil, r.Experiment.SLOs[:1]
	r.Experiment.Title, r.Experiment.Question = "Chat as it is today", ""
	r.Verdict = sim.Verdict{Status: sim.Met, SLO: "chat TTFT", Reason: "TTFT P99 is 0.42 s [0.41, 0.43]; its SLO is 2 s."}
	r.Phases, r.SLOs = r.Phases[:1], r.SLOs[:1]
	r.Phases[0].Name, r.Phases[0].To = "run", r.End
	s := &r.SLOs[0]
	s.Status, s.Judged, s.Phases, s.Alerts, s.Blame, s.BlameText = sim.Met, "run", s.Phases[:1], nil, nil, ""
	s.Attained, s.Bad, s.IdleFloor = est(.99996, .00001, 6_900_000), 274, est(0, 0, 1)
	s.Reason, s.Budget = "bad 0.004 % [0.003, 0.005], 1 % allowed", burnDown(0, .00004, 142_560)
	s.Budget.Projected, s.Budget.WeekAlarm, s.Budget.BadMinutes = est(.0036, .0004, reps), false, est(0, 0, reps)
	for i := range s.Burn {
		s.Burn[i].Rate = .004
	}
	r.Findings, r.Warnings = nil, nil
	for i := range r.Series.Classes {
		c := &r.Series.Classes[i]
		for k := 320; k < len(c.TTFTP99); k++ {
			for _, v := range []*[]float64{&c.TTFTP50, &c.TTFTP99, &c.TTFTP99Lo, &c.TTFTP99Hi, &c.Queue, &c.Prefill, &c.PromptP50, &c.PromptP90, &c.PromptP99} {
				(*v)[k] = (*v)[k-240]
			}
			if c.PromptMix != nil {
				c.PromptMix[k] = c.PromptMix[k-240]
			}
		}
	}
	r.Series.Classes = r.Series.Classes[:1]
	return r
}

// partialRun was interrupted before the change.
func partialRun() *sim.Result {
	r := promptGrowth()
	r.Partial, r.End = true, at(20)
	r.Verdict = sim.Verdict{Status: sim.Undecided, SLO: "chat TTFT", Reason: "interrupted before the launch: nothing is known of the phase after it."}
	for i := range r.Phases {
		r.Phases[i].To = min(r.Phases[i].To, r.End)
		if r.Phases[i].From > r.End {
			r.Phases[i].From = r.End
			for j := range r.Phases[i].Classes {
				r.Phases[i].Classes[j] = sim.ClassPhase{Class: "chat", Cohort: r.Phases[i].Classes[j].Cohort}
			}
		}
	}
	n := 200
	r.Series.T = r.Series.T[:n]
	for i := range r.Series.Classes {
		eachSeries(&r.Series.Classes[i], func(v *[]float64) { *v = (*v)[:n] })
	}
	for i := range r.SLOs {
		s := &r.SLOs[i]
		s.Status, s.MoreReps, s.Alerts, s.Burn = sim.Undecided, 3, nil, s.Burn[:20]
		s.Budget.Marks, s.Budget.Projected, s.Budget.Needs = nil, stats.Estimate{}, "needs duration ≥ 57h, so that a whole day lies after the change"
		s.Budget.Curve, s.Budget.WeekAlarm, s.Budget.Spent = s.Budget.Curve[:21], false, est(.0004, .0001, reps)
	}
	return r
}

func oneReplication() *sim.Result {
	r := promptGrowth()
	r.Seeds, r.Experiment.Replications = r.Seeds[:1], 1
	one := func(e *stats.Estimate) { e.R, e.Lo, e.Hi, e.Thin = 1, e.V, e.V, true }
	for i := range r.Phases {
		for j := range r.Phases[i].Classes {
			c := &r.Phases[i].Classes[j]
			c.N = 900
			for _, d := range []*sim.Distribution{&c.TTFT, &c.Answered, &c.TPOT, &c.E2E, &c.Prompt, &c.Output} {
				for _, e := range []*stats.Estimate{&d.Mean, &d.P50, &d.P90, &d.P95, &d.P99} {
					one(e)
				}
			}
			for k := range c.ByLength {
				if b := &c.ByLength[k]; b.N > 0 {
					one(&b.P50)
					one(&b.P99)
				}
			}
		}
	}
	r.SLOs[0].Spent, r.SLOs[0].Budget = .6, burnDown(.6, .1166, 142_560)
	for i := range r.SLOs {
		s := &r.SLOs[i]
		one(&s.Attained)
		one(&s.Budget.Spent)
		one(&s.Budget.Projected)
		for k := range s.Budget.Marks {
			s.Budget.Marks[k].Lo, s.Budget.Marks[k].Hi = s.Budget.Marks[k].At, s.Budget.Marks[k].At
		}
	}
	return r
}

// emptyRun has neither objectives nor series nor phases.
func emptyRun() *sim.Result {
	return &sim.Result{Experiment: sim.Experiment{Name: "empty", Duration: clock.Hour}, Seeds: []uint64{1}, End: clock.Time(clock.Hour),
		Verdict: sim.Verdict{Status: sim.Undecided}}
}

// neverAnswered overloads the pool: P99 lies among requests without an answer.
func neverAnswered() *sim.Result {
	r := promptGrowth()
	r.Verdict.Reason = "TTFT P99 is beyond the run: 3 % of the requests after the launch were never answered."
	never := stats.Estimate{V: math.Inf(1), Lo: 41, Hi: math.Inf(1), N: 3_862_931, R: reps}
	for j := range r.Phases[2].Classes {
		c := &r.Phases[2].Classes[j]
		c.TTFT.P99, c.E2E.P99, c.TTFT.Mean = never, never, never
		c.TTFT.Max = math.Inf(1)
		c.Outcomes.Late, c.Outcomes.Young, c.Outcomes.TimedOut = 110_000, 1200, 5000
		c.Stages.Queue = est(38, 2, 1)
	}
	for i := range r.Series.Classes {
		for k := 500; k < 640; k++ {
			r.Series.Classes[i].TTFTP99[k], r.Series.Classes[i].TTFTP99Hi[k] = math.Inf(1), math.Inf(1)
		}
	}
	r.SLOs[0].Budget.Unstable = true
	return r
}

// gaps has windows and a range of prompt lengths without data, an interval below
// 0, and a cohort without any data.
func gaps() *sim.Result {
	r := promptGrowth()
	for i := range r.Series.Classes {
		eachSeries(&r.Series.Classes[i], func(v *[]float64) {
			for k := range *v {
				if k%9 < 2 || k > 400 && k < 470 {
					(*v)[k] = math.NaN()
				}
			}
		})
	}
	bands := r.Phases[2].Classes[0].ByLength
	bands[5].N, bands[5].P50.R, bands[5].P99.R = 0, 0, 0
	bands[8].P99.Lo = -1
	none := sim.ClassSeries{Class: "chat", Cohort: "nobody"}
	eachSeries(&none, func(v *[]float64) { *v = make([]float64, 720); fill64(*v, math.NaN()) })
	r.Series.Classes = append(r.Series.Classes, none)
	return r
}

func fill64(v []float64, x float64) {
	for i := range v {
		v[i] = x
	}
}

// eachSeries calls f for every series of numbers of a class.
func eachSeries(c *sim.ClassSeries, f func(*[]float64)) {
	for _, v := range []*[]float64{&c.Arrivals, &c.Completions, &c.Bad, &c.TTFTP50, &c.TTFTP99, &c.TTFTP99Lo, &c.TTFTP99Hi, &c.TPOTP50, &c.TPOTP99,
		&c.Network, &c.Queue, &c.Prefill, &c.Publish, &c.PromptP50, &c.PromptP90, &c.PromptP99} {
		f(v)
	}
}

// eachPoolSeries calls f for every series of numbers of a pool.
func eachPoolSeries(p *sim.PoolSeries, f func(*[]float64)) {
	for _, v := range []*[]float64{&p.Running, &p.Waiting, &p.KVUse, &p.KVMax, &p.Preempt, &p.ClockMHz, &p.PowerW, &p.TempC, &p.TempMaxC, &p.Busy} {
		f(v)
	}
}

// The hostile names: markup, a script, right-to-left text with an override,
// emoji with joiners, terminal escapes, and sheer length.
const (
	attack  = `</script><img src=x onerror=alert(1)>`
	rightTo = "\u202eשירות צ׳אט\u200f ארוך\u202c"
	emoji   = "👩🏽‍🚀 chat 🚀|`*_"
	escapes = "\x1b[31mred\x1b[0m\r\n{{.}} ${alert(1)}"
)

func hostile() *sim.Result {
	r := promptGrowth()
	e := &r.Experiment
	long := strings.Repeat("very long title ", 9) + strings.Repeat("x", 60)
	e.Title, e.Question, e.Name = attack+long, rightTo+" "+attack, `"><script>alert(2)</script>`
	rename := map[string]string{"chat": emoji + attack, "feature": rightTo + attack, "existing": "existing", "all": "all"}
	e.Traffic[0].Name, e.Changes[0].Name, e.Changes[0].Class = rename["chat"], rename["feature"], rename["chat"]
	for i := range r.Phases {
		r.Phases[i].Name += attack
		for j := range r.Phases[i].Classes {
			c := &r.Phases[i].Classes[j]
			c.Class, c.Cohort = rename[c.Class], rename[c.Cohort]
		}
	}
	for i := range r.Series.Classes {
		c := &r.Series.Classes[i]
		c.Class, c.Cohort = rename[c.Class], rename[c.Cohort]
	}
	for i := range r.SLOs {
		s := &r.SLOs[i]
		s.Name, s.Class, s.Judged = attack+s.Name+strings.Repeat("y", 150), rename["chat"], attack
		s.Reason, s.BlameText = attack+escapes, attack+rightTo
		s.Blame = append(s.Blame, sim.Blame{Cohort: attack, Stage: `queue);background:url(//x)`, Share: .1})
		s.Alerts = append(s.Alerts, sim.Alert{Name: attack, Severity: attack, Fired: at(40), Resolved: clock.Never})
		if len(s.Exclude) > 0 {
			s.Exclude = []string{rename["feature"]}
		}
		e.SLOs[i] = s.Objective
	}
	r.Verdict.SLO, r.Verdict.Reason = r.SLOs[0].Name, attack+" "+escapes+" "+long
	r.Pools[0].Name, r.Series.Pools[0].Name, e.Pools[0].Name = attack, attack, attack
	e.Pools[0].Deployment.GPU.Name, e.Pools[0].Deployment.LLM.Source = attack, attack
	e.Assumptions = append(e.Assumptions, attack)
	r.Warnings, r.NotModelled = append(r.Warnings, attack+escapes), append(r.NotModelled, attack)
	r.Findings = append(r.Findings, sim.Finding{Title: attack, Evidence: emoji + rightTo})
	return r
}

// many has twelve classes with an objective each, and three pools.
func many() *sim.Result {
	r := promptGrowth()
	class, series, objective := r.Phases[0].Classes[0], r.Series.Classes[0], r.SLOs[0]
	for i := 1; i < 12; i++ {
		name := seriesName(i)
		class.Class, series.Class = name, name
		for p := range r.Phases {
			r.Phases[p].Classes = append(r.Phases[p].Classes, class)
		}
		r.Series.Classes = append(r.Series.Classes, series)
		objective.Name, objective.Class, objective.Metric = name+" first token", name, slo.TTFT
		r.SLOs = append(r.SLOs, objective)
		r.Experiment.Traffic = append(r.Experiment.Traffic, r.Experiment.Traffic[0])
		r.Experiment.Traffic[i].Name = name
	}
	for _, name := range []string{"long", "batch"} {
		pool, s := r.Pools[0], r.Series.Pools[0]
		pool.Name, s.Name = name, name
		r.Pools, r.Series.Pools = append(r.Pools, pool), append(r.Series.Pools, s)
		r.Experiment.Pools = append(r.Experiment.Pools, r.Experiment.Pools[0])
	}
	return r
}

// hostileMeta is the command's part of the hostile fixture.
func hostileMeta() Meta {
	m := metaFixture()
	m.Version, m.Command = attack, "sim run '"+attack+"' "+escapes
	m.Provenance.File, m.Provenance.Sets = attack, []string{"title=" + attack}
	m.Provenance.Entries = append(m.Provenance.Entries, config.Entry{Path: attack, Value: attack, Origin: attack, Note: attack})
	return m
}
