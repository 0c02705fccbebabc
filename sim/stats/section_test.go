package stats

import (
	"math"
	"testing"

	"slosim/sim/rng"
)

// Two hundred runs of 40,000 independent exponential values, in one sample and cut
// into two cohorts: their intervals hold the mean and the quantiles in 90 to 99 % of
// the cases. With fewer values than a batch of a P99.9 needs there is none.
func TestSectionsHoldTheTruth(t *testing.T) {
	qs := []float64{.5, .9, .95, .999}
	var held [5]int
	const runs = 200
	for i := range runs {
		s := rng.New(uint64(i), rng.Gap, "sections")
		one, a, b := &Sample{}, &Sample{}, &Sample{}
		for k := range int64(40_000) {
			v := int64(rng.Exp(s.Float64(k)) * 1e9)
			one.Add(v)
			if k%3 == 0 {
				a.Add(v)
			} else {
				b.Add(v)
			}
		}
		list := []*Sample{one}
		if i%2 == 1 {
			list = []*Sample{a, b}
		}
		batches := InBatches(list, qs)
		at := one.Quantiles(qs...)
		m, q := batches.Around(one.Mean(), at)
		if math.Abs(one.Mean()/1e9-1) <= m.Half/1e9 {
			held[4]++
		}
		for j, p := range qs {
			if math.Abs(at[j]+1e9*math.Log1p(-p)) <= q[j].Half {
				held[j]++
			}
		}
		if m.Batches != 20 || q[2].Batches != 20 || q[3].Batches != 0 {
			t.Fatalf("%d batches for the mean, %d for P95, %d for P99.9", m.Batches, q[2].Batches, q[3].Batches)
		}
	}
	t.Log(held)
	for j, n := range held {
		if share := float64(n) / runs; j != 3 && (share < .9 || share > .99) {
			t.Errorf("%d: %.1f %%", j, 100*share)
		}
	}
}

// Batches of ten serve where twenty are too small, and values that never came about
// leave no interval.
func TestSectionsNeedEnoughValuesInOrder(t *testing.T) {
	s := &Sample{}
	for k := range int64(12_000) {
		s.Add(k * 7919 % 12_007)
	}
	b := InBatches([]*Sample{s}, []float64{.8, .9})
	if m, q := b.Around(6000, []float64{9_600, 10_800}); m.Batches != 20 || q[0].Batches != 20 || q[1].Batches != 10 {
		t.Errorf("%+v %+v", m, q)
	}
	s.AddInf()
	if m, _ := InBatches([]*Sample{s}, []float64{.9}).Around(0, []float64{0}); m.Batches != 0 {
		t.Error("a value without an end has a place in time")
	}
	if m, _ := InBatches([]*Sample{{}}, []float64{.9}).Around(0, []float64{0}); m.Batches != 0 {
		t.Error("an interval out of nothing")
	}
}
