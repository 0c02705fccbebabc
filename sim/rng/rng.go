// Package rng draws random numbers by counting instead of by state: the number
// for (seed, purpose, stream, index) is a hash of those four. A change in one
// place therefore shifts no draw elsewhere, and request i keeps its lengths in
// every scenario. Distributions are sampled by inverse CDF, one draw each.
package rng

import (
	"hash/fnv"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/mathext"
)

// Purpose separates the draws of one request.
type Purpose uint64

// The purposes. Their values are part of every seed's meaning: never renumber.
const (
	Gap Purpose = iota + 1
	PromptLength
	OutputLength
	CohortJoin
	Think
	RouterPick
	SystemPick
	HitJoin
	HitLength
	Acceptance
	Patience
	Jitter
	SessionBegin
	SessionTurns
	Wear
	Rating
)

// Source yields the draws of one (seed, purpose, stream).
type Source struct{ k0, k1 uint64 }

// New returns the source of a purpose and a named stream under a seed.
func New(seed uint64, p Purpose, stream string) Source {
	h := fnv.New64a()
	h.Write([]byte(stream))
	k0 := mix(seed, 0x9e3779b97f4a7c15^uint64(p)*0xd1342543de82ef95)
	k1 := mix(k0^h.Sum64(), 0xbf58476d1ce4e5b9)
	return Source{k0: k0, k1: mix(k1, k0) | 1}
}

// Derive returns the seed of the i-th of several independent runs: the first is
// the given seed itself, so that a run of one is what it says. Seeds stay below
// 2^53, so that every file format can hold them.
func Derive(seed uint64, i int) uint64 {
	if i == 0 {
		return seed
	}
	return mix(mix(seed, 0x2545f4914f6cdd1d), uint64(i)*0x9e3779b97f4a7c15) >> 11
}

// mix folds the 128-bit product of its operands: one multiplication that spreads
// every input bit over the result.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^mixA, b^mixB)
	return hi ^ lo
}

const mixA, mixB = 0x2d358dccaa6c78a5, 0x8bb84b93962eacc9

// Uint64 returns the i-th draw as 64 random bits.
func (s Source) Uint64(i int64) uint64 {
	return mix(mix(uint64(i)*0x9e3779b97f4a7c15^s.k0, s.k1), s.k0)
}

// Fill draws the i-th and those after it: as Uint64 does one by one, but what they have
// in common is worked out once.
func (s *Source) Fill(i int64, draws []uint64) {
	const step = 0x9e3779b97f4a7c15
	n := uint64(i) * step
	first, second, third := s.k0^mixA, s.k1^mixB, s.k0^mixB
	for k := range draws {
		hi, lo := bits.Mul64(n^first, second)
		hi, lo = bits.Mul64(hi^lo^mixA, third)
		draws[k] = hi ^ lo
		n += step
	}
}

// Float64 returns the i-th draw, uniform in the open interval (0, 1): both ends
// are excluded so that every inverse CDF stays finite.
func (s Source) Float64(i int64) float64 { return Uniform(s.Draw(i)) }

// DrawBits is the width of a draw before it becomes a number in (0, 1).
const DrawBits = 53

// Draw returns the i-th draw as DrawBits random bits; Uniform of it is Float64.
func (s *Source) Draw(i int64) uint64 { return s.Uint64(i) >> (64 - DrawBits) }

// Uniform returns the number in (0, 1) that a draw stands for: a larger draw never
// stands for a smaller number.
func Uniform(draw uint64) float64 {
	draw -= (draw + 1) >> DrawBits // the last one would round to 1
	return (float64(int64(draw)) + 0.5) * (1.0 / (1 << DrawBits))
}

// Exp returns the quantile of the unit-rate exponential distribution, within 1e-13 of it.
func Exp(u float64) float64 {
	if u < 1./64 { // 1 − u would lose digits
		return -math.Log1p(-u)
	}
	// In half the time of math.Log: the logarithm of the octave, of the centre of a cell
	// in it, and of the rest by its series.
	const mantissa, bias = 52, 1023
	b := math.Float64bits(1 - u)
	octave := int(b>>mantissa) - bias
	c := &logCells[b>>(mantissa-logBits)&(1<<logBits-1)]
	r := math.Float64frombits(b&(1<<mantissa-1)|bias<<mantissa)*c.inverse - 1
	r2 := r * r
	rest := r - r2*(1./2-r*(1./3)) - r2*r2*((1./4-r*(1./5))+r2*(1./6))
	return -(float64(octave)*math.Ln2 + (c.log + rest))
}

// logCells hold the middle of each of equal parts of [1, 2).
var logCells = func() (cells [1 << logBits]struct{ inverse, log float64 }) {
	for i := range cells {
		cells[i].inverse = 1 / (1 + (float64(i)+0.5)/float64(len(cells)))
		cells[i].log = -math.Log(cells[i].inverse)
	}
	return cells
}()

const logBits = 7

// Normal returns the quantile of the standard normal distribution.
func Normal(u float64) float64 { return mathext.NormalQuantile(u) }

// Gamma returns the quantile of the gamma distribution with mean 1 and the given
// shape (so its squared coefficient of variation is 1/shape).
func Gamma(u, shape float64) float64 {
	if shape == 1 {
		return Exp(u)
	}
	return mathext.GammaIncRegInv(shape, u) / shape
}
