package design

import (
	"math/bits"
	"strconv"

	"slosim/sim/rng"
)

// MaxDimensions bounds the factors of a design.
const MaxDimensions = 20

// direction holds the primitive polynomial of a dimension, its degree and inner
// coefficients, and the initial direction numbers, from dimension 2 on.
//
// From new-joe-kuo-6.21201 by S. Joe and F. Y. Kuo, SIAM J. Sci. Comput. 30 (2008)
// 2635. Copyright (c) 2008, Frances Y. Kuo and Stephen Joe, BSD licence; the numbers are
// used unchanged, without warranty of theirs.
var direction = [MaxDimensions - 1]struct {
	degree, coefficients uint32
	initial              []uint32
}{
	{1, 0, []uint32{1}},
	{2, 1, []uint32{1, 3}},
	{3, 1, []uint32{1, 3, 1}},
	{3, 2, []uint32{1, 1, 1}},
	{4, 1, []uint32{1, 1, 3, 3}},
	{4, 4, []uint32{1, 3, 5, 13}},
	{5, 2, []uint32{1, 1, 5, 5, 17}},
	{5, 4, []uint32{1, 1, 5, 5, 5}},
	{5, 7, []uint32{1, 1, 7, 11, 19}},
	{5, 11, []uint32{1, 1, 5, 1, 1}},
	{5, 13, []uint32{1, 1, 1, 3, 11}},
	{5, 14, []uint32{1, 3, 5, 5, 31}},
	{6, 1, []uint32{1, 3, 3, 9, 7, 49}},
	{6, 13, []uint32{1, 1, 1, 15, 21, 21}},
	{6, 16, []uint32{1, 3, 1, 13, 27, 49}},
	{6, 19, []uint32{1, 1, 1, 15, 7, 5}},
	{6, 22, []uint32{1, 3, 1, 15, 13, 25}},
	{6, 25, []uint32{1, 1, 5, 5, 19, 61}},
	{7, 1, []uint32{1, 3, 7, 11, 23, 15, 103}},
}

// steps are the direction numbers of a dimension as 32-bit fractions.
func steps(dimension int) [32]uint32 {
	var v [32]uint32
	if dimension == 0 {
		for k := range v {
			v[k] = 1 << (31 - k)
		}
		return v
	}
	d := direction[dimension-1]
	s := int(d.degree)
	for k := range v {
		if k < s {
			v[k] = d.initial[k] << (31 - k)
			continue
		}
		v[k] = v[k-s] ^ v[k-s]>>s
		for j := 1; j < s; j++ {
			if d.coefficients>>(s-1-j)&1 == 1 {
				v[k] ^= v[k-j]
			}
		}
	}
	return v
}

// sequence returns the first n points of the Sobol' sequence in Gray-code order, as
// 32-bit fractions.
func sequence(n, dimensions int) [][]uint32 {
	all := make([][32]uint32, dimensions)
	for d := range all {
		all[d] = steps(d)
	}
	out := make([][]uint32, n)
	now := make([]uint32, dimensions)
	for i := range out {
		if i > 0 {
			k := bits.TrailingZeros32(uint32(i))
			for d := range now {
				now[d] ^= all[d][k]
			}
		}
		out[i] = append([]uint32(nil), now...)
	}
	return out
}

// Sobol returns the first n points of the Sobol' sequence, in [0, 1), shifted digit by
// digit by what the seed draws: no point lies at the origin, and every seed is as
// balanced as the sequence. Best balanced are powers of two.
func Sobol(n, dimensions int, seed uint64) [][]float64 {
	points := cube(n, dimensions)
	shift := rng.New(seed, purpose, "shift")
	for i, x := range sequence(n, dimensions) {
		for d := range x {
			// 32 digits of the sequence, then the shift's own below them.
			s := shift.Uint64(int64(d))
			points[i][d] = float64(uint64(x[d]^uint32(s>>32))<<21|s&(1<<21-1)) / (1 << 53)
		}
	}
	return points
}

// purpose keeps these draws apart from those of simulations.
const purpose = rng.Purpose(0xd5)

func name(dimension int) string { return "dimension " + strconv.Itoa(dimension) }
