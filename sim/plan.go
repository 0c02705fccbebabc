package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"slosim/engine"
	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// Bounds of a run's recording.
const (
	maxWindows      = 720
	fewWindows      = 72
	windowArrivals  = 400
	minCoolDown     = 60 * clock.Second
	monitorInterval = clock.Second

	// heatInterval is the span over which power is averaged before the power limit
	// acts on the clock: a fifth of a second. Assumption: an enforcement loop of that
	// order; over a whole second a burst of prefill lowers the clock too late, and the
	// residency runs' P99 is 9 % too short instead of 6 (docs/model.md)
	heatInterval = clock.Second / 5
)

// windowWidths are the widths a time window may have: the smallest that covers
// the span with maxWindows is taken.
var windowWidths = []clock.Duration{
	clock.Second, 2 * clock.Second, 5 * clock.Second, 10 * clock.Second, 15 * clock.Second, 30 * clock.Second,
	clock.Minute, 2 * clock.Minute, 3 * clock.Minute, 5 * clock.Minute, 6 * clock.Minute, 10 * clock.Minute,
	15 * clock.Minute, 20 * clock.Minute, 30 * clock.Minute, clock.Hour, 2 * clock.Hour, 3 * clock.Hour, 6 * clock.Hour, 12 * clock.Hour, clock.Day, clock.Week,
}

// plan is an experiment made ready to run: everything that replications share.
// It is immutable.
type plan struct {
	exp        Experiment
	phases     []phaseSpan
	groups     []group   // class by class: the class's own requests, then its cohorts
	groupOf    [][]int32 // [class][cohort id] → group
	width      clock.Duration
	windows    int
	coolDown   clock.Duration
	poolOf     []int32   // class → its first pool
	poolsOf    [][]int32 // class → the pools that serve it, by prompt range
	overflow   []int32   // pool → where it overflows to, or −1
	prefillOf  []int32   // class → pool that computes its prompts, or −1
	models     []models.StepModel
	replica    func(f *fleet, i int, seed uint64, g engine.Gaps) engine.Replica // makes an idle replica
	judgesGaps bool                                                             // some objective is on ITL
	lengths    []groupLengths                                                   // per group, compiled once: objectives ask thousands of times
	goals      []goals                                                          // per group
	served     func(Served)                                                     // told of every request that ends; nil = nobody listens
	onStep     func(pool int, b models.Batch, c models.Cost)                    // the same of every step
	skips      []map[string]bool                                                // per objective
	windowN    []float64                                                        // per objective: events its window holds; NaN without a closed form
	history    [][]float64                                                      // per objective: events in the m minutes before t = 0
}

// phaseSpan is one phase: sends in [from, to).
type phaseSpan struct {
	name     string
	from, to clock.Time
}

// group is a class's requests in no cohort, or one cohort of it.
type group struct {
	class  int32
	cohort int32 // 0, or 1 + index of the change
	name   string
}

func newPlan(e Experiment) (*plan, error) {
	p := &plan{exp: e, phases: phasesOf(e)}
	p.replica = p.newReplica
	if err := p.addPools(); err != nil {
		return nil, err
	}
	p.addGroups()
	p.addGoals()
	p.width = p.windowWidth()
	p.windows = int((e.Duration + p.width - 1) / p.width)
	p.coolDown = minCoolDown
	for _, o := range e.SLOs {
		p.coolDown = max(p.coolDown, 2*o.Longest())
	}
	return p, nil
}

// windowWidth returns the narrowest width that needs at most maxWindows windows
// and gives each enough arrivals for a P99 to mean something, as long as
// fewWindows are left.
func (p *plan) windowWidth() clock.Duration {
	span := p.exp.Duration
	arrivals := 0.0
	for c := range p.exp.Traffic {
		in := workloads.NewIntensity(&p.exp.Traffic[c], p.exp.Changes, p.exp.Start)
		arrivals += in.Expected(0, clock.Time(span))
	}
	for _, w := range windowWidths {
		full := arrivals*float64(w)/float64(span) >= windowArrivals
		if span <= w*maxWindows && (full || span < 2*w*fewWindows) {
			return w
		}
	}
	return windowWidths[len(windowWidths)-1]
}

