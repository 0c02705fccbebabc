package workloads

import (
	"fmt"
	"math"

	"slosim/sim/rng"
)

// z99 is the 99 % quantile of the standard normal distribution.
const z99 = 2.3263478740408408

// kind is Dist.Kind as a number, so that a draw compares no text.
type kind uint8

const (
	fixed kind = iota
	exponential
	lognormal
	normal
	pareto
	uniform
	table // points of a cumulative distribution
)

// Lengths is a compiled length distribution.
type Lengths struct {
	dist      Dist
	kind      kind
	mu, sigma float64 // of a lognormal
	points    []Point
	tail      float64 // quantile at which the tail begins
	draws     *drawTable
}

// Compile checks a distribution and prepares it for sampling.
func (d Dist) Compile() (Lengths, error) {
	l := Lengths{dist: d}
	if d.Min < 0 || d.Max < 0 || (d.Max > 0 && d.Min > d.Max) {
		return l, fmt.Errorf("lengths need 0 ≤ min ≤ max, not %g and %g", d.Min, d.Max)
	}
	var err error
	switch d.Kind {
	case "fixed", "exponential":
		if !(d.Mean > 0) {
			return l, fmt.Errorf("a %s length needs a mean > 0, not %g", d.Kind, d.Mean)
		}
		if d.Kind == "exponential" {
			l.kind = exponential
		}
	case "lognormal":
		l.kind = lognormal
		err = l.lognormal()
	case "normal":
		l.kind = normal
		if !(d.SD > 0) {
			return l, fmt.Errorf("a normal length needs a standard deviation > 0, not %g", d.SD)
		}
	case "pareto":
		l.kind = pareto
		if !(d.Min > 0 && d.Alpha > 0) {
			return l, fmt.Errorf("a Pareto length needs min and alpha > 0, not %g and %g", d.Min, d.Alpha)
		}
	case "uniform":
		l.kind = uniform
		if !(d.Max > 0) {
			return l, fmt.Errorf("a uniform length needs min and max, not %g and %g", d.Min, d.Max)
		}
	case "empirical":
		l.kind, l.points = table, d.Points
		err = checkPoints(d.Points)
	case "mixture":
		l.kind = table
		if l.points = d.Points; len(d.Points) == 0 {
			l.points, err = mixture(d.Parts)
		}
	default:
		return l, fmt.Errorf("unknown length distribution %q", d.Kind)
	}
	if err == nil && d.Tail.Alpha > 0 {
		if !(d.Tail.From > 0 && d.Tail.From < 1 && d.Tail.Alpha > 1) {
			return l, fmt.Errorf("a tail needs 0 < from < 1 and alpha > 1, not %g and %g", d.Tail.From, d.Tail.Alpha)
		}
		l.tail = l.body(d.Tail.From)
	}
	return l, err
}

func (l *Lengths) lognormal() error {
	d := &l.dist
	if d.Sigma > 0 {
		l.mu, l.sigma = d.Mu, d.Sigma
		return nil
	}
	ratio := d.P99 / d.Mean
	if !(d.Mean > 0) || !(ratio > 1 && ratio < 14.9) {
		return fmt.Errorf("a lognormal length needs mean > 0 and 1 < p99/mean < 14.9, not mean %g and p99 %g", d.Mean, d.P99)
	}
	l.sigma = z99 - math.Sqrt(z99*z99-2*math.Log(ratio))
	l.mu = math.Log(d.Mean) - l.sigma*l.sigma/2
	return nil
}

func checkPoints(points []Point) error {
	if len(points) < 2 {
		return fmt.Errorf("an empirical length needs at least two points")
	}
	for i, p := range points {
		if p.P < 0 || p.P > 1 || p.Tokens < 0 || i > 0 && (p.P <= points[i-1].P || p.Tokens < points[i-1].Tokens) {
			return fmt.Errorf("empirical point %d (%g tokens at %g) is out of order: probabilities and tokens must rise, probabilities within 0 and 1", i+1, p.Tokens, p.P)
		}
	}
	if last := points[len(points)-1].P; last != 1 {
		return fmt.Errorf("the last empirical point must have probability 1, not %g", last)
	}
	return nil
}

// Prepared returns the distribution with what is costly to compile worked out: the
// table of a mixture.
func (d Dist) Prepared() (Dist, error) {
	if d.Kind != "mixture" {
		return d, nil
	}
	var err error
	d.Points, err = mixture(d.Parts)
	return d, err
}

