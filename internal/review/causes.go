package review

import (
	"context"
	"math"
	"slices"
	"sync"

	"slosim/models"
	"slosim/sim"
	"slosim/workloads"
)

// ablation takes one thing away from an experiment; it tells whether there was any.
type ablation struct {
	name, what string
	do         func(s *search, e *sim.Experiment) bool
}

// noQueueing is no cause but a bound.
const noQueueing = "no queueing"

var ablations = []ablation{
	{"no thermal limit", "neither heat nor the power cap lowers the clock", coolDown},
	{"unlimited KV memory", "16 times the KV blocks", moreKV},
	{"free all-reduce", "collectives between GPUs take no time", freeCollectives},
	{"no prefill interference", "long prompts on as many replicas of their own", separate},
	{"no bursts", "arrivals evenly spaced", steady},
	{"no failures", "no fault, wear or deployment", unbroken},
	{"instant cold start", "new replicas serve at once", instant},
	{noQueueing, "8 times the replicas: the rest no capacity mends", manyReplicas},
}

// eachPool calls f on copies of the pools.
func eachPool(e *sim.Experiment, f func(*sim.Pool)) {
	e.Pools = slices.Clone(e.Pools)
	for i := range e.Pools {
		f(&e.Pools[i])
	}
}

func coolDown(_ *search, e *sim.Experiment) bool {
	any := false
	eachPool(e, func(p *sim.Pool) {
		any = any || p.Thermal.Enabled
		g := &p.Deployment.GPU
		g.MaxTempC, g.MaxMemoryTempC = 1e6, 0
		g.TDPW *= 100 // the cap; power scales with TDP over reference
		g.Common.Power.ReferenceTDPW *= 100
	})
	return any
}

func moreKV(_ *search, e *sim.Experiment) bool {
	eachPool(e, func(p *sim.Pool) { p.Engine.KVBlocks = min(16*p.Engine.KVBlocks, 1<<26) })
	return true
}

func freeCollectives(_ *search, e *sim.Experiment) bool {
	any := false
	eachPool(e, func(p *sim.Pool) {
		any = any || p.Deployment.TP > 1
		free := models.AllReduce{AlphaUs: 1e-3, BusGBs: 1e9}
		p.Deployment.GPU.AllReduce = models.AllReduces{TP2: free, TP4: free, TP8: free}
	})
	return any
}

func separate(s *search, e *sim.Experiment) bool {
	border := int32(s.border())
	var long []sim.Pool
	eachPool(e, func(p *sim.Pool) {
		if p.Role != "" || p.MinPrompt+p.MaxPrompt > 0 {
			return
		}
		x := *p
		x.Name, x.MinPrompt = p.Name+"-long", border
		p.MaxPrompt = border
		long = append(long, x)
	})
	e.Pools = append(e.Pools, long...)
	return len(long) > 0
}

func steady(_ *search, e *sim.Experiment) bool {
	e.Traffic = slices.Clone(e.Traffic)
	any := false
	for i := range e.Traffic {
		t := &e.Traffic[i]
		if t.Trace != nil || t.Recorded != nil || t.Client.Users > 0 {
			continue
		}
		any = true
		t.Rate.Bursts, t.Rate.RandomBursts, t.Rate.Regimes, t.Rate.Hawkes = nil, workloads.RandomBursts{}, nil, workloads.Hawkes{}
		t.Rate.Burstiness = 1000
	}
	return any
}

func unbroken(_ *search, e *sim.Experiment) bool {
	any := len(e.Faults)+len(e.Rollouts) > 0
	e.Faults, e.Rollouts = nil, nil
	eachPool(e, func(p *sim.Pool) {
		any = any || p.Wear != sim.Wear{}
		p.Wear = sim.Wear{}
	})
	return any
}

