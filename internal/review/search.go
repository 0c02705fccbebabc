package review

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/workloads"
)

// Numbers of replications by which seeds are told apart: searches run on the first,
// confirmations on these and the following.
const (
	confirmFrom = 1001
	confirmReps = 2
	fullFrom    = 2001
	fullReps    = 2

	searchWarmup = 10 * clock.Minute // of the searched hours: GPUs are warm and queues full by then
)

// search finds causes and levers on the busiest hours.
type search struct {
	lab           *lab
	text          Source
	before, after *world
	review        *Review

	at     clock.Time // start of the hours that are searched
	whole  bool       // they are the whole experiment
	tree   tree
	broken []int // objectives that the change's world does not meet

	mu sync.Mutex
}

// all fills causes, levers, promises and canary readings until ctx ends.
func (s *search) all(ctx context.Context) error {
	for k := range s.after.e.SLOs {
		if s.after.status(k) != sim.Met {
			s.broken = append(s.broken, k)
		}
	}
	if len(s.broken) == 0 || s.review.Verdict.Call == Pass {
		s.review.Notes = append(s.review.Notes, "The change breaks nothing: no cause or lever was looked for.")
		return nil
	}
	short, at, err := sim.Quick(s.after.e)
	switch {
	case errors.Is(err, sim.ErrNoQuick):
		s.whole = true
		s.review.Hours = "whole run, one replication"
	case err != nil:
		return err
	default:
		s.at = at
		s.review.Hours = "busiest two hours"
		if short.Duration < s.after.e.Duration {
			s.review.Hours = fmt.Sprintf("busiest two hours, from %s on", at.DayHour(s.after.e.Start))
		}
	}
	if s.tree, err = s.text.parse(); err != nil {
		return err
	}
	s.tree.absolute(s.text.Dir)

	list := s.candidates()
	found := make([]*Lever, len(list))
	jobs := []func(){func() { s.causes(ctx) }}
	for i := range list {
		jobs = append(jobs, func() {
			l, err := s.dose(ctx, &list[i])
			if err != nil {
				s.untried(list[i].name, err)
				return
			}
			l.rank = i
			found[i] = l
		})
	}
	inOrder(cap(s.lab.slots), append(jobs, func() { s.promises(ctx) }, func() { s.canary(ctx) }))
	found = append(found, s.pairs(ctx, list, found)...)
	for _, l := range found {
		if l != nil {
			s.review.Levers = append(s.review.Levers, *l)
		}
	}
	order(s.review.Levers)
	s.recommend(ctx)
	s.name()
	slices.Sort(s.review.NotTried)
	s.review.NotTried = append(s.review.NotTried, "canary pace and a later hour (they put the effect off; in the last phase nothing changes)")
	return nil
}

// inOrder starts jobs in order, n at a time: what a time limit cuts off comes last.
func inOrder(n int, jobs []func()) {
	next := make(chan func())
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for job := range next {
				job()
			}
		})
	}
	for _, job := range jobs {
		next <- job
	}
	close(next)
	wg.Wait()
}

// untried notes what could not be tried and why.
func (s *search) untried(what string, err error) {
	why := err.Error()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = "the time limit was reached"
	case errors.Is(err, context.Canceled):
		why = "interrupted"
	default: // an error of the loader has its place and what is allowed on further lines
		why, _, _ = strings.Cut(why, "\n")
		if _, after, ok := strings.Cut(why, "error: "); ok {
			why = after
		}
	}
	s.mu.Lock()
	s.review.NotTried = append(s.review.NotTried, what+" ("+why+")")
	s.mu.Unlock()
}

// hours returns the part of an experiment that is searched.
func (s *search) hours(e sim.Experiment) sim.Experiment {
	if s.whole {
		e.Replications = 1
		return e
	}
	e = sim.Window(e, s.at)
	e.Warmup = min(e.Warmup, searchWarmup)
	return e
}

// look simulates e's searched hours on the first seed.
func (s *search) look(ctx context.Context, e sim.Experiment) (*world, error) {
	e.Seed = s.after.e.Seed
	r, err := s.lab.one(ctx, s.hours(e))
	if err != nil {
		return nil, err
	}
	return &world{e, []*sim.Result{r}}, nil
}

// fresh simulates them on seeds that nothing was chosen by.
func (s *search) fresh(ctx context.Context, e sim.Experiment) (*world, error) {
	reps, err := s.lab.all(ctx, s.hours(e), confirmFrom, confirmFrom+confirmReps)
	return &world{e, reps}, err
}

