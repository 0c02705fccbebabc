// Package coverage measures whether the 95 % intervals over replications hold the
// true value 95 % of the time, on the M/M/1 queue, where it is known: the sojourn
// time is exponential with rate μ − λ (see any text on queues), so its mean is
// 1/(μ − λ) and its P99 ln(100)/(μ − λ). Queues start in equilibrium. Sojourns of
// neighbours are correlated, so short replications give biased quantiles and
// intervals that are too narrow: that is what is to be seen.
package coverage

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"slosim/sim/rng"
	"slosim/sim/stats"
)

// Trial is what is measured: intervals of replications of customers each.
type Trial struct {
	Load         float64 // λ/μ
	Customers    int     // per replication
	Replications int     // per interval; 1: from the batches of one
	Intervals    int
	Seed         uint64
}

// Outcome is how often the true value lay within, with Clopper and Pearson's 95 %
// interval of that.
type Outcome struct {
	Held, Of int
	Lo, Hi   float64
	Width    float64 // mean half width ÷ true value
}

// Share is the coverage.
func (o Outcome) Share() float64 { return float64(o.Held) / float64(o.Of) }

// Run measures the coverage of the mean and of the P99.
func (t Trial) Run() (mean, p99 Outcome) {
	rate := 1 - t.Load // μ = 1
	for i := range t.Intervals {
		if t.Replications == 1 {
			m, q := t.within(i)
			mean.count(m, 1/rate)
			p99.count(q, math.Log(100)/rate)
			continue
		}
		var means, quantiles []float64
		for r := range t.Replications {
			s := t.queue(i*t.Replications + r)
			means, quantiles = append(means, s.Mean()/1e9), append(quantiles, s.Quantiles(.99)[0]/1e9)
		}
		n := int64(t.Customers * t.Replications)
		mean.count(stats.Of(means, n), 1/rate)
		p99.count(stats.Of(quantiles, n), math.Log(100)/rate)
	}
	mean.finish()
	p99.finish()
	return mean, p99
}

// within returns the estimates of a single replication, whose intervals come from its
// batches.
func (t Trial) within(number int) (mean, p99 stats.Estimate) {
	s := t.queue(number)
	b := stats.InBatches([]*stats.Sample{s}, []float64{.99})
	at := s.Quantiles(.99)
	m, q := b.Around(s.Mean(), at)
	of := func(v, half float64) stats.Estimate {
		return stats.Estimate{V: v / 1e9, Lo: (v - half) / 1e9, Hi: (v + half) / 1e9, R: 1}
	}
	return of(s.Mean(), m.Half), of(at[0], q[0].Half)
}

func (o *Outcome) count(e stats.Estimate, truth float64) {
	o.Of++
	if e.Lo <= truth && truth <= e.Hi {
		o.Held++
	}
	o.Width += (e.Hi - e.Lo) / 2 / truth
}

func (o *Outcome) finish() {
	o.Width /= float64(o.Of)
	held, lost := float64(o.Held), float64(o.Of-o.Held)
	o.Hi = 1
	if lost > 0 {
		o.Hi = distuv.Beta{Alpha: held + 1, Beta: lost}.Quantile(0.975)
	}
	if held > 0 {
		o.Lo = distuv.Beta{Alpha: held, Beta: lost + 1}.Quantile(0.025)
	}
}

// queue returns the sojourns of one replication, by Lindley's
// recursion: the next sojourn is what is left of this one after the gap, plus a
// service.
func (t Trial) queue(number int) *stats.Sample {
	seed := rng.Derive(t.Seed, number)
	gaps, services := rng.New(seed, rng.Gap, "coverage"), rng.New(seed, rng.OutputLength, "coverage")
	sample := &stats.Sample{}
	sojourn := rng.Exp(services.Float64(-1)) / (1 - t.Load)
	for k := range int64(t.Customers) {
		sample.Add(int64(sojourn * 1e9))
		sojourn = max(0, sojourn-rng.Exp(gaps.Float64(k))/t.Load) + rng.Exp(services.Float64(k))
	}
	return sample
}