func instant(_ *search, e *sim.Experiment) bool {
	any := false
	eachPool(e, func(p *sim.Pool) {
		if p.Autoscale != nil {
			a := *p.Autoscale
			any = any || a.StartUp > 0
			a.StartUp, a.WarmUp = 0, 0
			p.Autoscale = &a
		}
	})
	return any
}

func manyReplicas(_ *search, e *sim.Experiment) bool {
	eachPool(e, func(p *sim.Pool) { p.Replicas *= 8 })
	return true
}

// focus is the objective that causes are about: the one that decided the call, or
// the first that breaks.
func (s *search) focus() int {
	for k := range s.after.e.SLOs {
		if s.after.e.SLOs[k].Name == s.review.Verdict.SLO {
			return k
		}
	}
	return s.broken[0]
}

// causes runs the ablations.
func (s *search) causes(ctx context.Context) {
	k := s.focus()
	read := func(c *Cause, e sim.Experiment) error {
		w, err := s.look(ctx, e)
		if err != nil {
			return err
		}
		o := &e.SLOs[k]
		c.Bad = Number(w.bad(k).V)
		c.Burn = c.Bad / Number(1-o.Target)
		c.P99 = estimate(w.of(o.Class, "all", func(c *sim.ClassPhase) float64 { return c.TTFT.P99.V })).V
		return nil
	}
	with := Cause{Name: "with the change", What: "the launch as planned", Kind: "with", Explains: Number(math.NaN())}
	without := Cause{Name: "without the change", What: "the same hours before it", Kind: "without", Explains: Number(math.NaN())}
	if err := read(&with, s.after.e); err != nil {
		s.untried("ablations", err)
		return
	}
	base := s.before.e
	if b := sloLike(base, s.after.e, k); b >= 0 { // judged by the same objective in either world
		base.SLOs = s.after.e.SLOs
		if c := classLike(base, s.after.e, s.after.e.SLOs[k].Class); c < 0 || base.Traffic[c].Name != s.after.e.SLOs[k].Class || len(base.Changes) != len(s.after.e.Changes) {
			base.SLOs = nil
		}
	}
	known := base.SLOs != nil && read(&without, base) == nil

	type slot struct {
		cause Cause
		tried bool
		err   error
	}
	list := make([]slot, len(ablations)+1)
	var wg sync.WaitGroup
	all := s.after.e
	for i, a := range ablations {
		e := s.after.e
		if !a.do(s, &e) {
			continue
		}
		if a.name != noQueueing {
			a.do(s, &all)
		}
		x := &list[i]
		x.cause, x.tried = Cause{Name: a.name, What: a.what, Kind: "ablation"}, true
		if a.name == noQueueing {
			x.cause.Kind = "bound"
		}
		wg.Go(func() { x.err = read(&x.cause, e) })
	}
	together := &list[len(ablations)]
	together.cause, together.tried = Cause{Name: "all of these but queueing", What: "at once", Kind: "together"}, true
	wg.Go(func() { together.err = read(&together.cause, all) })
	wg.Wait()

	s.review.Causes = append(s.review.Causes, with)
	if known {
		s.review.Causes = append(s.review.Causes, without)
	}
	added := with.Bad
	if known {
		added -= without.Bad
	}
	for i := range list {
		x := &list[i]
		switch {
		case x.err != nil:
			s.untried("ablation "+x.cause.Name, x.err)
		case x.tried:
			if x.cause.Explains = (with.Bad - x.cause.Bad) / added; !(added > 0) {
				x.cause.Explains = Number(math.NaN())
			}
			s.review.Causes = append(s.review.Causes, x.cause)
		}
	}
	slices.SortStableFunc(s.review.Causes, func(a, b Cause) int {
		order := map[string]int{"with": 0, "without": 1, "ablation": 2, "together": 3, "bound": 4}
		if d := order[a.Kind] - order[b.Kind]; d != 0 || a.Kind != "ablation" {
			return d
		}
		switch {
		case a.Bad < b.Bad:
			return -1
		case a.Bad > b.Bad:
			return 1
		}
		return 0
	})
}