// phasesOf cuts the span at the changes: before, ramp, after; with several
// changes the phases carry their names.
func phasesOf(e Experiment) []phaseSpan {
	end := clock.Time(e.Duration)
	phases := []phaseSpan{{name: "before", from: 0}}
	several := len(e.Changes) > 1
	add := func(kind string, c workloads.Change, at clock.Time) {
		last := &phases[len(phases)-1]
		if several {
			kind += " " + c.Name
		}
		if at <= last.from { // nothing in between: one phase with both names
			if last.name != "before" {
				kind = last.name + " + " + c.Name
			}
			last.name = kind
			return
		}
		phases = append(phases, phaseSpan{name: kind, from: at})
	}
	type border struct {
		kind string
		c    workloads.Change
		at   clock.Time
	}
	var borders []border
	for _, c := range e.Changes {
		at := clock.Time(c.At)
		if c.Ramp > 0 {
			borders = append(borders, border{"ramp", c, at})
		}
		borders = append(borders, border{"after", c, at.Add(c.Ramp)})
		if c.Until > 0 {
			borders = append(borders, border{"without", c, clock.Time(c.Until)})
		}
	}
	slices.SortStableFunc(borders, func(a, b border) int { return cmp.Compare(a.at, b.at) })
	for _, b := range borders {
		if b.at < end {
			add(b.kind, b.c, b.at)
		}
	}
	if len(phases) == 1 && phases[0].name == "before" {
		phases[0].name = "whole run"
	}
	for i := range phases {
		phases[i].to = end
		if i+1 < len(phases) {
			phases[i].to = phases[i+1].from
		}
	}
	return phases
}

func (p *plan) addPools() error {
	for i := range p.exp.Pools {
		to := slices.IndexFunc(p.exp.Pools, func(o Pool) bool { return o.Name == p.exp.Pools[i].OverflowTo })
		if p.exp.Pools[i].OverflowTo == "" {
			to = -1
		}
		p.overflow = append(p.overflow, int32(to))
		m, err := models.NewStepper(p.exp.Pools[i].Deployment)
		if err != nil {
			return fmt.Errorf("pool %q: %w", p.exp.Pools[i].Name, err)
		}
		var step models.StepModel = m
		if factors := p.slowness(i); len(factors) > 1 {
			step = slowed{m, factors}
		}
		p.models = append(p.models, step)
	}
	for _, c := range p.exp.Traffic {
		serves := func(prefill bool) int {
			return slices.IndexFunc(p.exp.Pools, func(pool Pool) bool {
				return !pool.Standby && pool.MinPrompt == 0 && pool.MaxPrompt == 0 && (pool.Role == "prefill") == prefill && (len(pool.Classes) == 0 || slices.Contains(pool.Classes, c.Name))
			})
		}
		k := serves(false)
		if k < 0 {
			k = slices.IndexFunc(p.exp.Pools, func(pool Pool) bool {
				return pool.MinPrompt+pool.MaxPrompt > 0 && (len(pool.Classes) == 0 || slices.Contains(pool.Classes, c.Name))
			})
		}
		if k < 0 {
			return fmt.Errorf("no pool serves class %q", c.Name)
		}
		p.poolOf = append(p.poolOf, int32(k))
		var list []int32
		for i, pool := range p.exp.Pools {
			if pool.Role == "" && (len(pool.Classes) == 0 || slices.Contains(pool.Classes, c.Name)) && (pool.MinPrompt > 0 || pool.MaxPrompt > 0) {
				list = append(list, int32(i))
			}
		}
		p.poolsOf = append(p.poolsOf, list)
		feeder := -1
		if p.exp.Pools[k].Role == "decode" {
			if feeder = serves(true); feeder < 0 {
				return fmt.Errorf("no prefill pool serves class %q, whose pool %q only decodes", c.Name, p.exp.Pools[k].Name)
			}
		}
		p.prefillOf = append(p.prefillOf, int32(feeder))
	}
	return nil
}

func (p *plan) addGroups() {
	for c, class := range p.exp.Traffic {
		ids := make([]int32, len(p.exp.Changes)+1)
		ids[0] = int32(len(p.groups))
		p.groups = append(p.groups, group{class: int32(c), name: "existing"})
		for k, ch := range p.exp.Changes {
			if ch.Class == class.Name && ch.Share > 0 {
				ids[k+1] = int32(len(p.groups))
				p.groups = append(p.groups, group{class: int32(c), cohort: int32(k + 1), name: ch.Name})
			}
		}
		p.groupOf = append(p.groupOf, ids)
	}
	for g := range p.groups {
		p.lengths = append(p.lengths, p.compile(g))
	}
}

