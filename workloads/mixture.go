package workloads

import (
	"fmt"
	"math"
	"slices"
)

// mixture tabulates the quantile function of a mixture: its cumulative
// distribution is exact at every knot and linear in between. Knots are every
// length up to fineKnots, then a factor of knotRatio apart, and all edges of the
// parts, so that atoms stay atoms.
func mixture(parts []Part) ([]Point, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("a mixture needs parts")
	}
	compiled := make([]Lengths, len(parts))
	total, longest := 0.0, 0.0
	var atoms []float64
	for i, p := range parts {
		l, err := p.Dist.Compile()
		if err != nil {
			return nil, fmt.Errorf("part %d of a mixture: %w", i+1, err)
		}
		if !(p.Share >= 0) {
			return nil, fmt.Errorf("part %d of a mixture has a share of %g", i+1, p.Share)
		}
		compiled[i] = l
		total += p.Share
		longest = max(longest, l.Quantile(1-1e-12))
		atoms = append(atoms, l.edges()...)
	}
	if math.Abs(total-1) > 1e-9 {
		return nil, fmt.Errorf("the shares of a mixture add up to %g, not to 1", total)
	}
	var points []Point
	for _, x := range knots(longest, atoms) {
		below := 0.0
		for i := range compiled {
			below += parts[i].Share * compiled[i].shareBelow(x)
		}
		below = min(below/total, 1)
		if n := len(points); n > 0 && below <= points[n-1].P {
			if points[n-1].P == 0 { // nothing is this short
				points[n-1].Tokens = x
			}
			continue
		}
		points = append(points, Point{Tokens: x, P: below})
	}
	last := &points[len(points)-1]
	if last.P = 1; len(points) < 2 {
		points = []Point{{Tokens: last.Tokens, P: 0}, *last}
	}
	return points, nil
}

const (
	fineKnots = 256
	knotRatio = 1.01
)

func knots(longest float64, atoms []float64) []float64 {
	longest = min(longest, maxRowTokens)
	xs := []float64{0}
	for x := 0.5; x < longest; {
		xs = append(xs, x)
		if x < fineKnots {
			x++
		} else {
			x *= knotRatio
		}
	}
	for _, a := range append(atoms, longest) {
		if a <= maxRowTokens {
			xs = append(xs, a, math.Nextafter(a, math.Inf(1)))
		}
	}
	slices.Sort(xs)
	return slices.Compact(xs)
}

// edges are the lengths at which a distribution may have an atom.
func (l *Lengths) edges() []float64 {
	e := []float64{l.dist.Min}
	if l.dist.Max > 0 {
		e = append(e, l.dist.Max)
	}
	if l.kind == fixed {
		e = append(e, l.Quantile(0.5))
	}
	if l.kind == table {
		for i, p := range l.points {
			if i == 0 || p.Tokens == l.points[i-1].Tokens {
				e = append(e, p.Tokens)
			}
		}
	}
	return e
}

// shareBelow returns P(X < x) before rounding.
func (l *Lengths) shareBelow(x float64) float64 {
	if l.Quantile(1e-15) >= x {
		return 0
	}
	if l.Quantile(1-1e-15) < x {
		return 1
	}
	return bisect(func(u float64) bool { return l.Quantile(u) >= x })
}
