package models

import "math"

// powers is u^e for one exponent e and 0 < u ≤ 1, within 1e-13 of it: by tables of the
// octave and of powerCells centres within it, and four terms of the binomial series
// around the centre.
type powers struct {
	e              float64
	c1, c2, c3, c4 float64 // of the series
	centres        [powerCells]struct{ power, inverse float64 }
	octaves        [64]float64 // 2^−k to the power
}

const (
	powerBits  = 7
	powerCells = 1 << powerBits
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
	const mantissa, bias = 52, 1023
	b := math.Float64bits(u)
	k := bias - b>>mantissa
	if k >= uint64(len(p.octaves)) || u <= 0 {
		if u <= 0 {
			return 0
		}
		return math.Pow(u, p.e)
	}
	c := &p.centres[b>>(mantissa-powerBits)&(powerCells-1)]
	d := math.Float64frombits(b&(1<<mantissa-1)|bias<<mantissa)*c.inverse - 1
	return c.power * p.octaves[k] * (1 + d*(p.c1+d*(p.c2+d*(p.c3+d*p.c4))))
}
