package sim

import "slosim/sim/stats"

// oneRun holds intervals of a distribution from the batches of the only replication.
type oneRun struct {
	mean      stats.Section
	quantiles []stats.Section // of reportedQuantiles
}

var reportedQuantiles = []float64{.5, .9, .95, .99, .999}

// sections cuts the times of a view into batches of the run, and returns what gives
// them their intervals once the view is known; nil with several replications.
func (r *recorder) sections(groups []int, phase int) func(v *viewRep) {
	if r.plan.exp.Replications != 1 || r.plan.exp.MaxReplications > 1 {
		return nil
	}
	batches := func(sample func(c *cell) *stats.Sample) func(x *summary) {
		var list []*stats.Sample
		for _, g := range groups {
			list = append(list, sample(&r.cells[g][phase]))
		}
		b := stats.InBatches(list, reportedQuantiles)
		return func(x *summary) {
			w := &oneRun{}
			w.mean, w.quantiles = b.Around(x.mean*1e9, []float64{x.p50 * 1e9, x.p90 * 1e9, x.p95 * 1e9, x.p99 * 1e9, x.p999 * 1e9})
			x.within = w
		}
	}
	ttft := batches(func(c *cell) *stats.Sample { return &c.ttft })
	tpot := batches(func(c *cell) *stats.Sample { return &c.tpot })
	e2e := batches(func(c *cell) *stats.Sample { return &c.e2e })
	return func(v *viewRep) {
		ttft(&v.ttft)
		tpot(&v.tpot)
		e2e(&v.e2e)
		v.answered.within = v.ttft.within
	}
}

// put widens a distribution's estimates to the intervals.
func (w *oneRun) put(d *Distribution) {
	wide := func(e *stats.Estimate, s stats.Section) {
		if s.Batches > 0 && e.R == 1 {
			e.Lo, e.Hi, e.Batches = e.V-s.Half/1e9, e.V+s.Half/1e9, s.Batches
		}
	}
	wide(&d.Mean, w.mean)
	for i, e := range []*stats.Estimate{&d.P50, &d.P90, &d.P95, &d.P99, &d.P999} {
		wide(e, w.quantiles[i])
	}
}