func (p *plan) addGoals() {
	p.goals = make([]goals, len(p.groups))
	for k, o := range p.exp.SLOs {
		skip := map[string]bool{}
		for _, s := range o.Skip {
			skip[s] = true
		}
		p.skips = append(p.skips, skip)
		p.judgesGaps = p.judgesGaps || o.Metric == slo.ITL
		p.windowN = append(p.windowN, p.expected(o, 0, clock.Time(o.Window)))
		p.history = append(p.history, p.pastEvents(o))
		for g := range p.groups {
			if !p.counts(o, g) {
				continue
			}
			list := p.goals[g].list(o.Metric)
			*list = append(*list, int32(k))
			switch o.Metric {
			case slo.TPOT, slo.E2E, slo.Goodput, slo.Availability:
				p.goals[g].ends = true
			}
		}
	}
}

// pastEvents returns the expected events of an objective in the m minutes before
// t = 0, for m up to the longest alert window.
func (p *plan) pastEvents(o slo.Objective) []float64 {
	longest := clock.Duration(0)
	for _, pair := range o.Pairs() {
		longest = max(longest, pair.Long/clock.Minute, clock.Hour/clock.Minute)
	}
	past := make([]float64, longest+1)
	for m := clock.Duration(1); m <= longest; m++ {
		past[m] = past[m-1] + p.expected(o, clock.Time(-m*clock.Minute), clock.Time(-(m-1)*clock.Minute))
	}
	return past
}

// counts tells whether an objective counts a group's requests.
func (p *plan) counts(o slo.Objective, g int) bool {
	gr := p.groups[g]
	return p.exp.Traffic[gr.class].Name == o.Class &&
		(len(o.Only) == 0 || slices.Contains(o.Only, gr.name)) && !slices.Contains(o.Exclude, gr.name)
}

// classGroups returns the groups of a class in order.
func (p *plan) classGroups(class int) []int {
	var out []int
	for g := range p.groups {
		if int(p.groups[g].class) == class {
			out = append(out, g)
		}
	}
	return out
}

// shareOf returns the expected share of a class's requests at t that belong to a
// group: a request that two changes claim belongs to the later one.
func (p *plan) shareOf(g int, t clock.Time) float64 {
	gr := p.groups[g]
	share := 1.0
	name := p.exp.Traffic[gr.class].Name
	for k := len(p.exp.Changes) - 1; k >= 0; k-- {
		c := p.exp.Changes[k]
		if c.Class != name || c.Share == 0 {
			continue
		}
		join := c.Share * c.Progress(t)
		if int32(k+1) == gr.cohort {
			return share * join
		}
		share *= 1 - join
	}
	return share
}

// expected returns how many events of an objective arrive in [from, to), in
// closed form; NaN when a class's traffic has none (traces, closed loops).
func (p *plan) expected(o slo.Objective, from, to clock.Time) float64 {
	if o.Metric == slo.ITL { // tokens
		return math.NaN()
	}
	sum := 0.0
	events := make([]float64, len(p.groups)) // per request: a TPOT needs two tokens
	for g := range events {
		events[g] = 1
		if _, output, ok := p.lengthsOf(g); ok && o.Metric == slo.TPOT {
			events[g] = output.ShareAtLeast(2)
		}
		if p.counts(o, g) {
			events[g] *= p.bandShare(&o, g)
		}
	}
	for c := range p.exp.Traffic {
		class := &p.exp.Traffic[c]
		if class.Name != o.Class {
			continue
		}
		if class.Trace != nil || len(class.Recorded) > 0 || class.Client.Users > 0 {
			return math.NaN()
		}
		in := workloads.NewIntensity(class, p.exp.Changes, p.exp.Start)
		sum += in.ExpectedOf(from, to, func(t clock.Time) float64 {
			share := 0.0
			for _, g := range p.classGroups(c) {
				if p.counts(o, g) {
					share += p.shareOf(g, t) * events[g]
				}
			}
			return share
		})
	}
	return sum
}
