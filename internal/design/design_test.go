package design

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Each stratum of each dimension holds one point of a Latin hypercube.
func TestALatinHypercubeHitsEachStratumOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		d := rapid.IntRange(1, MaxDimensions).Draw(t, "dimensions")
		points := LatinHypercube(n, d, rapid.Uint64().Draw(t, "seed"))
		balanced(t, points, n, d)
	})
}

// balanced wants one point in each of the n strata of each dimension.
func balanced(t interface{ Fatalf(string, ...any) }, points [][]float64, n, d int) {
	for k := range d {
		hit := make([]bool, n)
		for _, p := range points {
			if p[k] < 0 || p[k] >= 1 {
				t.Fatalf("dimension %d: %g is outside of [0, 1)", k, p[k])
			}
			s := int(p[k] * float64(n))
			if hit[s] {
				t.Fatalf("dimension %d: stratum %d of %d is hit twice", k, s, n)
			}
			hit[s] = true
		}
	}
}

// The dimensions of a hypercube are drawn apart, and so are seeds.
func TestHypercubesAreUncorrelatedAndSeeded(t *testing.T) {
	const n = 2000
	p := LatinHypercube(n, 3, 1)
	for a := range 3 {
		for b := range a {
			if r := correlation(p, a, b); math.Abs(r) > 4/math.Sqrt(n) {
				t.Errorf("dimensions %d and %d: r = %.3f", a, b, r)
			}
		}
	}
	q := LatinHypercube(n, 3, 2)
	if !slices.Equal(p[7], LatinHypercube(n, 3, 1)[7]) || slices.Equal(p[7], q[7]) {
		t.Error("a seed gives the same points, another seed others")
	}
}

func correlation(p [][]float64, a, b int) float64 {
	var sum float64
	for _, x := range p {
		sum += (x[a] - .5) * (x[b] - .5)
	}
	return sum / float64(len(p)) * 12
}

// The first points are those that Joe and Kuo print for their generator.
func TestSobolBeginsAsPublished(t *testing.T) {
	want := [][]float64{
		{0, 0, 0}, {.5, .5, .5}, {.75, .25, .25}, {.25, .75, .75}, {.375, .375, .625},
		{.875, .875, .125}, {.625, .125, .875}, {.125, .625, .375}, {.1875, .3125, .9375}, {.6875, .8125, .4375},
	}
	for i, x := range sequence(len(want), 3) {
		for d, u := range x {
			if got := float64(u) / (1 << 32); got != want[i][d] {
				t.Errorf("point %d: %g in dimension %d, want %g", i, got, d, want[i][d])
			}
		}
	}
}

// 2^m points hit each of the 2^m strata of every dimension once, shifted or not, and
// the first two dimensions are a (0, m, 2)-net: each elementary box holds one.
func TestSobolIsBalanced(t *testing.T) {
	for _, seed := range []uint64{1, 2, 1 << 40} {
		points := Sobol(1<<10, MaxDimensions, seed)
		balanced(t, points, 1<<10, MaxDimensions)
		for m := 0; m <= 10; m++ {
			wide, high := 1<<m, 1<<(10-m)
			seen := map[[2]int]bool{}
			for _, p := range points {
				box := [2]int{int(p[0] * float64(wide)), int(p[1] * float64(high))}
				if seen[box] {
					t.Fatalf("seed %d: box %v of %d by %d holds two points", seed, box, wide, high)
				}
				seen[box] = true
			}
		}
	}
	if slices.Equal(Sobol(4, 2, 1)[0], Sobol(4, 2, 2)[0]) {
		t.Error("two seeds give the same shift")
	}
}

// discrepancy is the centred L2 discrepancy (F. J. Hickernell, Math. Comp. 67 (1998)
// 299): how far points are from even, 0 = not at all.
func discrepancy(p [][]float64) float64 {
	n, d := float64(len(p)), len(p[0])
	first := math.Pow(13.0/12, float64(d))
	var second, third float64
	for _, x := range p {
		product := 1.0
		for _, v := range x {
			c := math.Abs(v - .5)
			product *= 1 + c/2 - c*c/2
		}
		second += product
		for _, y := range p {
			product := 1.0
			for k := range x {
				product *= 1 + math.Abs(x[k]-.5)/2 + math.Abs(y[k]-.5)/2 - math.Abs(x[k]-y[k])/2
			}
			third += product
		}
	}
	return math.Sqrt(first - 2/n*second + third/n/n)
}

// Of 256 points in 6 dimensions Sobol's lie more evenly than a hypercube's, and these
// more evenly than independent ones would (whose mean square is known).
func TestDesignsAreMoreEvenThanChance(t *testing.T) {
	const n, d = 256, 6
	random := math.Sqrt((math.Pow(5.0/4, d) - math.Pow(13.0/12, d)) / n)
	hypercube, sobol := discrepancy(LatinHypercube(n, d, 3)), discrepancy(Sobol(n, d, 3))
	t.Logf("independent %.4f, hypercube %.4f, Sobol %.4f", random, hypercube, sobol)
	if !(sobol < .5*random && hypercube < .9*random && sobol < hypercube) {
		t.Errorf("independent %.4f, hypercube %.4f, Sobol %.4f", random, hypercube, sobol)
	}
}

func TestTheGridHasEveryCombinationOnce(t *testing.T) {
	got := fmt.Sprint(Product([]int{2, 3}))
	if got != "[[0 0] [0 1] [0 2] [1 0] [1 1] [1 2]]" {
		t.Error(got)
	}
}

// Values are what is written: no more digits than shown, units kept, integers whole.
func TestFactorsWriteWhatTheyMean(t *testing.T) {
	for _, c := range []struct {
		f    Factor
		u    []float64
		want string
	}{
		{Factor{From: 2, To: 20, Unit: "/s"}, []float64{0, .5, .99999999}, "[2/s 11/s 20/s]"},
		{Factor{From: 1, To: 100, Log: true}, []float64{0, .5, 1. / 3}, "[1 10 4.64159]"},
		{Factor{From: 1, To: 4, Integer: true}, []float64{0, .24, .26, .76, .9999}, "[1 1 2 4 4]"},
		{Factor{From: 1, To: 1000, Integer: true, Log: true}, []float64{0, .5}, "[1 32]"},
		{Factor{Values: []string{"h100", "h200"}}, []float64{0, .49, .5, .99}, "[h100 h100 h200 h200]"},
	} {
		var got []string
		for _, u := range c.u {
			got = append(got, c.f.At(u))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v, want %s", c.f, got, c.want)
		}
	}
	for _, c := range []struct {
		f    Factor
		want string
	}{
		{Factor{From: 2, To: 20, Unit: "/s", Steps: 4}, "[2/s 8/s 14/s 20/s]"},
		{Factor{From: 1, To: 8, Log: true, Steps: 4}, "[1 2 4 8]"},
		{Factor{From: 1, To: 3, Integer: true, Steps: 9}, "[1 2 3]"},
		{Factor{From: 5, To: 9, Steps: 1}, "[5]"},
	} {
		if got := fmt.Sprint(c.f.Levels()); got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
	for text, want := range map[string]string{"8/s": "8 /s true", "-1.5 %": "-1.5 % true", "h100": "0  false", "": "0  false", "20": "20  true"} {
		if v, unit, ok := Split(text); fmt.Sprint(v, " ", unit, " ", ok) != want {
			t.Errorf("%q: %v %q %v", text, v, unit, ok)
		}
	}
}
