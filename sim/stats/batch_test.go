package stats

import (
	"math"
	"testing"

	"slosim/sim/rng"
)

// Intervals from batches of one run of independent events hold the truth in 90 to
// 99 % of 400 runs.
func TestBatchesOfOneRunHoldTheTruth(t *testing.T) {
	held := 0
	for run := range 400 {
		source := rng.New(rng.Derive(7, run), rng.Gap, "batches")
		part, all := make([]float64, Batches), make([]float64, Batches)
		for i := range Batches {
			all[i] = float64(80 + i) // batches differ in size
			for k := range int64(all[i]) {
				if source.Float64(int64(i)*1000+k) < .05 {
					part[i]++
				}
			}
		}
		if e := BatchRatio(part, all); e.Lo <= .05 && .05 <= e.Hi && e.Batches == Batches {
			held++
		}
	}
	t.Logf("%d of 400", held)
	if held < 360 || held > 396 {
		t.Fatalf("%d of 400 intervals hold the truth", held)
	}
}

func TestFewBatchesGiveNoInterval(t *testing.T) {
	part, all := make([]float64, Batches), make([]float64, Batches)
	for i := range 9 {
		part[i], all[i] = 1, 10
	}
	if e := BatchRatio(part, all); e.Batches != 0 || e.Lo != e.V || math.Abs(e.V-.1) > 1e-12 || e.R != 1 {
		t.Fatalf("%+v", e)
	}
	if e := BatchRatio(make([]float64, Batches), make([]float64, Batches)); e.R != 0 {
		t.Fatalf("%+v", e)
	}
}

// A transient that decays within 1000 observations is cut where it ends, and a
// trend without an end is no transient.
func TestMSERCutsAKnownTransient(t *testing.T) {
	for seed := range 20 {
		source := rng.New(rng.Derive(3, seed), rng.Gap, "mser")
		values := make([]float64, 10_000)
		for i := range values {
			values[i] = 1 + rng.Normal(source.Float64(int64(i)))*.3
			if i < 1000 {
				values[i] += 4
			}
		}
		if cut, ok := MSER5(values); !ok || cut < 1000 || cut > 1500 {
			t.Errorf("seed %d: cut %d, %v; the step ends at 1000", seed, cut, ok)
		}
		for i := range values {
			values[i] = float64(i * i)
		}
		if _, ok := MSER5(values); ok {
			t.Error("a run that never settles is cut")
		}
	}
	if _, ok := MSER5(make([]float64, 30)); ok {
		t.Error("six batches are enough")
	}
}
