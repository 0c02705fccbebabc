package coverage

import "testing"

// One hundred intervals of five times 20,000 customers, on three seeds, hold the
// mean sojourn and its P99 in 84 to 99 % of the cases.
func TestIntervalsHoldTheTruthOfTheMM1Queue(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		mean, p99 := Trial{Load: .8, Customers: 20_000, Replications: 5, Intervals: 100, Seed: seed}.Run()
		t.Logf("seed %d: mean %d %%, P99 %d %%", seed, mean.Held, p99.Held)
		for name, o := range map[string]Outcome{"mean": mean, "P99": p99} {
			if s := o.Share(); s < .84 || s > .99 {
				t.Errorf("seed %d, %s: %.0f %%", seed, name, 100*s)
			}
			if o.Lo > o.Share() || o.Hi < o.Share() || o.Width <= 0 {
				t.Errorf("%+v", o)
			}
		}
	}
}

// One hundred intervals from the batches of a single replication of 200,000 customers
// hold the mean and the P99 in 84 to 99 % of the cases.
func TestIntervalsWithinOneRunHoldTheTruth(t *testing.T) {
	mean, p99 := Trial{Load: .8, Customers: 200_000, Replications: 1, Intervals: 100, Seed: 4}.Run()
	t.Logf("mean %d %%, P99 %d %%", mean.Held, p99.Held)
	for name, o := range map[string]Outcome{"mean": mean, "P99": p99} {
		if s := o.Share(); s < .84 || s > .99 {
			t.Errorf("%s: %.0f %%", name, 100*s)
		}
	}
}
