package planner

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// Choice is a setting and what it may be.
type Choice struct {
	Path   string // as --set takes it
	Values []string
}

// PlanSpec is what a plan may choose and must keep.
type PlanSpec struct {
	Pool       string // whose replicas are counted; "" = the first
	Choices    []Choice
	Prices     map[string]float64 // dollars per GPU hour, by the GPU's name as in Choices
	Most       int                // replicas
	Confidence float64            // that every SLO is met, one-sided over the seeds
	ByGPUs     bool               // fewest GPUs instead of least cost
	Spare      int                // replicas that may fail: 1 = N−1
	Redundancy float64            // factor on the replicas, ≥ 1
	Spike      float64            // factor on the traffic, ≥ 1
	NoPrices   bool               // leave out what other thresholds would cost

	// Load reads the experiment with overrides.
	Load func(sets ...string) (sim.Experiment, error)
	// Cut shortens what is simulated, or returns it as it is.
	Cut func(sim.Experiment) (sim.Experiment, error)
}

// Candidate is one combination of choices.
type Candidate struct {
	Name string
	Sets []string // without replicas

	Needs    int     // replicas that hold every SLO; 0 = none found
	Replicas int     // with redundancy and spares
	GPUs     int     // of all pools
	Cost     float64 // dollars per hour of all pools
	Status   string  // "best", "holds", "pruned", "fails"
	Why      string
	P99      stats.Estimate // TTFT of the first TTFT objective's class, with Needs replicas
	Binding  string         // objective that fails first with a replica fewer

	base   sim.Experiment
	pool   int
	bound  int // analytic: fewer replicas are overloaded
	lo, hi int
	next   int
	step   int
	tried  map[int]*Point
}

// Trial is one fleet that was simulated: the ledger of a plan.
type Trial struct {
	Candidate string
	Replicas  int
	Cost      float64
	Holds     bool
	Binding   string
	Attained  float64
	P99       stats.Estimate
	Front     bool // on the Pareto front of cost against P99
}

// Price is what another threshold would cost.
type Price struct {
	Threshold float64 // seconds
	Replicas  int     // 0 = none holds
	Cost      float64
}

// Plan is the cheapest deployment that meets every SLO.
type Plan struct {
	Spec       PlanSpec
	Experiment sim.Experiment
	Candidates []*Candidate
	Best       *Candidate // nil = none
	Trials     []Trial
	Fresh      []Trial // of the best, on seeds that the search did not see
	Prices     []Price
	PriceOf    string // the objective that Prices are about
	Sims       int
}

// MakePlan searches.
func MakePlan(ctx context.Context, spec PlanSpec, o Options) (*Plan, error) {
	e, err := spec.Load()
	if err != nil {
		return nil, err
	}
	if len(e.SLOs) == 0 {
		return nil, inputErrorf("the experiment has no [[slo]]: there is nothing to plan for")
	}
	p := &planning{spec: spec, lab: newLab(o), plan: &Plan{Spec: spec, Experiment: e}}
	if err := p.candidates(); err != nil {
		return nil, err
	}
	for _, do := range []func(context.Context) error{p.bounds, p.race, p.confirm, p.prices} {
		if err := do(ctx); err != nil {
			return nil, err
		}
	}
	p.ledger()
	p.plan.Sims = p.lab.sims
	return p.plan, nil
}

type planning struct {
	spec PlanSpec
	lab  *lab
	plan *Plan
}

// candidates is the product of the choices; what cannot be deployed is kept with the
// reason.
func (p *planning) candidates() error {
	combos := [][]string{nil}
	if err := p.spec.check(); err != nil {
		return err
	}
	var undeployable []error
	for _, c := range p.spec.Choices {
		var next [][]string
		for _, combo := range combos {
			for _, v := range c.Values {
				next = append(next, append(slices.Clone(combo), c.Path+"="+v))
			}
		}
		if combos = next; len(combos) > 1000 {
			return inputErrorf("more than 1,000 candidates: shorten the lists")
		}
	}
	for _, sets := range combos {
		c := &Candidate{Sets: sets, Name: shortName(sets), tried: map[int]*Point{}}
		p.plan.Candidates = append(p.plan.Candidates, c)
		for _, s := range sets {
			path, v, _ := strings.Cut(s, "=")
			if price, ok := p.spec.Prices[v]; ok && strings.HasSuffix(path, ".gpu") {
				c.Sets = append(slices.Clone(c.Sets), strings.TrimSuffix(path, "gpu")+fmt.Sprintf("gpu_hour_usd=%g", price))
			}
		}
		e, err := p.spec.Load(c.Sets...)
		if err == nil && p.spec.Cut != nil {
			e, err = p.spec.Cut(e)
		}
		if err != nil {
			c.Status, c.Why = "fails", firstLine(err)
			undeployable = append(undeployable, err)
			continue
		}
		if c.pool = slices.IndexFunc(e.Pools, func(x sim.Pool) bool { return x.Name == p.spec.Pool || p.spec.Pool == "" }); c.pool < 0 {
			return inputErrorf("there is no pool %q", p.spec.Pool)
		}
		c.base = scaled(e, math.Max(1, p.spec.Spike))
		c.base.Title = c.Name
	}
	if len(undeployable) == len(combos) { // a typing error, most likely: there is nothing to simulate
		return &InputError{undeployable[0]}
	}
	return nil
}

