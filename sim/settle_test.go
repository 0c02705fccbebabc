package sim

import (
	"context"
	"strings"
	"testing"

	"slosim/sim/clock"
)

// A pilot that starts empty settles within minutes: most of a long warm-up is saved,
// the report says how much is left, and the same comes out every time.
func TestMSERDecidesTheWarmUp(t *testing.T) {
	e := busyHour(t)
	e.Duration, e.Warmup, e.Settle = 10*clock.Minute, 40*clock.Minute, true
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(r.Warnings, "; ")
	t.Log(r.Experiment.Warmup, text)
	if r.Experiment.Warmup > 20*clock.Minute || r.Experiment.Warmup < clock.Minute || !strings.Contains(text, "MSER-5") {
		t.Fatalf("warm-up %s: %s", r.Experiment.Warmup, text)
	}
	again, err := Run(context.Background(), e, Options{Workers: 1})
	if err != nil || again.Experiment.Warmup != r.Experiment.Warmup || again.SLOs[0].Bad != r.SLOs[0].Bad {
		t.Fatal(err, again.Experiment.Warmup)
	}
}
