package rng

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// χ² of 100 bins with 99 degrees of freedom lies in [60, 150] with probability
// > 0.999; serial and cross-purpose correlations of n draws are below 4/√n.
func TestDrawsAreUniformAndUncorrelated(t *testing.T) {
	const n = 200_000
	for _, stream := range []string{"chat", "code", ""} {
		for seed := uint64(0); seed < 4; seed++ {
			a, b := New(seed, Gap, stream), New(seed, PromptLength, stream)
			c := New(seed+1, Gap, stream)
			var bins [100]float64
			var lag, cross, seeds, mean float64
			prev := 0.5
			for i := int64(0); i < n; i++ {
				u := a.Float64(i)
				if u <= 0 || u >= 1 {
					t.Fatalf("draw %g outside (0,1)", u)
				}
				bins[int(u*100)]++
				mean += u - .5
				lag += (u - .5) * (prev - .5)
				cross += (u - .5) * (b.Float64(i) - .5)
				seeds += (u - .5) * (c.Float64(i) - .5)
				prev = u
			}
			chi := 0.0
			for _, o := range bins {
				chi += (o - n/100) * (o - n/100) / (n / 100)
			}
			if chi < 60 || chi > 150 {
				t.Errorf("stream %q seed %d: χ² = %.1f", stream, seed, chi)
			}
			limit := 4 / math.Sqrt(n)
			for name, v := range map[string]float64{"lag-1": lag * 12 / n, "purpose": cross * 12 / n, "seed": seeds * 12 / n, "mean": mean * math.Sqrt(12) / n} {
				if math.Abs(v) > limit {
					t.Errorf("stream %q seed %d: %s correlation %.5f > %.5f", stream, seed, name, v, limit)
				}
			}
		}
	}
}

func TestQuantilesHaveTheirMoments(t *testing.T) {
	const n = 100_000
	s := New(7, OutputLength, "x")
	for name, c := range map[string]struct {
		f        func(u float64) float64
		mean, sd float64
	}{
		"exp":      {Exp, 1, 1},
		"normal":   {Normal, 0, 1},
		"gamma4":   {func(u float64) float64 { return Gamma(u, 4) }, 1, .5},
		"gamma0.5": {func(u float64) float64 { return Gamma(u, .5) }, 1, math.Sqrt2},
	} {
		var m, q float64
		for i := int64(0); i < n; i++ {
			v := c.f(s.Float64(i))
			m += v
			q += v * v
		}
		m /= n
		sd := math.Sqrt(q/n - m*m)
		if math.Abs(m-c.mean) > 4*c.sd/math.Sqrt(n)+1e-9 || math.Abs(sd/c.sd-1) > 0.03 {
			t.Errorf("%s: mean %.4f sd %.4f, want %.4f %.4f", name, m, sd, c.mean, c.sd)
		}
	}
}

// The two ways of Exp agree with log1p to what it promises, on both sides of the draw
// where they meet.
func TestExpIsWithinItsBound(t *testing.T) {
	for _, u := range []float64{1e-16, 1e-9, 1. / 1024, math.Nextafter(1./1024, 0), math.Nextafter(1./1024, 1), .01, .3, .5, .999, 1 - 1e-9, 1 - 0x1p-53} {
		if got, want := Exp(u), -math.Log1p(-u); math.Abs(got/want-1) > 1e-13 {
			t.Errorf("the %g-quantile is %g, want %g", u, got, want)
		}
	}
	s := New(1, Gap, "x")
	for i := range int64(100_000) {
		if u := s.Float64(i); math.Abs(Exp(u)/-math.Log1p(-u)-1) > 1e-13 {
			t.Fatalf("the %g-quantile is %g, want %g", u, Exp(u), -math.Log1p(-u))
		}
	}
}

// Draws in one go are those one by one.
func TestFillDrawsWhatUint64Draws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(rapid.Uint64().Draw(t, "seed"), Gap, rapid.String().Draw(t, "stream"))
		i := rapid.Int64().Draw(t, "i")
		draws := make([]uint64, rapid.IntRange(0, 20).Draw(t, "n"))
		s.Fill(i, draws)
		for k, x := range draws {
			if want := s.Uint64(i + int64(k)); x != want {
				t.Fatalf("draw %d after %d is %x, want %x", k, i, x, want)
			}
		}
	})
}

func BenchmarkFloat64(b *testing.B) {
	s := New(1, Gap, "x")
	sum := 0.0
	for i := 0; i < b.N; i++ {
		sum += s.Float64(int64(i))
	}
	_ = sum
}
