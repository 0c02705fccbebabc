package review

import (
	"math"
	"slices"

	"slosim/sim"
	"slosim/sim/stats"
	"slosim/workloads"
)

// world is an experiment and one result per replication.
type world struct {
	e    sim.Experiment
	reps []*sim.Result
}

// Without returns e's world before its launch: every change is there, so that phases
// and cohorts are the same, and has no effect.
func Without(e sim.Experiment) sim.Experiment {
	e.Changes = slices.Clone(e.Changes)
	for i := range e.Changes {
		e.Changes[i] = neutral(e.Changes[i])
	}
	e.Holds = nil // nothing is launched that a budget could hold back
	return e
}

func neutral(c workloads.Change) workloads.Change {
	c.RateFactor, c.Prompt, c.Output, c.OutputCap, c.System, c.Hit = 1, nil, nil, 0, nil, nil
	return c
}

// Aligned gives the base world the changes that only the other world has, without
// effect, so that the same requests form the same cohorts in the same phases.
func Aligned(base, change sim.Experiment) sim.Experiment {
	base.Changes = slices.Clone(base.Changes)
	for _, c := range change.Changes {
		if slices.ContainsFunc(base.Changes, func(b workloads.Change) bool { return b.Name == c.Name }) {
			continue
		}
		if k := classLike(base, change, c.Class); k >= 0 {
			c.Class = base.Traffic[k].Name
			base.Changes = append(base.Changes, neutral(c))
		}
	}
	slices.SortStableFunc(base.Changes, func(a, b workloads.Change) int { return int(min(max(a.At-b.At, -1), 1)) })
	return base
}

// classLike finds the class of one experiment that is the other's of that name: by
// its name, or by its random draws where it was renamed.
func classLike(in, other sim.Experiment, name string) int {
	if k := slices.IndexFunc(in.Traffic, func(c workloads.Class) bool { return c.Name == name }); k >= 0 {
		return k
	}
	k := slices.IndexFunc(other.Traffic, func(c workloads.Class) bool { return c.Name == name })
	if k < 0 {
		return -1
	}
	return slices.IndexFunc(in.Traffic, func(c workloads.Class) bool { return c.Stream == other.Traffic[k].Stream })
}

// sloLike finds the objective of one experiment that is objective k of the other: by
// its name, or by what it promises to whom where it was renamed.
func sloLike(in, other sim.Experiment, k int) int {
	want := other.SLOs[k]
	for i, o := range in.SLOs {
		if o.Name == want.Name {
			return i
		}
	}
	for i, o := range in.SLOs {
		c := classLike(in, other, want.Class)
		if c >= 0 && in.Traffic[c].Name == o.Class && o.Metric == want.Metric && o.Threshold == want.Threshold &&
			o.Target == want.Target && len(o.Only) == len(want.Only) && len(o.Exclude) == len(want.Exclude) {
			return i
		}
	}
	return -1
}

// judged is the last phase in which an objective has events.
func judged(r *sim.Result, k int) int {
	phases := r.SLOs[k].Phases
	for ph := len(phases) - 1; ph > 0; ph-- {
		if phases[ph].Good+phases[ph].Bad > 0 {
			return ph
		}
	}
	return 0
}

// badShares returns, per replication, the share of bad events of objective k in the
// last phase.
func (w *world) badShares(k int) []float64 {
	return w.each(func(r *sim.Result) float64 {
		p := r.SLOs[k].Phases[judged(r, k)]
		if p.Good+p.Bad == 0 {
			return math.NaN()
		}
		return float64(p.Bad) / float64(p.Good+p.Bad)
	})
}

// bad is the share of bad events of objective k in the last phase.
func (w *world) bad(k int) stats.Estimate {
	n := int64(0)
	for _, r := range w.reps {
		p := r.SLOs[k].Phases[judged(r, k)]
		n += p.Good + p.Bad
	}
	return stats.BadShare(w.badShares(k), n)
}

// status judges objective k as a run does.
func (w *world) status(k int) sim.Status {
	bad, allowed := w.bad(k), 1-w.e.SLOs[k].Target
	switch {
	case bad.R == 0:
		return sim.Undecided
	case bad.Hi <= allowed:
		return sim.Met
	case bad.Lo > allowed:
		return sim.Missed
	}
	return sim.Undecided
}

func (w *world) each(f func(*sim.Result) float64) []float64 {
	out := make([]float64, len(w.reps))
	for i, r := range w.reps {
		out[i] = f(r)
	}
	return out
}

// cohort finds a class or cohort of it in the last phase; nil when it has none.
func cohort(r *sim.Result, class, name string) *sim.ClassPhase {
	ph := &r.Phases[len(r.Phases)-1]
	for i := range ph.Classes {
		if c := &ph.Classes[i]; c.Class == class && c.Cohort == name {
			return c
		}
	}
	return nil
}

// of returns one value per replication of a cohort; NaN where it has none.
func (w *world) of(class, name string, f func(*sim.ClassPhase) float64) []float64 {
	return w.each(func(r *sim.Result) float64 {
		if c := cohort(r, class, name); c != nil && c.N > 0 {
			return f(c)
		}
		return math.NaN()
	})
}

// total sums a figure of all pools, per replication.
func (w *world) total(f func(*sim.PoolResult) float64) []float64 {
	return w.each(func(r *sim.Result) float64 {
		sum := 0.0
		for i := range r.Pools {
			sum += f(&r.Pools[i])
		}
		return sum
	})
}
