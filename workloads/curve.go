package workloads

import (
	"math"
	"slices"
	"sort"
	"strconv"

	"slosim/sim/clock"
)

// cellLength bounds a cell of the cumulative rate. Over five minutes of a daily
// cosine the cubic below is off by less than 1e−9 of the rate's swing.
const cellLength = 5 * clock.Minute

// Intensity is a class's arrival rate as a function of time: shapes, bursts and
// the rate changes of launches. What of it is random counts with its mean, unless
// it has been drawn.
type Intensity struct {
	rate    Rate
	start   clock.Duration // t = 0 from Monday 00:00
	changes []Change       // of this class
	random  []factors      // of the rate and of each that is added
}

// NewIntensity returns the intensity of a class under the changes that name it.
func NewIntensity(c *Class, changes []Change, start clock.Duration) Intensity {
	in := Intensity{rate: c.Rate, start: start, random: []factors{expectedFactors(&c.Rate)}}
	for i := range c.Rate.Add {
		in.random = append(in.random, expectedFactors(&c.Rate.Add[i]))
	}
	for _, ch := range changes {
		if ch.Class == c.Name {
			in.changes = append(in.changes, ch)
		}
	}
	return in
}

// Drawn returns the intensity with its random part drawn over [from, to).
func (in Intensity) Drawn(seed uint64, stream string, from, to clock.Time) Intensity {
	in.random = []factors{drawFactors(&in.rate, seed, stream, from, to)}
	for i := range in.rate.Add {
		in.random = append(in.random, drawFactors(&in.rate.Add[i], seed, stream+"\x00"+strconv.Itoa(i), from, to))
	}
	return in
}

// At returns the rate per second at t. At a jump it is the value after it.
func (in *Intensity) At(t clock.Time) float64 {
	r := in.rate.at(t, in.start) * in.random[0].on(t)
	for i := range in.rate.Add {
		r += in.rate.Add[i].at(t, in.start) * in.random[i+1].on(t)
	}
	for i := range in.changes {
		if f := in.changes[i].RateFactor; f == 1 || f == 0 {
			continue
		}
		r *= 1 + (in.changes[i].RateFactor-1)*in.changes[i].Progress(t)
	}
	return r
}

// Progress returns how much of the change is in force at t, from 0 to 1.
func (c *Change) Progress(t clock.Time) float64 {
	d := clock.Duration(t) - c.At
	switch {
	case d < 0, c.Until > 0 && clock.Duration(t) >= c.Until:
		return 0
	case len(c.Steps) > 0:
		p := 0.0
		for _, s := range c.Steps {
			if d < s.After {
				break
			}
			p = s.Progress
		}
		return p
	case d >= c.Ramp:
		return 1
	}
	return float64(d) / float64(c.Ramp)
}

// breaks returns the instants in (from, to) at which the rate or its slope jumps.
func (in *Intensity) breaks(from, to clock.Time) []clock.Time {
	var b []clock.Time
	add := func(d clock.Duration) {
		if t := clock.Time(d); t > from && t < to {
			b = append(b, t)
		}
	}
	in.rate.breaks(from, to, in.start, add)
	for i := range in.rate.Add {
		in.rate.Add[i].breaks(from, to, in.start, add)
	}
	for _, f := range in.random {
		for i := sort.Search(len(f.at), func(i int) bool { return f.at[i] > from }); i < len(f.at) && f.at[i] < to; i++ {
			add(clock.Duration(f.at[i]))
		}
	}
	for _, c := range in.changes {
		add(c.At)
		add(c.At + c.Ramp)
		for _, s := range c.Steps {
			add(c.At + s.After)
		}
		if c.Until > 0 {
			add(c.Until)
		}
	}
	slices.Sort(b)
	return slices.Compact(b)
}

// cells cuts [from, to) at the breaks and into pieces of at most cellLength.
func (in *Intensity) cells(from, to clock.Time) []clock.Time {
	edges := []clock.Time{from}
	for _, b := range append(in.breaks(from, to), to) {
		for last := edges[len(edges)-1]; b.Sub(last) > cellLength; last = edges[len(edges)-1] {
			edges = append(edges, last.Add(cellLength))
		}
		edges = append(edges, b)
	}
	return edges
}

// gauss holds nodes and weights of the five-point Gauss–Legendre rule on [0, 1].
var gauss = [5][2]float64{
	{0.046910077030668, 0.1184634425280945},
	{0.2307653449471585, 0.2393143352496832},
	{0.5, 0.2844444444444444},
	{0.7692346550528415, 0.2393143352496832},
	{0.953089922969332, 0.1184634425280945},
}

// integrate applies the rule to one smooth piece.
func integrate(f func(t clock.Time) float64, from, to clock.Time) float64 {
	width := to.Sub(from)
	sum := 0.0
	for _, g := range gauss {
		sum += g[1] * f(from+clock.Time(g[0]*float64(width)))
	}
	return sum * width.Seconds()
}

// Expected returns the expected number of arrivals in [from, to).
func (in *Intensity) Expected(from, to clock.Time) float64 {
	return in.ExpectedOf(from, to, func(clock.Time) float64 { return 1 })
}

