package workloads

import (
	"math"
	"testing"

	"slosim/sim/clock"
)

// A rate shifted by d is at t what it was at t + d, whatever its shapes.
func TestShiftedRateIsTheRateLater(t *testing.T) {
	r := Rate{
		Mean: 5, Shape: "diurnal", Peak: 14 * clock.Hour, PeakToTrough: 3, Weekdays: []float64{1, 2, 1, 1, 1, .5, .4}, Growth: .1,
		Ramps:  []Ramp{{At: 30 * clock.Hour, Length: 2 * clock.Hour, Factor: 2}},
		Ladder: Ladder{At: 10 * clock.Hour, Every: clock.Hour, Step: .1, Steps: 5},
		Bursts: []Burst{{At: 3 * clock.Hour, Length: clock.Hour, Every: 7 * clock.Hour, Factor: 3}, {At: 40 * clock.Hour, Length: clock.Hour, Factor: 2}},
		Add:    []Rate{{Mean: 1, Shape: "windows", Windows: []Window{{At: 0, Factor: 1}, {At: 20 * clock.Hour, Factor: 4}}}},
	}
	const d, start = 33*clock.Hour + 7*clock.Minute, 5 * clock.Hour
	in, later := NewIntensity(&Class{Rate: r}, nil, start), NewIntensity(&Class{Rate: r.Shifted(d)}, nil, start+d)
	for at := clock.Time(0); at < clock.Time(20*clock.Hour); at += clock.Time(7 * clock.Minute) {
		if a, b := in.At(at.Add(d)), later.At(at); math.Abs(a/b-1) > 1e-12 {
			t.Fatalf("at %v: %g, shifted %g", at, a, b)
		}
	}
}