// meets returns which broken objectives a world meets; of those that a lever leaves
// unanswered it asks nothing when answered is set.
func (s *search) meets(w *world, answered bool) []int {
	var out []int
	for _, k := range s.broken {
		o := &w.e.SLOs[k]
		ok := w.bad(k).V <= 1-o.Target
		if answered {
			name := "all"
			if len(o.Exclude) > 0 {
				name = "existing"
			} else if len(o.Only) > 0 {
				name = o.Only[0]
			}
			q := w.of(o.Class, name, func(c *sim.ClassPhase) float64 { return atTarget(&c.Answered, o.Target) })
			ok = estimate(q).V <= Number(o.Threshold.Seconds())
		}
		if ok {
			out = append(out, k)
		}
	}
	return out
}

// contains tells whether all of want are in got.
func contains(got, want []int) bool {
	for _, k := range want {
		if !slices.Contains(got, k) {
			return false
		}
	}
	return true
}

// dose finds the smallest dose of a lever that restores as many objectives as its
// largest one does, and confirms it on fresh seeds.
func (s *search) dose(ctx context.Context, c *candidate) (*Lever, error) {
	look := func(d int) (*world, error) {
		v, err := s.variant(c, d)
		if err != nil {
			return nil, err
		}
		if c.probe {
			if err := s.bearable(ctx, v.e); err != nil {
				return nil, err
			}
		}
		return s.look(ctx, v.e)
	}
	most := len(s.broken)
	if c.asFast {
		most -= s.beyondIdle()
	}
	best, goal, err := c.search(most, look, func(w *world) []int { return s.meets(w, c.sheds) })
	if err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		v, err := s.variant(c, best)
		if err != nil {
			return nil, err
		}
		confirm := s.fresh
		if len(goal) == 0 { // nothing to confirm
			confirm = s.look
		}
		w, err := confirm(ctx, v.e)
		if err != nil {
			return nil, err
		}
		ok := len(goal) > 0 && contains(s.meets(w, c.sheds), goal)
		if len(goal) == 0 || ok || tries == 3 || best == c.doses || c.scan {
			l := s.lever(c, v, w, goal, ok)
			l.dose = best
			return l, nil
		}
		best++
	}
}

// errOverloaded says that a deployment cannot serve the searched hours.
var errOverloaded = errors.New("overloaded")

// bearable returns an error if the closed form says that a pool is overloaded at the
// peak: nothing is to be learnt from watching its queue grow.
func (s *search) bearable(ctx context.Context, e sim.Experiment) error {
	e = s.hours(e)
	e.Seed, e.Duration, e.Warmup = s.after.e.Seed, min(e.Duration, 10*clock.Second), 0
	r, err := s.lab.one(ctx, e)
	if err != nil {
		return err
	}
	for _, p := range r.Pools {
		if p.PeakLoad > 1.05 {
			return fmt.Errorf("%w: pool %s at %s of saturation", errOverloaded, p.Name, percent(math.Round(p.PeakLoad*100)/100))
		}
	}
	return nil
}

// beyondIdle counts the broken objectives that too many requests miss even on an idle
// replica.
func (s *search) beyondIdle() int {
	n := 0
	for _, k := range s.broken {
		if o := &s.after.reps[0].SLOs[k]; o.IdleFloor.R > 0 && o.IdleFloor.V > 1-o.Target {
			n++
		}
	}
	return n
}

// search returns the dose, and the objectives that it restores on the first seed.
func (c *candidate) search(broken int, look func(int) (*world, error), meets func(*world) []int) (int, []int, error) {
	if c.scan {
		best, goal := 0, []int(nil)
		var impossible error
		for d := 1; d <= c.doses; d++ {
			w, err := look(d)
			if config.IsInput(err) || errors.Is(err, errOverloaded) { // a dose that cannot be
				impossible = err
				continue
			}
			if err != nil {
				return 0, nil, err
			}
			if best == 0 {
				best = d
			}
			if m := meets(w); len(m) > len(goal) {
				best, goal = d, m
			}
			if len(goal) >= broken && len(goal) > 0 {
				break
			}
		}
		if best == 0 {
			return 0, nil, impossible
		}
		return best, goal, nil
	}
	w, err := look(c.doses)
	if err != nil {
		return 0, nil, err
	}
	goal := meets(w)
	if len(goal) == 0 {
		return c.doses, nil, nil
	}
	low, high := 0, c.doses
	for high-low > 1 {
		mid := (low + high) / 2
		w, err := look(mid)
		if err != nil {
			return 0, nil, err
		}
		if contains(meets(w), goal) {
			high = mid
		} else {
			low = mid
		}
	}
	return high, goal, nil
}

