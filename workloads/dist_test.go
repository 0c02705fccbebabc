package workloads

import (
	"math"
	"slices"
	"testing"
)

// Each distribution's samples have its quantiles: the empirical quantile of n
// draws is within four standard errors, √(p(1−p)/n)/density, of the closed form.
func TestLengthsHaveTheirQuantiles(t *testing.T) {
	mix := Dist{Kind: "mixture", Parts: []Part{{0.7, LogNormal(.5, 300, .95, 2000)}, {0.25, Dist{Kind: "normal", Mean: 9000, SD: 500}}, {0.05, Dist{Kind: "fixed", Mean: 32000}}}}
	for name, c := range map[string]struct {
		d    Dist
		want map[float64]float64
	}{
		"two percentiles":  {LogNormal(.5, 1020, .99, 4142), map[float64]float64{.5: 1020, .99: 4142}},
		"normal":           {Dist{Kind: "normal", Mean: 1000, SD: 100}, map[float64]float64{.5: 1000, .8413447: 1100, .9772499: 1200}},
		"pareto":           {Dist{Kind: "pareto", Min: 100, Alpha: 1.5}, map[float64]float64{.5: 100 * math.Pow(2, 1/1.5), .99: 100 * math.Pow(100, 1/1.5)}},
		"capped":           {Dist{Kind: "pareto", Min: 100, Alpha: 1.5, Max: 1000}, map[float64]float64{.5: 100 * math.Pow(2, 1/1.5), .99: 1000}},
		"exponential+tail": {Dist{Kind: "exponential", Mean: 200, Tail: Tail{From: .9, Alpha: 2}}, map[float64]float64{.5: 200 * math.Ln2, .99: 200 * math.Log(10) * math.Sqrt(10)}},
		"mixture":          {mix, map[float64]float64{.35: 300, .825: 9000, .96: 32000, .999: 32000}},
	} {
		l := lengths(t, c.d)
		const n = 400_000
		xs := make([]int32, n)
		for i := range xs {
			xs[i] = l.At((float64(i*7919%n) + 0.5) / n) // every stratum once
		}
		slices.Sort(xs)
		for p, want := range c.want {
			if got := float64(xs[int(p*n)]); math.Abs(got/want-1) > 0.012 {
				t.Errorf("%s: P%g is %v, want %.1f", name, 100*p, got, want)
			}
		}
		for _, x := range []int32{1, 150, 1000, 9000, 40000} {
			k, _ := slices.BinarySearch(xs, x)
			if got, want := l.ShareAtLeast(x), 1-float64(k)/n; math.Abs(got-want) > 1e-4 {
				t.Errorf("%s: P(X ≥ %d) = %.5f, samples say %.5f", name, x, got, want)
			}
		}
	}
}

// A mixture of two lengths has just these two.
func TestMixturesJump(t *testing.T) {
	l := lengths(t, Dist{Kind: "mixture", Parts: []Part{{0.7, Dist{Kind: "fixed", Mean: 5}}, {0.1, Dist{Kind: "uniform", Min: 4000, Max: 4100}}, {0.2, Dist{Kind: "fixed", Mean: 90_000}}}})
	for u, want := range map[float64]int32{.001: 5, .5: 5, .699: 5, .75: 4050, .801: 90_000, .999: 90_000} {
		if got := l.At(u); math.Abs(float64(got)/float64(want)-1) > 0.001 {
			t.Errorf("the %g-quantile is %d, want %d", u, got, want)
		}
	}
	for n, want := range map[int32]float64{5: 1, 6: .3, 4000: .3, 4050: .255, 5000: .2, 90_000: .2, 90_001: 0} {
		if got := l.ShareAtLeast(n); math.Abs(got-want) > 0.006 {
			t.Errorf("P(X ≥ %d) = %g, want %g", n, got, want)
		}
	}
}

