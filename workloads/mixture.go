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
		points = extend(points, Point{Tokens: x, P: min(below/total, 1)})
	}
	last := &points[len(points)-1]
	if last.P = 1; len(points) < 2 {
		points = []Point{{Tokens: last.Tokens, P: 0}, *last}
	}
	return points, nil
}

// extend appends a knot to a cumulative distribution whose shares rise. Where no
// length lies in between, the quantile function jumps: two knots with shares one
// step of a float64 apart.
func extend(points []Point, p Point) []Point {
	n := len(points)
	if n == 0 || p.P > points[n-1].P {
		return append(points, p)
	}
	switch {
	case points[n-1].P == 0, n > 1 && points[n-1].P == math.Nextafter(points[n-2].P, 1):
		points[n-1].Tokens = p.Tokens // nothing is this short; or the jump goes on
	case p.P < 1:
		points = append(points, Point{Tokens: p.Tokens, P: math.Nextafter(points[n-1].P, 1)})
	}
	return points
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