// LogNormal returns the lognormal distribution whose quantiles at p and q are x
// and y; p and q differ, and the larger share has the larger length.
func LogNormal(p, x, q, y float64) Dist {
	zp, zq := rng.Normal(p), rng.Normal(q)
	sigma := (math.Log(y) - math.Log(x)) / (zq - zp)
	return logNormal(math.Log(x)-sigma*zp, sigma)
}

// LogNormalMean returns the lognormal distribution with that mean whose quantile
// at p is x; ok is false when there is none, or none that anybody means: beyond
// the median a quantile is to exceed the mean. Of two it is the narrower one.
func LogNormalMean(mean, p, x float64) (d Dist, ok bool) {
	z := rng.Normal(p)
	root := z*z - 2*math.Log(x/mean)
	if !(root >= 0) || (z > 0) != (x > mean) {
		return Dist{}, false
	}
	sigma := z - math.Sqrt(root)
	if sigma <= 0 {
		sigma = z + math.Sqrt(root)
	}
	return logNormal(math.Log(mean)-sigma*sigma/2, sigma), sigma > 0
}

func logNormal(mu, sigma float64) Dist {
	return Dist{Kind: "lognormal", Mu: mu, Sigma: sigma, Mean: math.Exp(mu + sigma*sigma/2), P99: math.Exp(mu + z99*sigma)}
}

// Quantile returns the u-quantile before rounding, cut to [Min, Max].
func (l *Lengths) Quantile(u float64) float64 {
	var x float64
	if t := &l.dist.Tail; t.Alpha > 0 && u > t.From {
		x = l.tail * math.Pow((1-t.From)/(1-u), 1/t.Alpha)
	} else {
		x = l.body(u)
	}
	if l.dist.Max > 0 {
		x = min(x, l.dist.Max)
	}
	return max(x, l.dist.Min)
}

// body is the u-quantile without tail and cut.
func (l *Lengths) body(u float64) float64 {
	d := &l.dist
	switch l.kind {
	case exponential:
		return d.Mean * rng.Exp(u)
	case lognormal:
		return math.Exp(l.mu + l.sigma*rng.Normal(u))
	case normal:
		return d.Mean + d.SD*rng.Normal(u)
	case pareto:
		return d.Min * math.Pow(1-u, -1/d.Alpha)
	case uniform:
		return d.Min + (d.Max-d.Min)*u
	case table:
		return empirical(l.points, u)
	}
	return d.Mean
}

func empirical(points []Point, u float64) float64 {
	lo, hi := 0, len(points) // the first point whose share is at least u
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); points[mid].P >= u {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	switch lo {
	case 0:
		return points[0].Tokens
	case len(points):
		return points[lo-1].Tokens
	}
	a, b := points[lo-1], points[lo]
	return a.Tokens + (b.Tokens-a.Tokens)*(u-a.P)/(b.P-a.P)
}

// At returns the length that the uniform draw u stands for: whole tokens, ≥ 1.
func (l *Lengths) At(u float64) int32 {
	return int32(min(max(1, math.Round(l.Quantile(u))), math.MaxInt32/4))
}

// ShareAtLeast returns P(length ≥ n), rounding included, to within 1e−12: the
// quantile function is inverted by bisection.
func (l *Lengths) ShareAtLeast(n int32) float64 {
	if l.At(1e-12) >= n {
		return 1
	}
	return 1 - bisect(func(u float64) bool { return l.At(u) >= n })
}

// bisect returns where in (0, 1) a condition begins to hold.
func bisect(holds func(u float64) bool) float64 {
	lo, hi := 0.0, 1.0
	for range 60 {
		mid := (lo + hi) / 2
		if mid <= 0 || mid >= 1 || holds(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
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

// average returns the mean of a distribution that is no length, unrounded; 0 if
// it does not compile.
func average(d Dist) float64 {
	if cut := d.Min > 0 || d.Max > 0 || d.Tail.Alpha > 0; !cut && (d.Kind == "fixed" || d.Kind == "exponential") {
		return d.Mean
	}
	if d.Kind == "uniform" && d.Tail.Alpha == 0 {
		return (d.Min + d.Max) / 2
	}
	l, err := d.Compile()
	if err != nil {
		return 0
	}
	const points = 2000
	sum := 0.0
	for k := range points {
		sum += l.Quantile((float64(k) + 0.5) / points)
	}
	return sum / points
}
