package sim

import (
	"context"
	"sync/atomic"
	"testing"
	"unsafe"
)

// A prompt falls into the same bucket by tokens as by the edges themselves.
func TestBandsFollowThePromptEdges(t *testing.T) {
	for n := int32(0); n < 70_000; n++ {
		if a, b := bandOfTokens(n), bandOf(float64(n)); a != b {
			t.Fatalf("%d tokens: bucket %d, by the edges %d", n, a, b)
		}
	}
	if k := bandOfTokens(1 << 30); k != lengthBands-1 {
		t.Errorf("the longest prompt is in bucket %d of %d", k, lengthBands)
	}
}

// A flight fills whole lines of a processor's cache.
func TestAFlightFillsThreeCacheLines(t *testing.T) {
	if n := unsafe.Sizeof(flight{}); n != 3*64 {
		t.Errorf("a flight takes %d bytes", n)
	}
}

// atRest builds one replication.
func atRest(t testing.TB, e Experiment) (*plan, *cluster) {
	t.Helper()
	p, err := newPlan(e)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCluster(p, 1, new(atomic.Int64))
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

// replication runs one replication and leaves it open to look at.
func replication(t testing.TB, e Experiment) (*plan, *cluster) {
	t.Helper()
	p, c := atRest(t, e)
	if err := c.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return p, c
}