// check refuses choices that contradict each other or the search, and prices that
// nothing would pay.
func (s *PlanSpec) check() error {
	seen, gpus := map[string]bool{}, map[string]bool{}
	for _, c := range s.Choices {
		switch {
		case seen[c.Path]:
			return inputErrorf("%s is chosen twice: give all its values in one list", c.Path)
		case s.Pool != "" && c.Path == "pool."+s.Pool+".replicas":
			return inputErrorf("%s is what the plan looks for: bound it with --max-replicas, or count another pool with --pool", c.Path)
		}
		seen[c.Path] = true
		values := map[string]bool{}
		for _, v := range c.Values {
			if values[v] {
				return inputErrorf("%s: %s is there twice", c.Path, v)
			}
			values[v] = true
			gpus[v] = gpus[v] || strings.HasSuffix(c.Path, ".gpu")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Prices)) {
		if !gpus[name] {
			return inputErrorf("--price %s=%g: no candidate has this GPU; name it in --gpu, spelled the same", name, s.Prices[name])
		}
	}
	return nil
}

func shortName(sets []string) string {
	var parts []string
	for _, s := range sets {
		path, v, _ := strings.Cut(s, "=")
		parts = append(parts, strings.ReplaceAll(path[strings.LastIndex(path, ".")+1:], "tensor_parallel", "tp")+" "+v)
	}
	if parts == nil {
		return "as it is"
	}
	return strings.Join(parts, ", ")
}