// ExpectedOf returns the expected number of those arrivals in [from, to) that
// belong to a share of the traffic which may vary with time, smoothly between
// the class's changes.
func (in *Intensity) ExpectedOf(from, to clock.Time, share func(t clock.Time) float64) float64 {
	edges := in.cells(from, to)
	sum := 0.0
	for i := 1; i < len(edges); i++ {
		sum += integrate(func(t clock.Time) float64 { return in.At(t) * share(t) }, edges[i-1], edges[i])
	}
	return sum
}

// Peak returns the highest rate in [from, to), looked up at every cell's edges.
func (in *Intensity) Peak(from, to clock.Time) float64 {
	peak := 0.0
	edges := in.cells(from, to)
	for i := 1; i < len(edges); i++ {
		peak = max(peak, in.At(edges[i-1]), in.At(edges[i]-1))
	}
	return peak
}

// Curve is the cumulative rate Λ(t), ready for inversion: a cubic per cell that
// meets Λ and the rate at both ends.
type Curve struct {
	t0         []clock.Time // cell starts, then the end of the last
	sum        []float64    // Λ at t0
	c1, c2, c3 []float64    // Λ(t0 + x·width) = sum + c1·x + c2·x² + c3·x³
	cell       int          // of the last inversion: arguments never decrease
	last       clock.Time   // result of the last inversion
	line       line         // the cell, if the rate is constant there
}

// line is a cell of the cumulative rate that is straight: Λ rises by rise over width
// nanoseconds from t0, where it is from.
type line struct {
	from, to, rise, width float64 // to = 0: the cell is not straight
	t0                    clock.Time
}

// NewCurve tabulates an intensity over [from, to); Λ(from) = 0.
func NewCurve(in *Intensity, from, to clock.Time) *Curve {
	edges := in.cells(from, to)
	c := &Curve{t0: edges, sum: make([]float64, len(edges)), last: from}
	for i := 1; i < len(edges); i++ {
		a, b := edges[i-1], edges[i]
		d := integrate(in.At, a, b)
		width := b.Sub(a).Seconds()
		r0, r1 := in.At(a)*width, in.At(b-1)*width
		c.c1 = append(c.c1, r0)
		c.c2 = append(c.c2, 3*d-2*r0-r1)
		c.c3 = append(c.c3, r0+r1-2*d)
		c.sum[i] = c.sum[i-1] + d
	}
	c.line = c.straight(0)
	return c
}

// Total returns Λ at the end.
func (c *Curve) Total() float64 { return c.sum[len(c.sum)-1] }

// Invert returns the time at which the cumulative rate reaches u, which must not
// be smaller than in the call before, and false beyond the end.
func (c *Curve) Invert(u float64) (clock.Time, bool) {
	if need := u - c.line.from; need > 0 && u <= c.line.to {
		c.last = max(c.last, c.line.t0+clock.Time(need/c.line.rise*c.line.width))
		return c.last, true
	}
	return c.invert(u)
}

// straight returns the line that a cell is: one where Newton's method below would find
// the first guess good enough wherever in the cell it is. There the guess x has
// |f| ≤ |c1 − rise| + |c2| + |c3| and a dozen rounding errors.
func (c *Curve) straight(k int) line {
	rise := c.sum[k+1] - c.sum[k]
	if bend := math.Abs(c.c1[k]-rise) + math.Abs(c.c2[k]) + math.Abs(c.c3[k]); !(bend < 9e-14*c.c1[k]) {
		return line{}
	}
	return line{from: c.sum[k], to: c.sum[k+1], rise: rise, width: float64(c.t0[k+1] - c.t0[k]), t0: c.t0[k]}
}

// invert is Invert for any cell.
func (c *Curve) invert(u float64) (clock.Time, bool) {
	last, before := len(c.c1)-1, c.cell
	for c.cell <= last && c.sum[c.cell+1] < u {
		c.cell++
		if c.cell+64 <= last && c.sum[c.cell+64] < u { // a long gap
			c.cell += sort.SearchFloat64s(c.sum[c.cell:], u) - 1
		}
	}
	if c.cell > last {
		return clock.Never, false
	}
	k := c.cell
	if k != before {
		c.line = c.straight(k)
	}
	need := u - c.sum[k]
	if need <= 0 { // at the start, or the rate is 0 here
		return c.t0[k], true
	}
	c1, c2, c3 := c.c1[k], c.c2[k], c.c3[k]
	lo, hi := 0.0, 1.0
	x := need / (c.sum[k+1] - c.sum[k])
	for range 40 {
		f := x*(c1+x*(c2+x*c3)) - need
		slope := c1 + x*(2*c2+3*x*c3)
		if math.Abs(f) < 1e-13*slope { // at once where the rate is constant
			break
		}
		step := f / slope
		if f > 0 {
			hi = x
		} else {
			lo = x
		}
		next := x - step
		if !(next > lo && next < hi) {
			next = (lo + hi) / 2
		}
		if math.Abs(next-x) < 1e-13 {
			x = next
			break
		}
		x = next
	}
	width := c.t0[k+1] - c.t0[k]
	// Arrivals less than a nanosecond apart may round the other way round.
	c.last = max(c.last, c.t0[k]+clock.Time(x*float64(width)))
	return c.last, true
}