// A mean and any percentile give back both.
func TestLogNormalByMeanAndPercentile(t *testing.T) {
	for _, c := range []struct{ mean, p, x float64 }{{1000, .5, 600}, {1000, .9, 2000}, {1000, .95, 3000}, {1000, .99, 4000}, {1000, .999, 9000}, {1000, .1, 200}} {
		d, ok := LogNormalMean(c.mean, c.p, c.x)
		l := lengths(t, d)
		if q := l.Quantile(c.p); !ok || math.Abs(q/c.x-1) > 1e-9 || math.Abs(d.Mean/c.mean-1) > 1e-9 {
			t.Errorf("mean %g and P%g %g: got %g and %g", c.mean, 100*c.p, c.x, d.Mean, q)
		}
	}
	if _, ok := LogNormalMean(1000, .5, 1200); ok {
		t.Error("a lognormal's median lies below its mean")
	}
	if _, ok := LogNormalMean(1000, .99, 50_000); ok {
		t.Error("no lognormal has P99 50 times the mean")
	}
}

// Prompt and output have the rank correlation that is asked for, within four
// standard errors, 4/√n, and their distributions stay.
func TestPromptAndOutputAreCorrelated(t *testing.T) {
	const n = 60_000
	for _, want := range []float64{-0.6, 0.2, 0.9} {
		c := Class{Name: "x", Stream: "x", Prompt: Dist{Kind: "lognormal", Mean: 2000, P99: 8000}, Output: Dist{Kind: "exponential", Mean: 2560}, Correlation: want}
		s, err := NewShaper(&c, nil, 3)
		if err != nil {
			t.Fatal(err)
		}
		prompts, outputs := make([]float64, n), make([]float64, n)
		var r Request
		for i := range prompts {
			s.Shape(int64(i), 0, &r)
			prompts[i], outputs[i] = float64(r.Prompt), float64(r.Output)
		}
		if got := pearson(ranks(prompts), ranks(outputs)); math.Abs(got-want) > 4/math.Sqrt(n) {
			t.Errorf("rank correlation %.4f, want %g", got, want)
		}
		if mean, _ := meanVariance(outputs); math.Abs(mean/2560-1) > 4/math.Sqrt(n) {
			t.Errorf("mean output %.1f", mean)
		}
	}
}

func ranks(xs []float64) []float64 {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case xs[a] < xs[b]:
			return -1
		case xs[a] > xs[b]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(xs))
	for k := 0; k < len(order); { // ties share their mean rank
		end := k
		for end < len(order) && xs[order[end]] == xs[order[k]] {
			end++
		}
		for _, i := range order[k:end] {
			out[i] = float64(k+end-1) / 2
		}
		k = end
	}
	return out
}

func pearson(xs, ys []float64) float64 {
	mx, vx := meanVariance(xs)
	my, vy := meanVariance(ys)
	sum := 0.0
	for i := range xs {
		sum += (xs[i] - mx) * (ys[i] - my)
	}
	return sum / float64(len(xs)-1) / math.Sqrt(vx*vy)
}

// Popular system prompts are drawn in proportion to k^−skew, and an output cap
// holds for the cohort only.
func TestTenantsAreHeavyTailedAndCapsHold(t *testing.T) {
	c := Class{Name: "x", Stream: "x", Prompt: Dist{Kind: "fixed", Mean: 3000}, Output: Dist{Kind: "fixed", Mean: 900},
		System: System{Tokens: 1600, Variants: 50, Skew: 1.2}}
	changes := []Change{{Name: "capped", Class: "x", Share: 0.5, OutputCap: 256, System: &System{Tokens: 800, Variants: 1}}}
	s, err := NewShaper(&c, changes, 3)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]float64{}
	var r Request
	const n = 100_000
	old := 0.0
	for i := range int64(n) {
		s.Shape(i, 1, &r)
		switch r.Cohort {
		case 0:
			seen[r.Chain.Unit(0)]++
			old++
			if r.Output != 900 || r.Chain.UnitTokens() != 1600 {
				t.Fatalf("%+v", r)
			}
		default:
			if r.Output != 256 || r.Chain.UnitTokens() != 800 || seen[r.Chain.Unit(0)] > 0 {
				t.Fatalf("%+v", r)
			}
		}
	}
	most, sum := 0.0, 0.0
	for _, k := range seen {
		most = max(most, k)
	}
	for k := 1; k <= 50; k++ {
		sum += math.Pow(float64(k), -1.2)
	}
	if want := old / sum; len(seen) != 50 || math.Abs(most-want) > 4*math.Sqrt(want) {
		t.Errorf("%d system prompts, the first with %v of %v requests, want %.0f", len(seen), most, old, want)
	}
}
