package review

import (
	"context"
	"math"
	"testing"

	"slosim/experiments"
	"slosim/sim"
)

// By hand: (1, 2, 3) and (2, 3, 5) have variances 1 and 7/3 and the difference
// (1, 1, 2) one of 1/3: ten times less than their sum. Equal worlds gain without end,
// worlds without spread nothing.
func TestVarianceRatioByHand(t *testing.T) {
	g, rho := ratio([]float64{1, 2, 3}, []float64{2, 3, 5})
	if math.Abs(g-10) > 1e-9 || math.Abs(rho-1.5/math.Sqrt(7./3)) > 1e-9 {
		t.Errorf("%g, %g", g, rho)
	}
	if g, _ := ratio([]float64{1, 2, 4}, []float64{1, 2, 4}); !math.IsInf(g, 1) {
		t.Errorf("%g", g)
	}
	for _, x := range [][]float64{{1, 1, 1}, {1}, {math.Inf(1), 1, 2}} {
		if g, _ := ratio(x, x); !math.IsNaN(g) {
			t.Errorf("%v: %g", x, g)
		}
	}
}

// In the busiest hours of prompt-growth a lever that leaves much of the queue is told
// from none with at least twice the replications' worth of information in the bad share
// and the mean TTFT, and with no less in the P99. Eight replications know a ratio of
// variances to a factor of two or so.
func TestPairingGainsOnPromptGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates 32 hours")
	}
	e, _, err := experiments.Load("prompt-growth")
	if err != nil {
		t.Fatal(err)
	}
	capped, _, err := experiments.Load("prompt-growth", "change.feature.output_cap=64")
	if err != nil {
		t.Fatal(err)
	}
	short, at, err := sim.Quick(e)
	if err != nil || short.Duration >= e.Duration {
		t.Fatal(err)
	}
	l := newLab(Options{})
	run := func(e sim.Experiment) *world {
		reps, err := l.all(context.Background(), sim.Window(e, at), varianceFrom, varianceFrom+8)
		if err != nil {
			t.Fatal(err)
		}
		return &world{e, reps}
	}
	g := gain("output cap", "busiest two hours", run(e), run(capped), 0)
	t.Logf("%+v", g)
	if g.Bad < 2 || g.Quantile < 1 || g.Mean < 2 || g.Correlation < .5 {
		t.Errorf("%+v", g)
	}
}
