package review

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"slosim/internal/progress"
	"slosim/internal/queue"
	"slosim/internal/report"
	"slosim/sim"
	"slosim/sim/clock"
)

// Options are how a review is carried out.
type Options struct {
	Queue     queue.Queue   // who simulates; nil = goroutines
	Workers   int           // without Queue: simulations side by side
	Store     string        // folder of results; "" = nothing is remembered
	TimeLimit time.Duration // of the whole review; ablations and levers stop there; 0 = none
	Progress  func(progress.State)
	Material  float64 // burn-rate increase below which a worsening is not warned of; 0 = DefaultMaterial
	Chance    float64 // family-wise level; 0 = familyWise
	Levers    bool    // look for causes and levers
	Variance  int     // replications on which each lever shows what pairing gains; 0 = before and after only
	Version   string
	Command   string
	Incident  bool // it has happened: write a post-mortem, too
}

// DefaultMaterial is the increase of the burn rate (bad share ÷ allowed share) from
// which on a worsening counts. Assumption: a tenth of the budget's pace.
const DefaultMaterial = 0.1

// familyWise is the probability that a change without effect is called worse in any
// objective when the two worlds draw independently.
const familyWise = 0.02

// Review is the whole answer, as review.json has it.
type Review struct {
	Schema       string     `json:"schema"`
	Name         string     `json:"name"`
	Title        string     `json:"title"`
	Version      string     `json:"version"`
	Command      string     `json:"command"`
	Seed         uint64     `json:"seed"`
	Replications int        `json:"replications"`
	Paired       bool       `json:"common_random_numbers"`
	Verdict      Verdict    `json:"verdict"`
	Phase        string     `json:"phase"` // that is compared
	SLOs         []SLO      `json:"slos"`
	Classes      []Class    `json:"classes"`
	Bands        []Band     `json:"length_bands"`
	Cost         []Cost     `json:"cost"`
	Causes       []Cause    `json:"causes"`
	Why          []string   `json:"why"`
	Levers       []Lever    `json:"levers"`
	Recommended  string     `json:"recommended"` // name of a lever; "" = none needed or found
	Promises     []Promise  `json:"promises"`
	Canary       []Exposure `json:"canary"`
	Gains        []Gain     `json:"variance_ratios"`
	Hours        string     `json:"search_hours"` // that ablations and levers ran on
	NotTried     []string   `json:"not_tried"`
	Notes        []string   `json:"notes"`
	Requests     int64      `json:"simulated_requests"`
	start        clock.Duration
	series       *seriesPair
	span         clock.Time
	moments      []report.Moment
	after        *world
	material     float64
	chance       float64
	incidental   bool // told as a post-mortem, too
}

// Run reviews a change: base is the world without it.
func Run(ctx context.Context, base, change sim.Experiment, text Source, o Options) (*Review, error) {
	if o.Material == 0 {
		o.Material = DefaultMaterial
	}
	if o.Chance == 0 {
		o.Chance = familyWise
	}
	begun := time.Now()
	l := newLab(o)
	reps := min(base.Replications, change.Replications)
	before, after := &world{e: base}, &world{e: change}
	errs := make(chan error, 2)
	for _, w := range []*world{before, after} {
		go func() {
			var err error
			w.reps, err = l.all(ctx, w.e, 0, reps)
			errs <- err
		}()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		return nil, err
	}
	r := compareWorlds(before, after, o.Material, o.Chance)
	r.Version, r.Command, r.incidental = o.Version, o.Command, o.Incident
	if o.Levers {
		if o.TimeLimit > 0 {
			var stop func()
			ctx, stop = context.WithDeadline(ctx, begun.Add(o.TimeLimit))
			defer stop()
		}
		s := &search{lab: l, text: text, before: before, after: after, review: r}
		if err := s.all(ctx); err != nil {
			return nil, err
		}
		if o.Variance > 1 && len(r.Levers) > 0 {
			if err := s.variances(ctx, o.Variance); err != nil {
				s.untried("variance ratios of the levers", err)
			}
		}
	}
	r.Requests = l.requests.Load()
	return r, nil
}

// compareWorlds fills everything that the two worlds alone say.
func compareWorlds(before, after *world, material, chance float64) *Review {
	e := after.e
	r := &Review{
		Schema: "slosim.review/1", Name: e.Name, Title: e.Title, Seed: e.Seed, Replications: len(after.reps),
		Paired: before.e.Seed == e.Seed, start: e.Start, span: clock.Time(e.Duration),
		Phase: after.reps[0].Phases[len(after.reps[0].Phases)-1].Name, after: after, material: material, chance: chance,
	}
	if !r.Paired {
		r.Notes = append(r.Notes, fmt.Sprintf("The worlds have different seeds (%d and %d): differences are between independent draws, not paired by request.", before.e.Seed, e.Seed))
	}
	if len(after.reps) == 1 {
		r.Notes = append(r.Notes, "One replication: no intervals, and the verdict is about these requests only.")
	}
	for k := range e.SLOs {
		r.SLOs = append(r.SLOs, compareSLO(before, after, k))
	}
	for k := range before.e.SLOs {
		if sloLike(e, before.e, k) < 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("The objective %q exists only without the change.", before.e.SLOs[k].Name))
		}
	}
	r.Classes = compareClasses(before, after)
	r.Bands = compareBands(before, after)
	r.Cost = compareCost(before, after)
	for k := range e.SLOs {
		if text := after.reps[0].SLOs[k].BlameText; text != "" && r.SLOs[k].Status != sim.Met {
			r.Why = append(r.Why, e.SLOs[k].Name+": "+text+".")
		}
	}
	for _, o := range r.SLOs {
		if o.IdleFloor > o.Allowed {
			r.Why = append(r.Why, fmt.Sprintf("%s: %s of the requests miss it even on an idle replica, more than the %s allowed: no number of these replicas restores it.", o.Name, percent(float64(o.IdleFloor)), percent(float64(o.Allowed))))
		}
	}
	for _, f := range after.reps[0].Findings {
		r.Why = append(r.Why, strings.TrimSuffix(f.Title, ".")+". "+sentence(strings.TrimSuffix(f.Evidence, "."))+".")
	}
	r.series = newSeriesPair(before, after)
	for _, c := range e.Changes {
		if at, ok := r.startOf(c); ok {
			r.moments = append(r.moments, report.Moment{T: at, Name: c.Name})
		}
	}
	for k := range e.SLOs {
		if len(after.reps) > 1 && sloLike(before.e, e, k) >= 0 {
			r.Gains = append(r.Gains, gain(beforeAfter, "in full", before, after, k))
		}
	}
	r.Verdict = decide(r.SLOs, material, chance)
	return r
}
