package review

import (
	"context"
	"math"
	"slices"

	"slosim/sim"
	"slosim/workloads"
)

// promises asks what further replicas buy: P99 of all, existing and new requests.
func (s *search) promises(ctx context.Context) {
	_, i := s.busiest()
	class, fresh := s.newcomers()
	if class == "" {
		class = s.after.e.SLOs[s.focus()].Class
	}
	for _, n := range []int{0, 1, 2, 4, 8} {
		e := s.after.e
		e.Pools = slices.Clone(e.Pools)
		e.Pools[i].Replicas += n
		w, err := s.look(ctx, e)
		if err != nil {
			s.untried("promises", err)
			return
		}
		p := Promise{Replicas: n}
		p.GPUs, p.USD = extra(s.after.e, e)
		p99 := func(name string) Number {
			return estimate(w.of(class, name, func(c *sim.ClassPhase) float64 { return c.TTFT.P99.V })).V
		}
		p.All, p.Existing, p.New = p99("all"), p99("existing"), p99(fresh)
		s.review.Promises = append(s.review.Promises, p)
	}
}

// canary asks what partial exposures would have shown.
func (s *search) canary(ctx context.Context) {
	if !slices.ContainsFunc(s.after.e.Changes, func(c workloads.Change) bool { return c.Share > 0 }) {
		return
	}
	k := s.focus()
	o := s.after.e.SLOs[k]
	class, fresh := s.newcomers()
	for _, share := range []float64{.01, .1, .5, 1} {
		e := s.after.e
		e.Changes = slices.Clone(e.Changes)
		for i := range e.Changes {
			e.Changes[i].Share *= share
		}
		w, err := s.look(ctx, e)
		if err != nil {
			s.untried("canary readings", err)
			return
		}
		p99 := func(name string) Number {
			return estimate(w.of(class, name, func(c *sim.ClassPhase) float64 { return c.TTFT.P99.V })).V
		}
		x := Exposure{Share: Number(share), SLO: o.Name, Bad: Number(w.bad(k).V), P99: p99("all"), NewP99: p99(fresh), Shows: "holds"}
		allowed := 1 - o.Target
		if float64(x.Bad) > allowed {
			x.Shows = "breaks"
		}
		last := w.reps[0].SLOs[k].Phases[judged(w.reps[0], k)]
		hours := w.reps[0].Experiment.Duration.Seconds() / 3600
		x.Minutes = Number(math.Ceil(60 * hoursToTell(float64(x.Bad), allowed, float64(last.Good+last.Bad)/hours)))
		s.review.Canary = append(s.review.Canary, x)
	}
}

// hoursToTell is after how many hours a 95 % binomial interval around a bad share
// excludes the allowed one; never before three bad requests were to be expected at
// the allowed share (the rule of three).
func hoursToTell(bad, allowed, perHour float64) float64 {
	const z = 1.959963984540054
	n := z * z * bad * (1 - bad) / ((bad - allowed) * (bad - allowed))
	return max(n, 3/allowed) / perHour
}
