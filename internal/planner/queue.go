package planner

import (
	"math"

	"slosim/sim/rng"
	"slosim/sim/stats"
)

// queueRun simulates a first-come-first-served queue with a scenario's servers by
// the recursion of Kiefer and Wolfowitz and returns the mean wait per seed, in
// units of the mean service time. The first tenth of the customers is not counted.
func queueRun(s *Scenario, seed uint64, replications, customers int) []float64 {
	rate := s.load * float64(s.servers)
	waits := make([]float64, replications)
	for r := range waits {
		one := rng.Derive(seed, r)
		gaps, services := newDraws(one, rng.Gap, s.arrival), newDraws(one, rng.OutputLength, s.service)
		free := make([]float64, s.servers) // when each is free, from now
		sum, n := 0.0, 0
		for k := range customers {
			best := 0
			for i := range free {
				if free[i] < free[best] {
					best = i
				}
			}
			if k >= customers/10 {
				sum += free[best]
				n++
			}
			free[best] += services.next()
			gap := gaps.next() / rate
			for i := range free {
				free[i] = max(0, free[i]-gap)
			}
		}
		waits[r] = sum / float64(n)
	}
	return waits
}

// draws are positive numbers with mean 1 and a squared coefficient of variation: a
// constant at 0, a sum of exponentials below 1 (of the nearest whole number of
// stages), two exponentials mixed with balanced means above it.
type draws struct {
	source rng.Source
	index  int64
	stages int
	cv2    float64
}

func newDraws(seed uint64, p rng.Purpose, cv2 float64) *draws {
	d := &draws{source: rng.New(seed, p, "queue"), cv2: cv2}
	if cv2 > 0 && cv2 <= 1 {
		d.stages = int(math.Round(1 / cv2))
	}
	return d
}

func (d *draws) uniform() float64 {
	d.index++
	return d.source.Float64(d.index)
}

func (d *draws) next() float64 {
	switch {
	case d.cv2 == 0:
		return 1
	case d.stages > 0:
		sum := 0.0
		for range d.stages {
			sum += rng.Exp(d.uniform())
		}
		return sum / float64(d.stages)
	}
	p := (1 + math.Sqrt((d.cv2-1)/(d.cv2+1))) / 2
	if d.uniform() < p {
		return rng.Exp(d.uniform()) / (2 * p)
	}
	return rng.Exp(d.uniform()) / (2 * (1 - p))
}

func queueWait(s *Scenario, f *File) stats.Estimate {
	// Few long runs: the mean of a wait has a long memory.
	n := max(f.Replications, 10)
	return stats.Of(queueRun(s, f.Seed, n, s.Grid.CustomersEach), int64(n*s.Grid.CustomersEach))
}
