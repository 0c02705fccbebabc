package workloads

import (
	"math"
	"testing"

	"slosim/sim/clock"
)

// draw returns all arrivals of a rate over [from, to).
func draw(r Rate, changes []Change, seed uint64, from, to clock.Time) []clock.Time {
	c := Class{Name: "x", Stream: "x", Rate: r}
	a := NewArrivals(&c, NewIntensity(&c, changes, 0), seed, from, to)
	var out []clock.Time
	for at, _, ok := a.Next(); ok; at, _, ok = a.Next() {
		out = append(out, at)
	}
	return out
}

// counts returns how many arrivals fall into each window of a width.
func counts(at []clock.Time, from, to clock.Time, width clock.Duration) []float64 {
	out := make([]float64, (to.Sub(from)+width-1)/width)
	for _, t := range at {
		out[t.Sub(from)/width]++
	}
	return out
}

func meanVariance(xs []float64) (mean, variance float64) {
	for _, x := range xs {
		mean += x
	}
	mean /= float64(len(xs))
	for _, x := range xs {
		variance += (x - mean) * (x - mean)
	}
	return mean, variance / float64(len(xs)-1)
}

var shapes = map[string]Rate{
	"hourly":  {Mean: 1, Shape: "hourly", Hours: []float64{.2, .1, .1, .1, .2, .4, .8, 1.2, 1.6, 1.8, 1.8, 1.6, 1.4, 1.6, 1.8, 1.8, 1.6, 1.4, 1.2, 1, .8, .6, .5, .4}},
	"weekly":  {Mean: 1, Shape: "diurnal", Peak: 14 * clock.Hour, PeakToTrough: 4, Weekdays: []float64{1, 1, 1.1, 1, .9, .5, .4}},
	"growth":  {Mean: 0.7, Shape: "constant", Growth: 0.6},
	"ramps":   {Mean: 0.5, Shape: "constant", Ramps: []Ramp{{At: clock.Day, Length: 7 * clock.Hour, Factor: 3}, {At: 5 * clock.Day, Length: clock.Minute, Factor: 0.5}}},
	"ladder":  {Mean: 0.5, Shape: "constant", Ladder: Ladder{At: clock.Day, Every: 11 * clock.Hour, Step: 0.25, Steps: 9}},
	"windows": {Mean: 1, Shape: "windows", Windows: []Window{{0, 1}, {13 * clock.Hour, 0}, {15 * clock.Hour, 2}, {100 * clock.Hour, 0.3}}},
	"sum":     {Mean: 0.5, Shape: "constant", Add: []Rate{{Mean: 0.5, Shape: "diurnal", Peak: 3 * clock.Hour, PeakToTrough: 9}, {Mean: 0.2, Shape: "constant", Growth: 0.3}}},
}

// Counts by hour over ten days follow each shape's rate: χ² with at most 240
// degrees of freedom lies below 320 with probability 0.9996.
func TestEveryShapeGivesItsRate(t *testing.T) {
	to := clock.Time(10 * clock.Day)
	for name, r := range shapes {
		r.Burstiness = 1
		c := Class{Name: "x", Stream: "x", Rate: r}
		in := NewIntensity(&c, nil, 0)
		for seed := uint64(1); seed < 3; seed++ {
			chi := 0.0
			for h, n := range counts(draw(r, nil, seed, 0, to), 0, to, clock.Hour) {
				from := clock.Time(h) * clock.Time(clock.Hour)
				want := 0.0 // by a midpoint sum that knows nothing of cells
				for k := range 360 {
					want += 10 * in.At(from+clock.Time(k)*clock.Time(10*clock.Second)+clock.Time(5*clock.Second))
				}
				switch {
				case want > 1e-9:
					chi += (n - want) * (n - want) / want
				case n > 0:
					t.Errorf("%s: %v arrivals in an hour without a rate", name, n)
				}
			}
			if chi > 320 {
				t.Errorf("%s, seed %d: χ² = %.1f", name, seed, chi)
			}
		}
	}
}

