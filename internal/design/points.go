package design

import (
	"cmp"
	"slices"

	"slosim/sim/rng"
)

// LatinHypercube returns n points in the unit cube of the given dimensions, each in
// [0, 1). In every dimension each of the n equal strata holds one point, at random
// within it.
func LatinHypercube(n, dimensions int, seed uint64) [][]float64 {
	points := cube(n, dimensions)
	for d := range dimensions {
		order := rng.New(seed, purpose, "order of "+name(d))
		within := rng.New(seed, purpose, "within "+name(d))
		for i, stratum := range shuffled(n, order) {
			points[i][d] = (float64(stratum) + within.Float64(int64(i))) / float64(n)
			if points[i][d] >= 1 {
				points[i][d] = oneBelow
			}
		}
	}
	return points
}

// oneBelow is the largest float64 below 1.
const oneBelow = 1 - 1.0/(1<<53)

// shuffled returns 0 to n-1 in an order that the source draws.
func shuffled(n int, s rng.Source) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(s.Uint64(int64(a)), s.Uint64(int64(b))) })
	return out
}

func cube(n, dimensions int) [][]float64 {
	all := make([]float64, n*dimensions)
	points := make([][]float64, n)
	for i := range points {
		points[i] = all[i*dimensions : (i+1)*dimensions : (i+1)*dimensions]
	}
	return points
}

// Product returns the full grid: all combinations of the indices below sizes, the
// last one running fastest.
func Product(sizes []int) [][]int {
	total := 1
	for _, n := range sizes {
		total *= n
	}
	out := make([][]int, total)
	for i := range out {
		out[i] = make([]int, len(sizes))
		rest := i
		for d := len(sizes) - 1; d >= 0; d-- {
			out[i][d] = rest % sizes[d]
			rest /= sizes[d]
		}
	}
	return out
}
