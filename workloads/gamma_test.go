package workloads

import (
	"math"
	"testing"

	"slosim/sim/rng"
)

// The quantiles of the gamma distribution are gonum's, from the smallest shape
// that an experiment may have to the largest, and near 0 those of its power law.
func TestGammaQuantilesAreRight(t *testing.T) {
	for _, shape := range []float64{0.01, 0.05, 0.2, 0.25, 0.5, 0.9, 0.999, 1, 1.001, 1.5, 2, 4, 10, 37.5, 100} {
		g := newGammaGaps(shape)
		for _, u := range []float64{1e-16, 1e-9, 1e-4, .01, .1, .3, .5, .7, .9, .95, .99, .999, .9999, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12} {
			got, want := g.quantile(u), rng.Gamma(u, shape)
			if want < 1e-9 { // gonum gives up there; P(x) → x^shape/Γ(shape + 1)
				logG, _ := math.Lgamma(shape + 1)
				want = math.Exp((math.Log(u)+logG)/shape) / shape
			}
			if math.Abs(got-want) > 1e-8*want+1e-300 {
				t.Errorf("shape %g: the %g-quantile is %g, want %g", shape, u, got, want)
			}
		}
		last := 0.0
		for i := range 1000 {
			x := g.quantile((float64(i) + .5) / 1000)
			if !(x >= last) {
				t.Errorf("shape %g: quantiles fall from %g to %g", shape, last, x)
			}
			last = x
		}
	}
}

func BenchmarkGammaGap(b *testing.B) {
	g := newGammaGaps(0.25)
	src := rng.New(1, rng.Gap, "x")
	i := int64(0)
	for b.Loop() {
		g.quantile(src.Float64(i))
		i++
	}
}