// The ladder's rate is exactly start + k·step between its instants, and its
// integral is exact.
func TestLadderStepsAreExact(t *testing.T) {
	r := Rate{Mean: 5, Shape: "constant", Ladder: Ladder{At: 4 * clock.Minute, Every: 2 * clock.Minute, Step: 0.2, Steps: 5}}
	c := Class{Name: "x", Stream: "x", Rate: r}
	in := NewIntensity(&c, nil, 0)
	for m, want := range []float64{5, 5, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 10, 10} {
		from := clock.Time(m) * clock.Time(clock.Minute)
		if got := in.At(from); got != want {
			t.Errorf("minute %d: %v/s, want %v", m, got, want)
		}
		if got := in.At(from.Add(clock.Minute) - 1); got != want {
			t.Errorf("end of minute %d: %v/s, want %v", m, got, want)
		}
	}
	if n := in.Expected(0, clock.Time(16*clock.Minute)); math.Abs(n-60*(20+2*(6+7+8+9)+40)) > 1e-6 {
		t.Errorf("%v arrivals expected", n)
	}
}

// Weekdays and hours follow the calendar of start, before t = 0 too.
func TestShapesFollowTheCalendar(t *testing.T) {
	c := Class{Rate: Rate{Mean: 1, Shape: "constant", Weekdays: []float64{1, 2, 3, 4, 5, 6, 7}}}
	in := NewIntensity(&c, nil, 5*clock.Day+6*clock.Hour) // Saturday, 06:00
	for hours, want := range map[int]float64{0: 6, -7: 5, 17: 6, 18: 7, 41: 7, 42: 1, -200: 4} {
		if got := in.At(clock.Time(hours) * clock.Time(clock.Hour)); got != want {
			t.Errorf("%d h after Saturday 06:00: factor %v, want %v", hours, got, want)
		}
	}
}

// Over many bursts and regimes the rate is what its closed form says, within
// four standard errors as measured over blocks of two days.
func TestRandomRatesHaveTheirMean(t *testing.T) {
	to := clock.Time(400 * clock.Day)
	for name, r := range map[string]Rate{
		"bursts": {Mean: 0.05, Shape: "constant", Burstiness: 1, RandomBursts: RandomBursts{PerSecond: 6. / 86400,
			Length: Dist{Kind: "exponential", Mean: 1800}, Factor: Dist{Kind: "uniform", Min: 2, Max: 6}}},
		"regimes": {Mean: 0.05, Shape: "constant", Burstiness: 1, Regimes: []Regime{{1, 3 * clock.Hour}, {4, clock.Hour}, {0, 30 * clock.Minute}}},
	} {
		c := Class{Name: "x", Stream: "x", Rate: r}
		in := NewIntensity(&c, nil, 0)
		n := counts(draw(r, nil, 7, 0, to), 0, to, 2*clock.Day)
		mean, variance := meanVariance(n)
		want := in.Expected(0, to) / float64(len(n))
		if e := math.Sqrt(variance / float64(len(n))); math.Abs(mean-want) > 4*e {
			t.Errorf("%s: %.1f arrivals in two days, want %.1f ± %.1f", name, mean, want, e)
		}
		if variance < 3*mean {
			t.Errorf("%s: variance %.0f at mean %.0f: nothing bursts", name, variance, mean)
		}
	}
	bursts := Rate{Mean: 1, RandomBursts: RandomBursts{PerSecond: 6. / 86400, Length: Dist{Kind: "fixed", Mean: 1800}, Factor: Dist{Kind: "fixed", Mean: 5}}}
	if f := expectedFactors(&bursts); math.Abs(f.mean-1.5) > 1e-9 { // 6 a day of half an hour each are 1/8 of the time, at +4
		t.Errorf("mean factor %v", f.mean)
	}
}

// A Hawkes process keeps the mean, and its counts over long windows have the
// dispersion 1/(1 − branching)².
func TestHawkesHasItsDispersion(t *testing.T) {
	to := clock.Time(60 * clock.Day)
	for _, branching := range []float64{0.3, 0.6, 0.8} {
		r := Rate{Mean: 0.5, Shape: "constant", Burstiness: 1, Hawkes: Hawkes{Branching: branching, Decay: 2 * clock.Second}}
		n := counts(draw(r, nil, 5, 0, to), 0, to, 10*clock.Minute)
		mean, variance := meanVariance(n)
		want := 1 / (1 - branching) / (1 - branching)
		spread := math.Sqrt(want / mean / float64(len(n))) // of the mean, relative
		if math.Abs(mean/300-1) > 4*spread {
			t.Errorf("branching %g: %.2f arrivals in ten minutes, want 300 ± %.1f", branching, mean, 300*spread)
		}
		// The sample variance of 8,640 nearly normal counts is good to √(2/8640) = 1.5 %.
		if math.Abs(variance/mean/want-1) > 0.08 {
			t.Errorf("branching %g: dispersion %.2f, want %.2f", branching, variance/mean, want)
		}
	}
}

