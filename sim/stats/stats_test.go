package stats

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naive is NumPy's linear interpolation over sorted values with infinities.
func naive(values []int64, inf int, q float64) float64 {
	s := make([]float64, 0, len(values)+inf)
	for _, v := range values {
		s = append(s, float64(v))
	}
	for range inf {
		s = append(s, math.Inf(1))
	}
	slices.Sort(s)
	h := q * float64(len(s)-1)
	low := int(h)
	if h == float64(low) || low+1 == len(s) {
		return s[low]
	}
	return s[low] + (h-float64(low))*(s[low+1]-s[low])
}

func TestQuantilesEqualSortedInterpolation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 3000).Draw(t, "values")
		inf := rapid.IntRange(0, 40).Draw(t, "inf")
		qs := []float64{0, .01, .5, .9, .95, .99, 1}
		var s Sample
		for _, v := range values {
			s.Add(v)
		}
		for range inf {
			s.AddInf()
		}
		for i, got := range s.Quantiles(qs...) {
			if want := naive(values, inf, qs[i]); got != want && math.Abs(got-want) > 1e-9*want {
				t.Fatalf("q%.2f = %v, want %v", qs[i], got, want)
			}
		}
	})
}

func TestHistogramQuantilesKeepTheirBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 5, 2000).Draw(t, "values")
		s := Sample{limit: 2}
		for _, v := range values {
			s.Add(v)
		}
		sorted := slices.Sorted(slices.Values(values))
		for _, k := range []int{0, len(values) / 2, len(values) - 1} {
			got := s.Quantiles(float64(k) / float64(len(values)-1))[0]
			// rank arithmetic may land a hair below k: allow the neighbours
			lo, hi := float64(sorted[max(k-1, 0)]), float64(sorted[k])
			if got < lo*(1-2*s.RelError())-1 || got > hi*(1+2*s.RelError())+1 {
				t.Fatalf("rank %d: %v not within %v of [%v, %v]", k, got, s.RelError(), lo, hi)
			}
		}
		if s.RelError() > 0.001 {
			t.Fatalf("error bound %v", s.RelError())
		}
	})
}

// Student's t over three values by hand: mean 2, sd 1, t(2) = 4.302653.
func TestEstimateIsStudentT(t *testing.T) {
	e := Of([]float64{1, 2, 3, math.NaN()}, 30)
	if e.R != 3 || e.V != 2 || math.Abs(e.Hi-(2+4.302653/math.Sqrt(3))) > 1e-5 {
		t.Fatalf("%+v", e)
	}
	if e := Of([]float64{1, math.Inf(1)}, 2); !math.IsInf(e.V, 1) || e.Lo != 1 {
		t.Fatalf("%+v", e)
	}
}

func TestMergedSamplesEqualOne(t *testing.T) {
	var a, b, whole Sample
	for i := int64(0); i < 1000; i++ {
		v := (i * 7919) % 1009
		whole.Add(v)
		if i%3 == 0 {
			a.Add(v)
		} else {
			b.Add(v)
		}
	}
	a.AddInf()
	whole.AddInf()
	var m Sample
	m.Merge(&a, &b)
	x, y := m.Quantiles(.5, .99), whole.Quantiles(.5, .99)
	if x[0] != y[0] || x[1] != y[1] || m.Mean() != whole.Mean() {
		t.Fatalf("%v %v", x, y)
	}
}
