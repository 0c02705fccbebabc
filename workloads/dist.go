package workloads

import (
	"fmt"
	"math"
	"sort"

	"slosim/sim/rng"
)

// z99 is the 99 % quantile of the standard normal distribution.
const z99 = 2.3263478740408408

// Lengths is a compiled length distribution.
type Lengths struct {
	dist      Dist
	mu, sigma float64 // of a lognormal
}

// Compile checks a distribution and prepares it for sampling.
func (d Dist) Compile() (Lengths, error) {
	l := Lengths{dist: d}
	if d.Min < 0 || d.Max < 0 || (d.Max > 0 && d.Min > d.Max) {
		return l, fmt.Errorf("lengths need 0 ≤ min ≤ max, not %g and %g", d.Min, d.Max)
	}
	switch d.Kind {
	case "fixed", "exponential":
		if !(d.Mean > 0) {
			return l, fmt.Errorf("a %s length needs a mean > 0, not %g", d.Kind, d.Mean)
		}
	case "lognormal":
		ratio := d.P99 / d.Mean
		if !(d.Mean > 0) || !(ratio > 1 && ratio < 14.9) {
			return l, fmt.Errorf("a lognormal length needs mean > 0 and 1 < p99/mean < 14.9, not mean %g and p99 %g", d.Mean, d.P99)
		}
		l.sigma = z99 - math.Sqrt(z99*z99-2*math.Log(ratio))
		l.mu = math.Log(d.Mean) - l.sigma*l.sigma/2
	case "uniform":
		if !(d.Max > 0) {
			return l, fmt.Errorf("a uniform length needs min and max, not %g and %g", d.Min, d.Max)
		}
	case "empirical":
		if len(d.Points) < 2 {
			return l, fmt.Errorf("an empirical length needs at least two points")
		}
		for i, p := range d.Points {
			if p.P < 0 || p.P > 1 || p.Tokens < 0 || i > 0 && (p.P <= d.Points[i-1].P || p.Tokens < d.Points[i-1].Tokens) {
				return l, fmt.Errorf("empirical point %d (%g tokens at %g) is out of order: probabilities and tokens must rise, probabilities within 0 and 1", i+1, p.Tokens, p.P)
			}
		}
		if d.Points[len(d.Points)-1].P != 1 {
			return l, fmt.Errorf("the last empirical point must have probability 1, not %g", d.Points[len(d.Points)-1].P)
		}
	default:
		return l, fmt.Errorf("unknown length distribution %q", d.Kind)
	}
	return l, nil
}

// Quantile returns the u-quantile before rounding, cut to [Min, Max].
func (l *Lengths) Quantile(u float64) float64 {
	d := &l.dist
	var x float64
	switch d.Kind {
	case "fixed":
		x = d.Mean
	case "exponential":
		x = d.Mean * rng.Exp(u)
	case "lognormal":
		x = math.Exp(l.mu + l.sigma*rng.Normal(u))
	case "uniform":
		x = d.Min + (d.Max-d.Min)*u
	case "empirical":
		x = empirical(d.Points, u)
	}
	if d.Max > 0 {
		x = min(x, d.Max)
	}
	return max(x, d.Min)
}

func empirical(points []Point, u float64) float64 {
	k := sort.Search(len(points), func(i int) bool { return points[i].P >= u })
	if k == 0 {
		return points[0].Tokens
	}
	a, b := points[k-1], points[k]
	return a.Tokens + (b.Tokens-a.Tokens)*(u-a.P)/(b.P-a.P)
}

// At returns the length that the uniform draw u stands for: whole tokens, ≥ 1.
func (l *Lengths) At(u float64) int32 {
	return int32(min(max(1, math.Round(l.Quantile(u))), math.MaxInt32/4))
}

// ShareAtLeast returns P(length ≥ n), rounding included, to within 1e−12: the
// quantile function is inverted by bisection.
func (l *Lengths) ShareAtLeast(n int32) float64 {
	lo, hi := 0.0, 1.0
	for range 60 {
		mid := (lo + hi) / 2
		if mid <= 0 || mid >= 1 || l.At(mid) >= n {
			hi = mid
		} else {
			lo = mid
		}
	}
	if l.At(1e-12) >= n {
		return 1
	}
	return 1 - hi
}

// moments of a length, by the midpoint rule over its quantile function.
const momentPoints = 20_000

// Mean returns E[f(length)].
func (l *Lengths) Mean(f func(tokens float64) float64) float64 {
	sum := 0.0
	for k := range momentPoints {
		sum += f(float64(l.At((float64(k) + 0.5) / momentPoints)))
	}
	return sum / momentPoints
}