// The arrival rule of "vllm bench serve": n arrivals, the last one at n/rate,
// whatever the seed; the gaps keep their CV.
func TestVLLMBenchArrivalsEndOnTime(t *testing.T) {
	for _, shape := range []float64{1, 0.5} {
		for seed := range uint64(5) {
			at := draw(Rate{Mean: 8, Shape: "constant", Burstiness: shape, Requests: 4000}, nil, seed, -clock.Time(clock.Minute), clock.Time(clock.Hour))
			if last := at[len(at)-1].Add(clock.Minute); len(at) != 4000 || math.Abs(last.Seconds()-500) > 1e-6 {
				t.Fatalf("%d arrivals, the last after %v", len(at), last.Seconds())
			}
			gaps := make([]float64, len(at)-1)
			for i := range gaps {
				gaps[i] = at[i+1].Sub(at[i]).Seconds()
			}
			if mean, variance := meanVariance(gaps); math.Abs(variance/mean/mean*shape-1) > 0.2 {
				t.Errorf("CV² %.3f at burstiness %g", variance/mean/mean, shape)
			}
		}
	}
}

// Clients share out the rate; those that fall silent in a window send nothing in
// it, and few bursty ones make the whole bursty.
func TestClientsMergeInOrder(t *testing.T) {
	on := []Window{{0, 0.5}, {clock.Hour, 0}, {2 * clock.Hour, 0.5}}
	r := Rate{Mean: 4, Shape: "windows", Windows: []Window{{0, 1}, {clock.Hour, 0}, {2 * clock.Hour, 1}}, Burstiness: 1,
		Clients: []Caller{{Windows: on, Gaps: []Gap{{Shape: 0.2}, {Shape: 1}, {Shape: 0.5, Weibull: true}}}, {Windows: on, Gaps: []Gap{{Shape: 1}, {Shape: 1}, {Shape: 1}}}}}
	var sum [3]float64
	for seed := range uint64(20) {
		last := clock.Time(-1)
		for _, at := range draw(r, nil, seed, 0, clock.Time(3*clock.Hour)) {
			if at < last {
				t.Fatal("time ran backwards")
			}
			last = at
			sum[at/clock.Time(clock.Hour)]++
		}
	}
	for h, want := range []float64{20 * 4 * 3600, 0, 20 * 4 * 3600} {
		if math.Abs(sum[h]-want) > 0.02*want { // 4 standard errors at CV² 5 are 1.3 %
			t.Errorf("hour %d: %v arrivals, want %v", h, sum[h], want)
		}
	}
}

// A canary goes up in its steps and is gone after the roll-back.
func TestCanaryStepsAndRollBack(t *testing.T) {
	c := Change{At: clock.Hour, Ramp: 3 * clock.Hour, Share: 1, Until: 6 * clock.Hour,
		Steps: []Step{{0, 0.01}, {clock.Hour, 0.1}, {2 * clock.Hour, 0.5}, {3 * clock.Hour, 1}}}
	for minute, want := range map[int]float64{0: 0, 59: 0, 60: .01, 119: .01, 120: .1, 180: .5, 239: .5, 240: 1, 359: 1, 360: 0, 900: 0} {
		if got := c.Progress(clock.Time(minute) * clock.Time(clock.Minute)); got != want {
			t.Errorf("minute %d: %v, want %v", minute, got, want)
		}
	}
	r := Rate{Mean: 1, Shape: "constant"}
	class := Class{Name: "x", Rate: r}
	c.Class, c.RateFactor = "x", 3
	in := NewIntensity(&class, []Change{c}, 0)
	if n, want := in.Expected(0, clock.Time(8*clock.Hour)), 3600*(8+2*(.01+.1+.5+2)); math.Abs(n-want) > 1e-6 {
		t.Errorf("%v arrivals expected, want %v", n, want)
	}
}
