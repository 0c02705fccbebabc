package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"

	"slosim/internal/config"
	"slosim/internal/progress"
	"slosim/internal/queue"
	"slosim/internal/trials"
	"slosim/sim"
	"slosim/sim/rng"
	"slosim/sim/stats"
)

// Options are how a sweep is carried out; they never change a result.
type Options struct {
	Queue    queue.Queue // who simulates; nil = goroutines
	Store    string      // folder of results
	Progress func(progress.State)
}

// Plan is a sweep that has been checked: every point is an experiment.
type Plan struct {
	File       *File
	Base       sim.Experiment // without any point's settings
	Points     []Point
	Metrics    []Metric
	Seeds      []uint64
	Provenance config.Provenance
	sets       []string
}

// Prepare loads every point of a sweep; sets override settings of all points.
func Prepare(f *File, sets ...string) (*Plan, error) {
	p := &Plan{File: f, sets: sets}
	var err error
	if p.Base, p.Points, p.Provenance, err = f.points(sets); err != nil {
		return nil, err
	}
	if p.Metrics, err = f.metrics(&p.Base); err != nil {
		return nil, err
	}
	for i := range f.Seeds {
		p.Seeds = append(p.Seeds, rng.Derive(p.Base.Seed, i))
	}
	return p, nil
}

// Result is what a sweep found.
type Result struct {
	Plan     *Plan
	Values   [][][]float64 // [point][metric][seed]; NaN = none
	Failures []Failure
	Effects  []Effect
	Requests int64 // of all simulations, found ones too
}

// Failure is a simulation that could not be done.
type Failure struct {
	Point int
	Seed  uint64
	Text  string
}

// Run simulates every point on every seed. Simulations that fail leave a gap; anything
// else that goes wrong, such as a full disk, ends the sweep.
func Run(ctx context.Context, p *Plan, o Options) (*Result, error) {
	r := &Result{Plan: p, Values: make([][][]float64, len(p.Points))}
	var list []trials.Trial
	var at [][2]int // point, seed
	for i := range p.Points {
		r.Values[i] = make([][]float64, len(p.Metrics))
		for m := range p.Metrics {
			r.Values[i][m] = make([]float64, len(p.Seeds))
			for s := range p.Seeds {
				r.Values[i][m][s] = math.NaN()
			}
		}
		if p.Points[i].Invalid != "" {
			continue
		}
		for s, seed := range p.Seeds {
			e := p.Points[i].Experiment
			e.Seed, e.Replications, e.Precision, e.MaxReplications = seed, 1, 0, 0
			list = append(list, trials.Trial{Name: fmt.Sprintf("point %d, seed %d", i+1, seed), Experiment: e})
			at = append(at, [2]int{i, s})
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t := trials.Options{Queue: o.Queue, Store: o.Store}
	if o.Progress != nil {
		t.Progress = func(x trials.Progress) {
			o.Progress(progress.State{Stage: "sweep", Done: x.Done, Total: x.Total, Unit: "simulations", Requests: x.Requests, Known: x.Known, Failed: x.Failed})
		}
	}
	failed := make([]string, len(list))
	trials.Each(ctx, list, t, func(k int, out trials.Outcome) {
		var f *queue.Failure
		switch {
		case errors.As(out.Err, &f):
			failed[k] = f.Text
		case out.Err != nil:
			stop(out.Err)
		default:
			r.Requests += out.Result.Requests
			for m := range p.Metrics {
				r.Values[at[k][0]][m][at[k][1]] = p.Metrics[m].of(out.Result)
			}
		}
	})
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for k, text := range failed {
		if text != "" {
			r.Failures = append(r.Failures, Failure{at[k][0], p.Seeds[at[k][1]], text})
		}
	}
	r.effects()
	return r, nil
}

// Estimate is a metric at a point, over its seeds.
func (r *Result) Estimate(point, metric int) stats.Estimate {
	return stats.Of(r.Values[point][metric], 0)
}
