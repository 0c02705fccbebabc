package workloads

import (
	"math"
	"testing"

	"slosim/sim/clock"
)

func lengths(t *testing.T, d Dist) Lengths {
	t.Helper()
	l, err := d.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The lognormal of SEMANTICS: mean and P99 come back from the samples.
func TestLognormalHasItsMeanAndP99(t *testing.T) {
	for _, c := range []struct{ mean, p99 float64 }{{2000, 8000}, {256, 1024}, {20000, 60000}, {2000, 6400}} {
		l := lengths(t, Dist{Kind: "lognormal", Mean: c.mean, P99: c.p99})
		if q := l.Quantile(.99); math.Abs(q/c.p99-1) > 1e-6 {
			t.Errorf("p99 %v, want %v", q, c.p99)
		}
		if m := l.Mean(func(x float64) float64 { return x }); math.Abs(m/c.mean-1) > 0.003 {
			t.Errorf("mean %v, want %v", m, c.mean)
		}
		for _, n := range []int32{1, int32(c.mean), int32(c.p99)} {
			share := l.ShareAtLeast(n)
			z := (math.Log(float64(n)-0.5) - l.mu) / l.sigma
			if want := 0.5 * math.Erfc(z/math.Sqrt2); math.Abs(share-want) > 1e-9 {
				t.Errorf("P(X ≥ %d) = %v, want %v", n, share, want)
			}
		}
	}
}

// A diurnal curve's cumulative rate has a closed form; the table must meet it
// everywhere, and its inverse must invert it.
func TestCurveInvertsTheDiurnalIntegral(t *testing.T) {
	c := Class{Rate: Rate{Mean: 5.5, Shape: "diurnal", Peak: 14 * clock.Hour, PeakToTrough: 3}}
	in := NewIntensity(&c, nil, 0)
	from, to := clock.Time(-30*clock.Minute), clock.Time(72*clock.Hour)
	exact := func(t clock.Time) float64 {
		w := 2 * math.Pi / 86400
		f := func(s float64) float64 { return 5.5 * (s + 0.5/w*math.Sin(w*(s-14*3600))) }
		return f(t.Seconds()) - f(from.Seconds())
	}
	curve := NewCurve(&in, from, to)
	if d := curve.Total() - exact(to); math.Abs(d) > 1e-6 {
		t.Errorf("total off by %g arrivals", d)
	}
	for u := 0.5; u < curve.Total(); u += 1000.37 {
		at, ok := curve.Invert(u)
		if d := exact(at) - u; !ok || math.Abs(d) > 1e-4 {
			t.Fatalf("Λ(Λ⁻¹(%g)) is off by %g arrivals", u, d)
		}
	}
	if _, ok := curve.Invert(curve.Total() + 1); ok {
		t.Error("inversion beyond the end")
	}
}

// Counts by hour follow the integral of the rate: χ² with 72 degrees of freedom
// lies below 120 with probability 0.9997. Bursts and a ramped launch are in.
func TestArrivalCountsFollowTheRate(t *testing.T) {
	c := Class{Name: "x", Stream: "x", Rate: Rate{Mean: 3, Shape: "diurnal", Peak: 9 * clock.Hour, PeakToTrough: 5, Burstiness: 1,
		Bursts: []Burst{{At: 5 * clock.Hour, Length: 20 * clock.Minute, Every: 11 * clock.Hour, Factor: 3}}}}
	changes := []Change{{Class: "x", At: 30 * clock.Hour, Ramp: 5 * clock.Hour, RateFactor: 2}}
	in := NewIntensity(&c, changes, 0)
	for seed := uint64(1); seed < 5; seed++ {
		a := NewArrivals(&c, in, seed, 0, clock.Time(72*clock.Hour))
		var counts [72]float64
		last := clock.Time(-1)
		for at, _, ok := a.Next(); ok; at, _, ok = a.Next() {
			if at < last {
				t.Fatal("time ran backwards")
			}
			last = at
			counts[at/clock.Time(clock.Hour)]++
		}
		chi := 0.0
		for h, n := range counts {
			want := in.Expected(clock.Time(h)*clock.Time(clock.Hour), clock.Time(h+1)*clock.Time(clock.Hour))
			chi += (n - want) * (n - want) / want
		}
		if chi > 120 {
			t.Errorf("seed %d: χ² = %.1f", seed, chi)
		}
	}
}

func TestBurstinessIsTheGammaShape(t *testing.T) {
	for _, b := range []float64{0.25, 1, 4} {
		c := Class{Stream: "x", Rate: Rate{Mean: 10, Shape: "constant", Burstiness: b}}
		in := NewIntensity(&c, nil, 0)
		a := NewArrivals(&c, in, 3, 0, clock.Time(3*clock.Hour))
		var n, sum, squares, last float64
		for at, _, ok := a.Next(); ok; at, _, ok = a.Next() {
			g := at.Seconds() - last
			last = at.Seconds()
			n++
			sum += g
			squares += g * g
		}
		mean := sum / n
		cv2 := (squares/n - mean*mean) / mean / mean
		if math.Abs(cv2*b-1) > 0.1 || math.Abs(mean*10-1) > 0.03 {
			t.Errorf("burstiness %g: mean gap %.4f s, CV² %.3f, want 0.1 and %.3f", b, mean, cv2, 1/b)
		}
	}
}

// A request keeps its lengths when rates, shares and other changes differ.
func TestShapesDoNotDependOnTheScenario(t *testing.T) {
	base := Class{Name: "chat", Stream: "chat", Prompt: Dist{Kind: "lognormal", Mean: 2000, P99: 8000}, Output: Dist{Kind: "exponential", Mean: 256}}
	longer := Dist{Kind: "lognormal", Mean: 20000, P99: 60000}
	none, err := NewShaper(&base, nil, 9)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := NewShaper(&base, []Change{{Name: "f", Class: "chat", At: clock.Hour, Ramp: clock.Hour, Share: 0.3, Prompt: &longer}}, 9)
	if err != nil {
		t.Fatal(err)
	}
	var a, b Request
	joined := 0
	for i := int64(0); i < 20_000; i++ {
		at := clock.Time(i) * clock.Time(clock.Second)
		none.Shape(i, at, &a)
		moved.Shape(i, at, &b)
		if b.Cohort == 0 && a.Prompt != b.Prompt || a.Output != b.Output {
			t.Fatalf("request %d: %+v and %+v", i, a, b)
		}
		if b.Cohort != 0 {
			joined++
			if at < clock.Time(clock.Hour) || b.Prompt <= a.Prompt {
				t.Fatalf("request %d joined at %v with %d tokens instead of %d", i, at, b.Prompt, a.Prompt)
			}
		}
	}
	if want := 0.3 * (20_000 - 3600 - 1800); math.Abs(float64(joined)-want) > 250 {
		t.Errorf("%d joined, want about %.0f", joined, want)
	}
}
