package sim

import (
	"context"
	"math"
	"testing"

	"slosim/sim/clock"
)

// A run replicates until its objective's quantile is known as exactly as wanted, or
// to the cap, and its replications are those of a run with that many.
func TestRunsReplicateUntilThePrecisionIsReached(t *testing.T) {
	e := busyHour(t)
	e.Duration = 10 * clock.Minute
	e.SLOs = e.SLOs[5:6] // TTFT P99
	e.Replications, e.Precision, e.MaxReplications = 3, .25, 64
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := len(r.Seeds)
	t.Logf("%d replications: ±%.3g of %s", n, r.Precision.Reached, r.Precision.Of)
	if n <= 3 || n > 64 || r.Precision.Reached > .25 && n < 64 {
		t.Fatalf("%d replications, ±%.3g", n, r.Precision.Reached)
	}
	e.Replications, e.Precision, e.MaxReplications = n, 0, 0
	same, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := r.Phases[0].Classes[0].TTFT.P99, same.Phases[0].Classes[0].TTFT.P99; math.Float64bits(a.V) != math.Float64bits(b.V) || a.Hi != b.Hi {
		t.Fatalf("%+v and %+v", a, b)
	}
	e.Replications, e.Precision, e.MaxReplications = 2, 1e-6, 3
	if r, err = Run(context.Background(), e, Options{}); err != nil || len(r.Seeds) != 3 || len(r.Warnings) == 0 {
		t.Fatal(err, len(r.Seeds), r.Warnings)
	}
}

func TestNextNumberOfReplications(t *testing.T) {
	for _, c := range []struct {
		reached float64
		n, want int
	}{{.04, 5, 5}, {.06, 5, 8}, {.5, 5, 10}, {math.Inf(1), 5, 10}, {.0501, 5, 6}, {.5, 40, 50}, {.5, 50, 50}} {
		if got := (Precision{.05, c.reached, "x"}).next(c.n, 50); got != c.want {
			t.Errorf("±%g after %d: %d, want %d", c.reached, c.n, got, c.want)
		}
	}
}
