package review

import (
	"fmt"
	"math"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// SLO is one objective in both worlds, in the last phase.
type SLO struct {
	Name       string     `json:"name"`
	Class      string     `json:"class"`
	Metric     slo.Metric `json:"metric"`
	Threshold  Number     `json:"threshold_s"`
	Allowed    Number     `json:"allowed_bad_share"`
	New        bool       `json:"new"` // it has no counterpart without the change
	Before     sim.Status `json:"status_before"`
	Status     sim.Status `json:"status_after"`
	Bad        Paired     `json:"bad_share"`
	Burn       Paired     `json:"burn_rate"` // of the last phase: bad share ÷ allowed share
	Spent      Paired     `json:"budget_spent"`
	Quantile   Paired     `json:"quantile_s"` // at the objective's target, of the class
	GoneBefore *When      `json:"budget_gone_before"`
	Gone       *When      `json:"budget_gone_after"`
	IdleFloor  Number     `json:"idle_floor"` // after: bad share on an idle replica
	Worse      bool       `json:"worse"`      // beyond chance at the family-wise level
	Rule       string     `json:"rule"`

	diffs       []float64 // of the bad share, per replication
	window      clock.Duration
	adaptive    bool // the threshold moves
	unprojected bool // the run is too short to say what becomes of the budget after it
}

// When is an instant of the experiment.
type When struct {
	S    Number `json:"t_s"`
	Text string `json:"when"`
}

// compareSLO pairs objective k of the change's world with the base's.
func compareSLO(before, after *world, k int) SLO {
	o := after.e.SLOs[k]
	allowed := 1 - o.Target
	out := SLO{Name: o.Name, Class: o.Class, Metric: o.Metric, Threshold: Number(o.Threshold.Seconds()), Allowed: Number(allowed), Status: after.status(k), window: o.Window}
	out.IdleFloor = Number(math.NaN())
	if f := after.reps[0].SLOs[k].IdleFloor; f.R > 0 {
		out.IdleFloor = Number(f.V)
	}
	out.Gone = gone(after, k)
	out.adaptive = o.Adaptive != nil
	out.unprojected = after.reps[0].SLOs[k].Budget.Needs != ""
	bad, spent, quantile := after.badShares(k), after.each(spentOf(k)), after.each(quantileOf(k))
	b := sloLike(before.e, after.e, k)
	if b < 0 {
		none := make([]float64, len(bad))
		for i := range none {
			none[i] = math.NaN()
		}
		out.New = true
		out.Bad, out.Spent, out.Quantile = pair(none, bad), pair(none, spent), pair(none, quantile)
		out.Burn = scaled(out.Bad, 1/allowed)
		return out
	}
	out.Before = before.status(b)
	out.GoneBefore = gone(before, b)
	base := before.badShares(b)
	for i := range bad {
		out.diffs = append(out.diffs, bad[i]-base[i])
	}
	out.Bad = pair(base, bad)
	out.Burn = scaled(out.Bad, 1/allowed)
	out.Spent = pair(before.each(spentOf(b)), spent)
	out.Quantile = pair(before.each(quantileOf(b)), quantile)
	return out
}

func scaled(p Paired, by float64) Paired {
	s := func(e Estimate) Estimate { return Estimate{e.V * Number(by), e.Lo * Number(by), e.Hi * Number(by)} }
	return Paired{s(p.Before), s(p.After), s(p.Diff)}
}

func spentOf(k int) func(*sim.Result) float64 {
	return func(r *sim.Result) float64 { return r.SLOs[k].Budget.Spent.V }
}

// quantileOf is the quantile that objective k is about, of the cohort that it judges
// where it judges one; NaN where a run does not keep it.
func quantileOf(k int) func(*sim.Result) float64 {
	return func(r *sim.Result) float64 {
		o := r.SLOs[k].Objective
		name := "all"
		switch {
		case len(o.Only) == 1:
			name = o.Only[0]
		case len(o.Only) > 1:
			return math.NaN()
		case len(o.Exclude) > 0:
			name = "existing"
		}
		c := cohort(r, o.Class, name)
		if c == nil || c.N == 0 {
			return math.NaN()
		}
		var d *sim.Distribution
		switch o.Metric {
		case slo.TTFT:
			d = &c.TTFT
		case slo.TPOT:
			d = &c.TPOT
		case slo.E2E:
			d = &c.E2E
		default:
			return math.NaN()
		}
		return atTarget(d, o.Target)
	}
}

// atTarget picks the quantile of a target share.
func atTarget(d *sim.Distribution, target float64) float64 {
	switch target {
	case .5:
		return d.P50.V
	case .9:
		return d.P90.V
	case .95:
		return d.P95.V
	case .99:
		return d.P99.V
	case .999:
		return d.P999.V
	}
	return math.NaN()
}

// gone is when the whole budget is spent, the mean over replications; nil when most
// do not reach it.
func gone(w *world, k int) *When {
	sum, n := 0.0, 0
	for _, r := range w.reps {
		for _, m := range r.SLOs[k].Budget.Marks {
			if m.Percent == 100 && m.Reached {
				sum += m.At.Seconds()
				n++
			}
		}
	}
	if 2*n <= len(w.reps) {
		return nil
	}
	at := clock.Time(clock.FromSeconds(sum / float64(n)))
	return &When{Number(at.Seconds()), at.DayHour(w.e.Start)}
}

// Class is one class or cohort in both worlds, in the last phase. The same requests
// form a cohort in either world.
type Class struct {
	Class  string `json:"class"`
	Cohort string `json:"cohort"`
	N      int64  `json:"n"` // after, all replications
	P50    Paired `json:"ttft_p50_s"`
	P99    Paired `json:"ttft_p99_s"`
	TPOT   Paired `json:"tpot_p50_s"`
	E2E    Paired `json:"e2e_p99_s"`
	Rate   Paired `json:"answered_per_s"`
	Failed Paired `json:"not_ok_share"`
	Hurt   string `json:"hurt"` // "worse", "better" or "same" by TTFT P99; "new" without one before
}

func compareClasses(before, after *world) []Class {
	var out []Class
	last := after.reps[0].Phases[len(after.reps[0].Phases)-1]
	for _, c := range last.Classes {
		class := c.Class
		if k := classLike(before.e, after.e, c.Class); k >= 0 {
			class = before.e.Traffic[k].Name
		}
		of := func(f func(*sim.ClassPhase) float64) Paired {
			return pair(before.of(class, c.Cohort, f), after.of(c.Class, c.Cohort, f))
		}
		line := Class{Class: c.Class, Cohort: c.Cohort,
			P50:  of(func(c *sim.ClassPhase) float64 { return c.TTFT.P50.V }),
			P99:  of(func(c *sim.ClassPhase) float64 { return c.TTFT.P99.V }),
			TPOT: of(func(c *sim.ClassPhase) float64 { return c.TPOT.P50.V }),
			E2E:  of(func(c *sim.ClassPhase) float64 { return c.E2E.P99.V }),
			Failed: of(func(c *sim.ClassPhase) float64 {
				o := c.Outcomes
				return float64(o.Rejected+o.TimedOut+o.Failed+o.Late) / float64(c.N)
			})}
		span := last.To.Sub(last.From).Seconds()
		line.Rate = of(func(c *sim.ClassPhase) float64 { return float64(c.Outcomes.OK) / span })
		for _, r := range after.reps {
			if x := cohort(r, c.Class, c.Cohort); x != nil {
				line.N += x.N
			}
		}
		switch {
		case math.IsNaN(float64(line.P99.Before.V)):
			line.Hurt = "new"
		case line.P99.Diff.Lo > 0:
			line.Hurt = "worse"
		case line.P99.Diff.Hi < 0:
			line.Hurt = "better"
		default:
			line.Hurt = "same"
		}
		out = append(out, line)
	}
	return out
}

// Band is the requests of one range of prompt lengths, of one class, in both worlds.
type Band struct {
	Class  string `json:"class"`
	From   Number `json:"from_tokens"`
	To     Number `json:"to_tokens"` // null = open
	Before int64  `json:"n_before"`
	After  int64  `json:"n_after"`
	P99    Paired `json:"ttft_p99_s"`
}

func compareBands(before, after *world) []Band {
	var out []Band
	for _, t := range after.e.Traffic {
		k := classLike(before.e, after.e, t.Name)
		if k < 0 {
			continue
		}
		old := before.e.Traffic[k].Name
		from := 0.0
		first := cohort(after.reps[0], t.Name, "all")
		if first == nil {
			continue
		}
		for i := range first.ByLength {
			b := Band{Class: t.Name, From: Number(from), To: Number(first.ByLength[i].UpTo)}
			from = first.ByLength[i].UpTo
			p99 := func(c *sim.ClassPhase) float64 {
				if c.ByLength[i].P99.R == 0 {
					return math.NaN()
				}
				return c.ByLength[i].P99.V
			}
			for j := range after.reps {
				if c := cohort(after.reps[j], t.Name, "all"); c != nil {
					b.After += c.ByLength[i].N
				}
				if c := cohort(before.reps[j], old, "all"); c != nil {
					b.Before += c.ByLength[i].N
				}
			}
			if b.P99 = pair(before.of(old, "all", p99), after.of(t.Name, "all", p99)); b.Before+b.After > 0 {
				out = append(out, b)
			}
		}
	}
	return out
}

// Cost is one thing that is paid for, over the span.
type Cost struct {
	What  string `json:"what"`
	Unit  string `json:"unit"`
	Value Paired `json:"value"`
}

func compareCost(before, after *world) []Cost {
	var out []Cost
	for _, c := range []struct {
		what, unit string
		of         func(*sim.PoolResult) float64
	}{
		{"GPUs", "", func(p *sim.PoolResult) float64 { return float64(p.GPUs) }},
		{"GPU-hours", "h", func(p *sim.PoolResult) float64 { return p.GPUHours }},
		{"cost per month", "$", func(p *sim.PoolResult) float64 { return p.USDPerMonth }},
		{"GPU energy", "kWh", func(p *sim.PoolResult) float64 { return p.EnergyKWh }},
	} {
		out = append(out, Cost{c.what, c.unit, pair(before.total(c.of), after.total(c.of))})
	}
	answered := func(w *world) []float64 {
		return w.each(func(r *sim.Result) float64 {
			n := 0.0
			for _, ph := range r.Phases[len(r.Phases)-1:] {
				for _, c := range ph.Classes {
					if c.Cohort == "all" {
						n += float64(c.Outcomes.OK) / ph.To.Sub(ph.From).Seconds()
					}
				}
			}
			return n
		})
	}
	out = append(out, Cost{"answered, last phase", "/s", pair(answered(before), answered(after))})
	for i := range after.e.Pools {
		peak := func(w *world, i int) []float64 {
			return w.each(func(r *sim.Result) float64 {
				if i >= len(r.Pools) || r.Pools[i].PeakLoad == 0 {
					return math.NaN()
				}
				return r.Pools[i].PeakLoad
			})
		}
		if b := poolLike(before.e, after.e, i); b >= 0 {
			out = append(out, Cost{fmt.Sprintf("peak load of pool %s", after.e.Pools[i].Name), "%", pair(peak(before, b), peak(after, i))})
		}
	}
	return out
}

// poolLike finds the pool that is pool i of the other experiment: by name, or by its
// place where there are as many.
func poolLike(in, other sim.Experiment, i int) int {
	for k := range in.Pools {
		if in.Pools[k].Name == other.Pools[i].Name {
			return k
		}
	}
	if len(in.Pools) == len(other.Pools) {
		return i
	}
	return -1
}

// seriesPair is what the page's chart shows: the class of the deciding objective.
type seriesPair struct {
	class         string
	t             []clock.Time
	before, after []float64 // TTFT P99, seconds, mean over replications
	beforeCurve   []sim.BudgetPoint
	afterCurve    []sim.BudgetPoint
	slo           string
}

func newSeriesPair(before, after *world) *seriesPair {
	class := after.e.Traffic[0].Name
	k := -1
	for i := range after.e.SLOs {
		if k < 0 || after.status(i) == sim.Missed && after.status(k) != sim.Missed {
			k = i
		}
	}
	s := &seriesPair{}
	if k >= 0 {
		class = after.e.SLOs[k].Class
		s.slo = after.e.SLOs[k].Name
		s.afterCurve = meanCurve(after, k)
		if b := sloLike(before.e, after.e, k); b >= 0 {
			s.beforeCurve = meanCurve(before, b)
		}
	}
	s.class, s.t = class, after.reps[0].Series.T
	s.after = meanSeries(after, class)
	if b := classLike(before.e, after.e, class); b >= 0 {
		s.before = meanSeries(before, before.e.Traffic[b].Name)
	}
	return s
}

// meanCurve averages budget curves where all replications have a point.
func meanCurve(w *world, k int) []sim.BudgetPoint {
	var out []sim.BudgetPoint
	for i, p := range w.reps[0].SLOs[k].Budget.Curve {
		sum := 0.0
		for _, r := range w.reps {
			if i >= len(r.SLOs[k].Budget.Curve) {
				return out
			}
			sum += r.SLOs[k].Budget.Curve[i].Spent
		}
		p.Spent = sum / float64(len(w.reps))
		out = append(out, p)
	}
	return out
}

func meanSeries(w *world, class string) []float64 {
	var out []float64
	for _, r := range w.reps {
		for _, c := range r.Series.Classes {
			if c.Class != class || c.Cohort != "all" {
				continue
			}
			if out == nil {
				out = make([]float64, len(c.TTFTP99))
			}
			for i, v := range c.TTFTP99 {
				if i < len(out) {
					out[i] += v / float64(len(w.reps))
				}
			}
		}
	}
	return out
}
