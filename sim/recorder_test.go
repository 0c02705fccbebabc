package sim

import "testing"

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