// lever writes down what was found.
func (s *search) lever(c *candidate, v *variant, w *world, goal []int, ok bool) *Lever {
	basis := "fresh seeds, busiest two hours"
	if len(goal) == 0 {
		basis = "one seed, busiest two hours"
	}
	l := &Lever{Name: c.name, Asks: c.asks, Dose: v.label, Confirmed: ok && !c.sheds, Basis: basis, text: v.text, shed: c.sheds}
	for _, k := range s.broken {
		name := s.after.e.SLOs[k].Name
		if slices.Contains(goal, k) && (ok || c.sheds) {
			l.Restores = append(l.Restores, name)
		} else {
			l.Misses = append(l.Misses, name)
		}
	}
	if l.GPUs, l.USD = extra(s.after.e, v.e); c.unpriced {
		l.USD = Number(math.NaN())
	}
	s.measure(l, w)
	l.pass = l.Confirmed && len(l.Misses) == 0
	return l
}

// measure fills a lever's figures from a world.
func (s *search) measure(l *Lever, w *world) {
	l.SLOs = nil
	for k := range w.e.SLOs {
		l.SLOs = append(l.SLOs, LeverSLO{w.e.SLOs[k].Name, Number(w.bad(k).V), estimate(w.each(quantileOf(k))).V})
	}
	class, name := s.newcomers()
	l.NewP99 = Number(math.NaN())
	if name != "" {
		l.NewP99 = estimate(w.of(class, name, func(c *sim.ClassPhase) float64 { return c.TTFT.P99.V })).V
	}
	rejected := w.each(func(r *sim.Result) float64 {
		n, no := 0.0, 0.0
		for _, c := range r.Phases[len(r.Phases)-1].Classes {
			if c.Cohort == "all" {
				n += float64(c.N)
				no += float64(c.Outcomes.Rejected)
			}
		}
		return no / n
	})
	l.Rejected = estimate(rejected).V
}

// newcomers is the class and cohort of the requests that the change makes or moves;
// no cohort when there are none.
func (s *search) newcomers() (class, cohort string) {
	for _, c := range s.after.e.Changes {
		if c.Share > 0 {
			return c.Class, c.Name
		}
	}
	for _, c := range s.after.e.Traffic {
		if classLike(s.before.e, s.after.e, c.Name) < 0 {
			return c.Name, "all"
		}
	}
	return "", ""
}

// extra is what a variant holds more than the change: GPUs, and their price of 30
// days.
func extra(from, to sim.Experiment) (gpus int, usd Number) {
	for _, side := range []struct {
		e    sim.Experiment
		sign int
	}{{to, 1}, {from, -1}} {
		for _, p := range side.e.Pools {
			gpus += side.sign * p.GPUs()
			usd += Number(float64(side.sign*p.GPUs()) * p.GPUHourUSD * 24 * 30)
		}
	}
	return gpus, usd
}

// recommend picks the first lever that restores everything and runs it in full.
func (s *search) recommend(ctx context.Context) {
	for i := range s.review.Levers {
		l := &s.review.Levers[i]
		if !l.pass {
			continue
		}
		s.review.Recommended = l.Name
		e, err := s.full(l)
		if err != nil {
			s.untried("the recommended lever in full", err)
			return
		}
		reps, err := s.lab.all(ctx, e, fullFrom, fullFrom+min(fullReps, max(2, e.Replications)))
		if err != nil {
			s.untried("the recommended lever in full", err)
			return
		}
		w := &world{e, reps}
		met, within := true, true
		for _, k := range s.broken {
			met = met && w.status(k) == sim.Met
			within = within && w.bad(k).V <= 1-e.SLOs[k].Target
		}
		if within {
			s.measure(l, w)
			l.Basis = fmt.Sprintf("fresh seeds, in full, %d replications", len(reps))
			if l.Confirmed = met; !met {
				l.Basis += ": on the mean only, the interval reaches beyond what is allowed"
			}
			return
		}
		l.Confirmed, l.pass = false, false
		l.Basis = "nothing: in full, on fresh seeds, it does not hold"
		s.review.Recommended = ""
	}
}

// full is the experiment of a lever.
func (s *search) full(l *Lever) (sim.Experiment, error) {
	if l.text == "" {
		return sim.Experiment{}, errors.New("it has no experiment file")
	}
	t := Source{Name: s.text.Name, Dir: s.text.Dir, Text: l.text}
	tr, err := t.parse()
	if err != nil {
		return sim.Experiment{}, err
	}
	return s.text.load(tr)
}

// subject is a change with a share of requests, or a class that only the change's
// world has: what product and business can shape.
func (s *search) subject() (array, name string, c *workloads.Change, t *workloads.Class) {
	for i := range s.after.e.Changes {
		if x := &s.after.e.Changes[i]; x.Share > 0 {
			return "change", x.Name, x, nil
		}
	}
	for i := range s.after.e.Traffic {
		x := &s.after.e.Traffic[i]
		if classLike(s.before.e, s.after.e, x.Name) < 0 {
			return "traffic", x.Name, nil, x
		}
	}
	return "", "", nil, nil
}