func firstLine(err error) string {
	text := err.Error()
	if i := strings.Index(text, "error: "); i >= 0 {
		text = text[i+len("error: "):]
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// scaled multiplies all rates.
func scaled(e sim.Experiment, factor float64) sim.Experiment {
	if factor == 1 {
		return e
	}
	e.Traffic = slices.Clone(e.Traffic)
	for i := range e.Traffic {
		e.Traffic[i].Rate.Mean *= factor
		e.Traffic[i].Rate.Add = slices.Clone(e.Traffic[i].Rate.Add)
		for k := range e.Traffic[i].Rate.Add {
			e.Traffic[i].Rate.Add[k].Mean *= factor
		}
	}
	return e
}

// with returns the candidate's experiment with so many replicas.
func (c *Candidate) with(n int) sim.Experiment {
	e := c.base
	e.Pools = slices.Clone(e.Pools)
	e.Pools[c.pool].Replicas = n
	return e
}

// cost is dollars per hour, or GPUs where those count, of all pools.
func (p *planning) cost(c *Candidate, n int) float64 {
	gpus, usd := bill(c.with(n))
	if p.spec.ByGPUs {
		return float64(gpus)
	}
	return usd
}

func bill(e sim.Experiment) (gpus int, usdPerHour float64) {
	for _, x := range e.Pools {
		gpus += x.GPUs()
		usdPerHour += float64(x.GPUs()) * x.GPUHourUSD
	}
	return gpus, usdPerHour
}

// bounds computes the fluid bound of every candidate: below nine tenths of it a fleet
// is overloaded and is not simulated. It also finds objectives that not even an idle
// replica keeps.
func (p *planning) bounds(ctx context.Context) error {
	var list []sim.Experiment
	var owner []*Candidate
	for _, c := range p.plan.Candidates {
		if c.Status == "" {
			e := c.with(1)
			e.Duration, e.Warmup, e.Replications = min(e.Duration, 10e9), 0, 1
			e.Traffic = scaled(e, 1e-3).Traffic
			list, owner = append(list, e), append(owner, c)
		}
	}
	points, err := p.lab.run(ctx, "bounds", list)
	if err != nil {
		return err
	}
	for i, x := range points {
		c := owner[i]
		if x.Err != nil {
			c.Status, c.Why = "fails", firstLine(x.Err)
			continue
		}
		c.bound = 1
		if s := x.Runs[0].Pools[c.pool].SaturationRate; s > 0 && len(c.base.Changes) == 0 {
			rate := 0.0
			for _, t := range c.base.Traffic {
				if served := c.base.Pools[c.pool].Classes; len(served) == 0 && len(c.base.Pools) == 1 || slices.Contains(served, t.Name) {
					rate += meanRate(&t.Rate)
				}
			}
			c.bound = max(1, int(math.Ceil(.9*rate/s)))
		}
		if c.bound > p.spec.Most {
			c.Status, c.Why = "fails", fmt.Sprintf("fewer than %d replicas are overloaded, and %d is the most allowed", c.bound, p.spec.Most)
			continue
		}
		c.lo, c.next, c.step = c.bound-1, c.bound, 1
		for _, s := range x.Runs[0].SLOs {
			if s.IdleFloor.R > 0 && s.IdleFloor.V > 1-s.Target {
				c.Status, c.Why = "fails", fmt.Sprintf("%s: %.2g %% of the requests miss it on an idle replica: more GPUs do not help", s.Name, 100*s.IdleFloor.V)
			}
		}
	}
	return nil
}

// race searches all candidates side by side and drops those whose cheapest open fleet
// costs more than one that is known to hold.
func (p *planning) race(ctx context.Context) error {
	for {
		p.prune()
		var list []sim.Experiment
		var owner []*Candidate
		for _, c := range p.plan.Candidates {
			if c.Status == "" {
				list, owner = append(list, c.with(c.next)), append(owner, c)
			}
		}
		if list == nil {
			return nil
		}
		points, err := p.lab.run(ctx, "candidates", list)
		if err != nil {
			return err
		}
		for i, x := range points {
			p.learn(owner[i], x)
		}
	}
}

// learn takes a simulated fleet into the candidate's bracket.
func (p *planning) learn(c *Candidate, x *Point) {
	if x.Err != nil {
		c.Status, c.Why = "fails", firstLine(x.Err)
		return
	}
	c.tried[c.next] = x
	if ok, binding := x.meets(p.spec.Confidence); ok {
		c.hi = c.next
	} else {
		c.lo, c.Binding = c.next, binding
	}
	switch {
	case c.hi == 0 && c.lo >= p.spec.Most:
		c.Status, c.Why = "fails", fmt.Sprintf("not with %s: %s", several(c.lo, "replica", "replicas"), c.Binding)
	case c.hi == 0:
		c.next = min(c.lo+c.step, p.spec.Most)
		c.step *= 2
	case c.hi-c.lo <= 1:
		p.settle(c)
	default:
		c.next = (c.lo + c.hi) / 2
	}
}

// settle fixes what the candidate costs.
func (p *planning) settle(c *Candidate) {
	c.Needs, c.Status = c.hi, "holds"
	c.Replicas = max(int(math.Ceil(float64(c.Needs)*math.Max(1, p.spec.Redundancy)-1e-9)), c.Needs+p.spec.Spare)
	c.GPUs, c.Cost = bill(c.with(c.Replicas))
	c.P99 = c.tried[c.Needs].of(func(r *sim.Result) float64 { return firstP99(r) })
}

// extra is the fleet that needs n replicas, as it is bought.
func (p *planning) extra(n int) int {
	return max(int(math.Ceil(float64(n)*math.Max(1, p.spec.Redundancy)-1e-9)), n+p.spec.Spare)
}

func (p *planning) prune() {
	best := math.Inf(1)
	for _, c := range p.plan.Candidates {
		if c.Status == "holds" || c.hi > 0 && c.Status == "" {
			best = min(best, p.cost(c, p.extra(c.hi)))
		}
	}
	for _, c := range p.plan.Candidates {
		if c.Status == "" && p.cost(c, p.extra(c.lo+1)) > best*(1+1e-12) {
			c.Status, c.Why = "pruned", fmt.Sprintf("at least %s: dearer than what holds already", several(c.lo+1, "replica", "replicas"))
		}
	}
}

// meets tells whether every objective is met with a confidence, one-sided by
// Student's t over the seeds, and names the tightest.
func (p *Point) meets(confidence float64) (ok bool, binding string) {
	ok, least := true, math.Inf(1)
	for i, o := range p.objectives() {
		low := p.lowest(i, confidence)
		slack := (low - o.Target) / (1 - o.Target)
		if !(slack >= 0) {
			ok = false
		}
		if slack < least || math.IsNaN(slack) {
			least, binding = slack, o.Name
		}
	}
	return ok, binding
}

// lowest is the lower confidence bound of an objective's attained share.
func (p *Point) lowest(i int, confidence float64) float64 {
	var shares []float64
	for _, r := range p.Runs {
		ph := r.SLOs[i].Phases[len(r.SLOs[i].Phases)-1]
		if n := ph.Good + ph.Bad; n > 0 {
			shares = append(shares, float64(ph.Good)/float64(n))
		}
	}
	e := stats.Of(shares, 0)
	if e.R < 2 || e.Hi == e.Lo {
		return e.V
	}
	return e.V - (e.Hi-e.V)/stats.T975(e.R-1)*studentsT(confidence, e.R-1)
}

// firstP99 is TTFT P99 of the class of the first TTFT objective, or of the first class.
func firstP99(r *sim.Result) float64 {
	for _, s := range r.SLOs {
		if s.Metric != slo.TTFT {
			continue
		}
		for _, c := range last(r).Classes {
			if c.Class == s.Class && c.Cohort == "all" {
				return c.TTFT.P99.V
			}
		}
	}
	return class(r).TTFT.P99.V
}

// confirm simulates the best on fresh seeds: the fleet was chosen because the seeds of
// the search liked it. While it fails there, it gets one replica more.
func (p *planning) confirm(ctx context.Context) error {
	for range 8 {
		best := p.cheapest()
		if best == nil {
			return nil
		}
		e := best.with(best.Needs)
		e.Seed = rng.Derive(e.Seed, 7919)
		points, err := p.lab.run(ctx, "fresh seeds", []sim.Experiment{e})
		if err != nil {
			return err
		}
		x := points[0]
		if x.Err != nil {
			return x.Err
		}
		t := p.trial(best, best.Needs, x)
		p.plan.Fresh = append(p.plan.Fresh, t)
		if t.Holds || best.Needs >= p.spec.Most {
			best.Status = "best"
			p.plan.Best = best
			return nil
		}
		best.Needs++
		points, err = p.lab.run(ctx, "one replica more", []sim.Experiment{best.with(best.Needs)})
		if err != nil {
			return err
		}
		best.tried[best.Needs], best.hi, best.Binding = points[0], best.Needs, t.Binding
		p.settle(best)
	}
	return nil
}

func (p *planning) cheapest() *Candidate {
	var best *Candidate
	for _, c := range p.plan.Candidates {
		if c.Status == "holds" && (best == nil || p.cost(c, c.Replicas) < p.cost(best, best.Replicas)) {
			best = c
		}
	}
	return best
}

// prices searches the best candidate again with other thresholds of the objective
// that binds.
func (p *planning) prices(ctx context.Context) error {
	best := p.plan.Best
	if best == nil || p.spec.NoPrices {
		return nil
	}
	k := slices.IndexFunc(best.base.SLOs, func(o slo.Objective) bool { return o.Name == best.Binding && o.Threshold > 0 })
	if k < 0 {
		k = slices.IndexFunc(best.base.SLOs, func(o slo.Objective) bool { return o.Threshold > 0 })
	}
	if k < 0 {
		return nil
	}
	p.plan.PriceOf = best.base.SLOs[k].Name
	for _, factor := range []float64{.5, .75, 1, 1.5, 2} {
		c := &Candidate{Name: best.Name, base: best.base, pool: best.pool, lo: best.bound - 1, next: best.Needs, step: 1, tried: map[int]*Point{}}
		c.base.SLOs = slices.Clone(c.base.SLOs)
		o := &c.base.SLOs[k]
		o.Threshold = clock.FromSeconds(o.Threshold.Seconds() * factor)
		for c.Status == "" {
			points, err := p.lab.run(ctx, "price of the SLO", []sim.Experiment{c.with(c.next)})
			if err != nil {
				return err
			}
			p.learn(c, points[0])
			if c.Status == "" && c.lo >= 8*best.Needs { // dear enough
				c.Status = "fails"
			}
		}
		p.plan.Prices = append(p.plan.Prices, Price{o.Threshold.Seconds(), c.Replicas, c.Cost})
	}
	return nil
}

func (p *planning) trial(c *Candidate, n int, x *Point) Trial {
	t := Trial{Candidate: c.Name, Replicas: n, Cost: p.cost(c, n), P99: x.of(firstP99), Attained: 1}
	t.Holds, t.Binding = x.meets(p.spec.Confidence)
	for i, o := range x.objectives() {
		if o.Name == t.Binding {
			t.Attained = x.attained(i)
		}
	}
	return t
}

// ledger lists every fleet that was simulated, and marks the Pareto front.
func (p *planning) ledger() {
	for _, c := range p.plan.Candidates {
		for _, n := range sortedInts(c.tried) {
			p.plan.Trials = append(p.plan.Trials, p.trial(c, n, c.tried[n]))
		}
	}
	for i := range p.plan.Trials {
		t := &p.plan.Trials[i]
		t.Front = !math.IsInf(t.P99.V, 0) && !slices.ContainsFunc(p.plan.Trials, func(o Trial) bool {
			return o.Cost <= t.Cost && o.P99.V <= t.P99.V && (o.Cost < t.Cost || o.P99.V < t.P99.V)
		})
	}
}

func sortedInts[V any](m map[int]V) []int {
	var keys []int
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
