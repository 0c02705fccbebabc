package models

import "math"

// powers is u^e for one exponent e and 0 < u ≤ 1, within 1e-13 of it: by tables of the
// octave and of powerCells centres within it, and four terms of the binomial series
// around the centre.
type powers struct {
	e              float64
	c1, c2, c3, c4 float64 // of the series
	centres        [powerCells]struct{ power, inverse float64 }
	octaves        [octaves]float64 // 2^−k to the power
}

const (
	powerBits  = 7
	powerCells = 1 << powerBits
	octaves    = 64
)

func newPowers(e float64) *powers {
	p := &powers{e: e, c1: e, c2: e * (e - 1) / 2, c3: e * (e - 1) * (e - 2) / 6, c4: e * (e - 1) * (e - 2) * (e - 3) / 24}
	for i := range p.centres {
		x := 1 + (float64(i)+0.5)/powerCells
		p.centres[i].power, p.centres[i].inverse = math.Pow(x, e), 1/x
	}
	for k := range p.octaves {
		p.octaves[k] = math.Pow(2, -e*float64(k))
	}
	return p
}

// of returns u^e, and 0 of what is not positive.
func (p *powers) of(u float64) float64 {
	switch {
	case u <= 0:
		return 0
	case isNear(u):
		return p.near(u)
	}
	return math.Pow(u, p.e)
}

// The parts of a float64.
const (
	mantissa = 52
	bias     = 1023
)

// isNear tells whether the tables have u^e: not of what is too small, or not positive.
func isNear(u float64) bool { return bias-math.Float64bits(u)>>mantissa < octaves }

// near returns u^e where the tables have it. It calls nothing: so it is compiled into its
// caller.
func (p *powers) near(u float64) float64 {
	b := math.Float64bits(u)
	c := &p.centres[b>>(mantissa-powerBits)&(powerCells-1)]
	d := math.Float64frombits(b&(1<<mantissa-1)|bias<<mantissa)*c.inverse - 1
	return c.power * p.octaves[(bias-b>>mantissa)%octaves] * (1 + d*(p.c1+d*(p.c2+d*(p.c3+d*p.c4))))
}
