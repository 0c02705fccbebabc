package sim

import (
	"testing"

	"slosim/sim/clock"

	"pgregory.net/rapid"
)

// A gap falls into the bucket of the general way, whatever its length.
func TestGapsFallIntoTheirBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &gaps{}
		for range 50 {
			d := clock.Duration(rapid.Int64Range(-3, 1<<62).Draw(t, "digits") >> rapid.IntRange(0, 62).Draw(t, "shift"))
			if rapid.Bool().Draw(t, "border") {
				d = clock.Duration(1)<<rapid.IntRange(0, 62).Draw(t, "octave") + clock.Duration(rapid.Int64Range(-1, 1).Draw(t, "beside"))
			}
			before, n := g.counts[gapBucket(d)], rapid.Uint64Range(1, 99).Draw(t, "tokens")
			all := g.n()
			g.add(d, n)
			if g.counts[gapBucket(d)] != before+n || g.n() != all+n {
				t.Fatalf("%d ns are not in bucket %d", d, gapBucket(d))
			}
		}
	})
}
