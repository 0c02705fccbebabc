package planner

import (
	"context"
	"fmt"
	"math"

	"slosim/experiments"
	"slosim/internal/progress"
	"slosim/internal/queue"
	"slosim/internal/trials"
	"slosim/sim"
	"slosim/sim/rng"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// Options are how planning is carried out; they never change a result.
type Options struct {
	Queue    queue.Queue // who simulates; nil = goroutines
	Workers  int         // without Queue: simulations side by side
	Store    string      // folder of results, so that an interruption loses little
	Progress func(progress.State)
}

// Point is one deployment under one traffic: one result per seed.
type Point struct {
	Experiment sim.Experiment
	Runs       []*sim.Result
	Err        error
}

// lab simulates points; what it has seen it does not simulate again.
type lab struct {
	options  Options
	seen     map[string]*Point
	requests int64
	sims     int
}

func newLab(o Options) *lab { return &lab{options: o, seen: map[string]*Point{}} }

// run simulates the experiments, each once per seed of its replications.
func (l *lab) run(ctx context.Context, stage string, list []sim.Experiment) ([]*Point, error) {
	points := make([]*Point, len(list))
	var todo []trials.Trial
	var owner []*Point
	for i, e := range list {
		key := fmt.Sprintf("%s/%d/%d", experiments.Hash(e), e.Seed, e.Replications)
		if p := l.seen[key]; p != nil {
			points[i] = p
			continue
		}
		p := &Point{Experiment: e}
		l.seen[key], points[i] = p, p
		for r := range e.Replications {
			one := e
			one.Replications, one.Seed = 1, rng.Derive(e.Seed, r)
			todo = append(todo, trials.Trial{Name: fmt.Sprintf("%s, seed %d", e.Title, one.Seed), Experiment: one})
			owner = append(owner, p)
		}
	}
	o := trials.Options{Queue: l.options.Queue, Workers: l.options.Workers, Store: l.options.Store}
	if l.options.Progress != nil {
		o.Progress = func(p trials.Progress) {
			l.options.Progress(progress.State{Stage: stage, Done: p.Done, Total: p.Total, Unit: "simulations", Requests: l.requests + p.Requests, Known: p.Known, Failed: p.Failed})
		}
	}
	for i, out := range trials.Run(ctx, todo, o) {
		p := owner[i]
		if out.Err != nil {
			if p.Err == nil {
				p.Err = fmt.Errorf("%s: %w", out.Trial.Name, out.Err)
			}
			continue
		}
		if !out.Known {
			l.requests += out.Result.Requests
		}
		l.sims++
		p.Runs = append(p.Runs, out.Result)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return points, nil
}

// of returns the estimate of a figure over the seeds.
func (p *Point) of(f func(*sim.Result) float64) stats.Estimate {
	values, n := make([]float64, len(p.Runs)), int64(0)
	for i, r := range p.Runs {
		values[i] = f(r)
		n += counted(r)
	}
	return stats.Of(values, n)
}

func counted(r *sim.Result) int64 {
	n := int64(0)
	for _, c := range last(r).Classes {
		if c.Cohort == "all" {
			n += c.N
		}
	}
	return n
}

func last(r *sim.Result) *sim.Phase { return &r.Phases[len(r.Phases)-1] }

// class returns the first class of the last phase.
func class(r *sim.Result) *sim.ClassPhase {
	for i, c := range last(r).Classes {
		if c.Cohort == "all" {
			return &last(r).Classes[i]
		}
	}
	return &last(r).Classes[0]
}

// holds tells whether every objective of the last phase is met by all seeds
// together, and names the one that is furthest from it otherwise (or nearest, when
// all hold).
func (p *Point) holds() (ok bool, binding string) {
	ok, least := true, math.Inf(1)
	for i, o := range p.objectives() {
		share := p.attained(i)
		slack := (share - o.Target) / (1 - o.Target)
		if !(slack >= 0) {
			ok = false
		}
		if slack < least || math.IsNaN(slack) {
			least, binding = slack, o.Name
		}
	}
	return ok, binding
}

func (p *Point) objectives() []slo.Objective {
	var out []slo.Objective
	if len(p.Runs) == 0 {
		return nil
	}
	for _, s := range promised(p.Runs[0].SLOs) {
		out = append(out, s.Objective)
	}
	return out
}

// attained returns the share of good events of an objective in the last phase, all
// seeds together; NaN without events.
func (p *Point) attained(i int) float64 {
	var good, bad int64
	for _, r := range p.Runs {
		s := &r.SLOs[i]
		good += s.Phases[len(s.Phases)-1].Good
		bad += s.Phases[len(s.Phases)-1].Bad
	}
	if good+bad == 0 {
		return math.NaN()
	}
	return float64(good) / float64(good+bad)
}

// Figures of one run; those over time are means over the counted span.
func ttft(q func(*sim.Distribution) float64) func(*sim.Result) float64 {
	return func(r *sim.Result) float64 { return q(&class(r).TTFT) }
}
func tpot(q func(*sim.Distribution) float64) func(*sim.Result) float64 {
	return func(r *sim.Result) float64 { return q(&class(r).TPOT) }
}
func mean(d *sim.Distribution) float64 { return d.Mean.V }
func p50(d *sim.Distribution) float64  { return d.P50.V }
func p95(d *sim.Distribution) float64  { return d.P95.V }
func p99(d *sim.Distribution) float64  { return d.P99.V }

// concurrency is the mean number of requests running or waiting, whole cluster,
// sampled over time: not by Little's law, which it is to test.
func concurrency(r *sim.Result) float64 {
	total := 0.0
	for i, s := range r.Series.Pools {
		total += (average(s.Running, 0) + average(s.Waiting, 0)) * float64(r.Pools[i].Replicas)
	}
	return total
}

// running is the mean number of running requests per replica in the second half.
func running(r *sim.Result) float64 { return average(r.Series.Pools[0].Running, .5) }

// served is the mean rate of completions in the second half.
func served(r *sim.Result) float64 {
	total := 0.0
	for _, c := range r.Series.Classes {
		if c.Cohort == "all" {
			total += average(c.Completions, .5)
		}
	}
	return total
}

func queueShare(r *sim.Result) float64 {
	s := class(r).Stages
	return s.Queue.V / (s.Network.V + s.Queue.V + s.Prefill.V + s.Publish.V)
}

func waitMean(r *sim.Result) float64 { return class(r).Stages.Queue.V }

func peakLoad(r *sim.Result) float64 {
	l := r.Pools[0].Load
	return l[len(l)-1].MeanRate / l[len(l)-1].Saturation
}

// average is the mean of the values after a share of them, without NaN.
func average(values []float64, from float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values[int(float64(len(values))*from):] {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / float64(n)
}

// simultaneous widens a 95 % interval so that m of them hold together (Bonferroni).
func simultaneous(e stats.Estimate, m int) stats.Estimate {
	if e.R < 2 || m < 2 || math.IsInf(e.V, 0) {
		return e
	}
	factor := studentsT(1-.025/float64(m), e.R-1) / stats.T975(e.R-1)
	e.Lo, e.Hi = e.V-factor*(e.V-e.Lo), e.V+factor*(e.Hi-e.V)
	return e
}
