package coverage

import (
	"context"
	"testing"
)

// The machinery on a small scale: intervals of a simulated replica hold what its long
// replications say more often than not, and the same comes out every time.
func TestIntervalsOfASimulatedReplica(t *testing.T) {
	l := LLM{Load: .7, Requests: 2000, Replications: 5, Intervals: 10, Seed: 1, Long: 4, LongRequests: 20_000}
	mean, p99, truth, err := l.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("mean %d, P99 %d of %d; truth %+v", mean.Held, p99.Held, mean.Of, truth)
	if mean.Held < 6 || p99.Held < 5 || truth.Mean.V <= 0 || truth.P99.V <= truth.Mean.V {
		t.Fatal("intervals miss the truth")
	}
	again, _, _, err := l.Run(context.Background())
	if err != nil || again != mean {
		t.Fatal(err, again, mean)
	}
}
