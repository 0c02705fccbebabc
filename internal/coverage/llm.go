package coverage

import (
	"context"
	"fmt"

	"slosim/experiments"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/sim/stats"
)

// replica is the LLM-like system: one replica under steady traffic at a high load,
// its lengths drawn from heavy distributions. What is measured is TTFT.
const replica = `
question = "How often do the intervals hold the truth?"
duration = "1h"
warmup = "10m"

[[pool]]
name = "main"
model = "llama-3.1-8b"
gpu = "h100-sxm-80gb"
replicas = 1
thermal = { enabled = false }
engine = { prefix_caching = false }

[[traffic]]
class = "chat"
rate = "%g/s"
prompt = { dist = "lognormal", mean = 2000, p99 = 8000 }
output = { dist = "lognormal", mean = 200, p99 = 800 }
`

// LLM is what is measured on a simulated replica: intervals over replications of
// Requests each, as a run reports them. The truth is the mean over Long further
// replications of LongRequests each, on other seeds.
type LLM struct {
	Load         float64 // offered rate ÷ saturation rate
	Requests     int     // per replication
	Replications int     // per interval
	Intervals    int
	Seed         uint64
	Long         int
	LongRequests int
	Workers      int
}

// Truth is what the long replications say.
type Truth struct{ Mean, P99 stats.Estimate }

// experiment returns the system with so many requests per replication, and its
// rate.
func (l LLM) experiment(requests int) (sim.Experiment, error) {
	load := func(rate float64) (sim.Experiment, error) {
		e, _, err := experiments.Parse("coverage.toml", ".", fmt.Sprintf(replica, rate))
		return e, err
	}
	e, err := load(1)
	if err != nil {
		return e, err
	}
	e.Duration, e.Warmup, e.Replications = clock.Minute, 0, 1
	r, err := sim.Run(context.Background(), e, sim.Options{})
	if err != nil {
		return e, err
	}
	rate := l.Load * r.Pools[0].SaturationRate
	if e, err = load(rate); err != nil {
		return e, err
	}
	e.Duration = clock.FromSeconds(float64(requests) / rate)
	return e, nil
}

// Run measures the coverage of the mean and of the P99 of TTFT.
func (l LLM) Run(ctx context.Context) (mean, p99 Outcome, truth Truth, err error) {
	ttft := func(requests, replications int, seed uint64) (sim.Distribution, error) {
		e, err := l.experiment(requests)
		if err != nil {
			return sim.Distribution{}, err
		}
		e.Replications, e.Seed = replications, seed
		r, err := sim.Run(ctx, e, sim.Options{Workers: l.Workers})
		if err != nil {
			return sim.Distribution{}, err
		}
		return r.Phases[0].Classes[0].TTFT, nil
	}
	long, err := ttft(l.LongRequests, l.Long, rng.Derive(l.Seed, -1))
	if err != nil {
		return mean, p99, truth, err
	}
	truth = Truth{long.Mean, long.P99}
	for i := range l.Intervals {
		d, err := ttft(l.Requests, l.Replications, rng.Derive(l.Seed, i+1))
		if err != nil {
			return mean, p99, truth, err
		}
		mean.count(d.Mean, truth.Mean.V)
		p99.count(d.P99, truth.P99.V)
	}
	mean.finish()
	p99.finish()
	return mean, p99, truth, nil
}
