package planner

import (
	"context"
	"errors"
	"math"
	"slices"

	"slosim/models"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/workloads"
)

// totalRate is the mean rate of all classes, requests per second.
func totalRate(e *sim.Experiment) float64 {
	sum := 0.0
	for _, c := range e.Traffic {
		sum += meanRate(&c.Rate)
	}
	return sum
}

func meanRate(r *workloads.Rate) float64 {
	sum := r.Mean
	for i := range r.Add {
		sum += meanRate(&r.Add[i])
	}
	return sum
}

// ErrNoRate says that an experiment's traffic cannot be scaled.
var ErrNoRate = errors.New("its traffic has no rate that can be scaled")

// checkRates refuses traffic whose rate is not a number of the experiment.
func checkRates(e *sim.Experiment) error {
	for _, c := range e.Traffic {
		if c.Trace != nil || len(c.Recorded) > 0 || c.Client.Users > 0 || c.Rate.Requests > 0 {
			return inputErrorf("class %s: %w: it is a trace, users in a loop or a number of requests\n  give the class a rate, for example one that sim trace --fit writes", c.Name, ErrNoRate)
		}
	}
	if !(totalRate(e) > 0) {
		return &InputError{ErrNoRate}
	}
	return nil
}

// steady returns the experiment with constant rates, factor times the means, as the
// world is after all its changes, without faults and roll-outs. Burstiness stays.
func steady(e sim.Experiment, factor float64, duration, warmup clock.Duration) sim.Experiment {
	e.Traffic = slices.Clone(e.Traffic)
	for i := range e.Traffic {
		e.Traffic[i].Rate = constant(e.Traffic[i].Rate, factor)
	}
	e.Duration, e.Warmup = duration, warmup
	e.Faults, e.Rollouts = nil, nil
	var changes []workloads.Change
	for _, c := range e.Changes {
		if c.Until > 0 {
			continue
		}
		c.At, c.Ramp, c.Steps = -warmup, 0, nil
		changes = append(changes, c)
	}
	e.Changes = changes
	return e
}

func constant(r workloads.Rate, factor float64) workloads.Rate {
	out := workloads.Rate{Mean: r.Mean * factor, Shape: "constant", Burstiness: r.Burstiness, Hawkes: r.Hawkes, Clients: r.Clients}
	for _, a := range r.Add {
		out.Add = append(out.Add, constant(a, factor))
	}
	return out
}

// loadOf is the highest load of any pool of a result: mean rate ÷ saturation.
func loadOf(r *sim.Result) float64 {
	top := math.NaN()
	for _, p := range r.Pools {
		l := p.Load[len(p.Load)-1]
		if x := l.MeanRate / l.Saturation; math.IsNaN(top) || x > top {
			top = x
		}
	}
	return top
}

// saturationFactor is by how much the experiment's mean rates can be multiplied
// until its tightest pool is saturated, at the clock that it has then.
func (l *lab) saturationFactor(ctx context.Context, e sim.Experiment, duration, warmup clock.Duration) (float64, error) {
	factor := 1.0
	for pass := range 3 {
		probe := steady(e, factor, duration, warmup)
		probe.Replications = 1
		if pass == 0 {
			probe.Duration, probe.Warmup = 10*clock.Second, 0
			probe = steady(e, factor/totalRate(&e), 10*clock.Second, 0)
			probe.Replications = 1
		}
		points, err := l.run(ctx, "saturation", []sim.Experiment{probe})
		if err != nil {
			return 0, err
		}
		if points[0].Err != nil {
			return 0, points[0].Err
		}
		load := loadOf(points[0].Runs[0])
		if !(load > 0) || math.IsInf(load, 1) {
			return l.measuredSaturation(ctx, e)
		}
		at := factor
		if pass == 0 {
			at = factor / totalRate(&e)
		}
		factor = at / load
	}
	return factor, nil
}

// measuredSaturation is saturationFactor where there is no closed form (static batches,
// TGI, conversations): rates double, five minutes each after five of warm-up, until
// twice the rate is no longer answered by a quarter more.
func (l *lab) measuredSaturation(ctx context.Context, e sim.Experiment) (float64, error) {
	total := totalRate(&e)
	served := func(rate float64) (float64, error) {
		probe := steady(e, rate/total, 5*clock.Minute, 5*clock.Minute)
		probe.Replications = 1
		points, err := l.run(ctx, "saturation", []sim.Experiment{probe})
		if err != nil {
			return 0, err
		}
		if points[0].Err != nil {
			return 0, points[0].Err
		}
		return servedAll(points[0].Runs[0]), nil
	}
	before := 0.0
	for rate := 1.0; rate < 1e6; rate *= 2 {
		now, err := served(rate)
		if err != nil {
			return 0, err
		}
		if now < 1.25*before {
			return max(now, before) / total, nil
		}
		before = now
	}
	return 0, inputErrorf("no load saturates pool %s", e.Pools[0].Name)
}

// use is how a single-pool run uses its GPUs, from what the result counts: shares of
// the token budget, of peak FLOP/s and of HBM bandwidth. FLOPs are 2 × active
// parameters per token, without attention; bytes are the weights once per step and
// the KV that the running requests hold.
type use struct{ budget, mfu, bandwidth float64 }

func useOf(r *sim.Result) use {
	nan := use{math.NaN(), math.NaN(), math.NaN()}
	if len(r.Pools) != 1 {
		return nan
	}
	spec, p := &r.Experiment.Pools[0], &r.Pools[0]
	d := spec.Deployment
	c := class(r)
	if len(r.Experiment.Traffic) != 1 {
		return nan
	}
	perReplica := servedAll(r) / float64(p.Replicas)
	tokens := perReplica * (c.Prompt.Mean.V*(1-orZero(p.PrefixHit.V)) + c.Output.Mean.V)
	steps := float64(r.Steps) / float64(p.Replicas) / (r.Experiment.Duration + r.Experiment.Warmup).Seconds()
	gpus := float64(d.GPUs())
	peak := d.GPU.PeakBF16TFLOPS
	if d.WeightDtype == models.FP8 && d.GPU.PeakFP8TFLOPS > 0 {
		peak = d.GPU.PeakFP8TFLOPS
	}
	held := average(r.Series.Pools[0].KVUse, 0) * float64(p.KVTokens) * float64(d.LLM.KVBytesPerToken(d.KVDtype))
	return use{
		budget:    tokens / (steps * float64(spec.Engine.MaxBatchedTokens)),
		mfu:       tokens * 2 * float64(d.LLM.ActiveParams()) / (peak * 1e12 * gpus),
		bandwidth: steps * (float64(d.LLM.WeightBytes(d.WeightDtype)) + held) / (d.GPU.BandwidthGBs * 1e9 * gpus),
	}
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

func servedAll(r *sim.Result) float64 {
	total := 0.0
	for _, c := range r.Series.Classes {
		if c.Cohort == "all" {
			total += average(c.Completions, 0)
		}
	}
	return total
}
