package report

import (
	"math"
	"strconv"
)

// niceMax rounds up to 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6 or 8 times a power of ten.
func niceMax(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
		if v <= k*unit*(1+1e-9) {
			return clip(k * unit)
		}
	}
	return clip(10 * unit)
}

// clip removes the last bits' noise of a product with a power of ten.
func clip(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return v
	}
	return out
}

// logTicks are the values 1, 2 and 5 times powers of ten that the axis shows.
func (c *chart) logTicks() []float64 {
	lo, hi := c.logRange()
	var out []float64
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for _, k := range []float64{1, 2, 5} {
			if v := clip(k * math.Pow(10, e)); v >= lo*.999 && v <= hi*1.001 {
				out = append(out, v)
			}
		}
	}
	return out
}

// logRange is the span of a log axis: the ticks around the positive data of the
// drawn lines.
func (c *chart) logRange() (lo, hi float64) {
	lo, hi = math.Inf(1), c.largest()
	for _, l := range c.lines {
		if l.right {
			continue
		}
		for _, v := range c.columns[l.column].Values {
			if v > 0 && v < lo && !l.hidden {
				lo = v
			}
		}
	}
	if math.IsInf(lo, 0) || hi <= 0 {
		return .1, 10
	}
	return tickBelow(lo), tickAbove(hi)
}

func tickBelow(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{5, 2} {
		if v >= k*unit {
			return clip(k * unit)
		}
	}
	return clip(unit)
}

func tickAbove(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 5} {
		if v <= k*unit {
			return clip(k * unit)
		}
	}
	return clip(10 * unit)
}
