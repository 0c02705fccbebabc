package workloads

import (
	"testing"

	"slosim/sim/clock"
)

// BenchmarkRequest is what a request costs before it reaches the cluster: its
// arrival, lengths and cohort.
func BenchmarkRequest(b *testing.B) {
	c := Class{Name: "chat", Stream: "chat", Rate: Rate{Mean: 123, Shape: "constant", Burstiness: 1},
		Prompt: Dist{Kind: "lognormal", Mean: 2000, P99: 6400}, Output: Dist{Kind: "exponential", Mean: 256, Max: 4095}}
	s, err := NewShaper(&c, nil, 1)
	if err != nil {
		b.Fatal(err)
	}
	a := NewArrivals(&c, NewIntensity(&c, nil, 0), 1, 0, clock.Time(300*clock.Day))
	s.Expect(worthATable)
	var r Request
	b.ReportAllocs()
	for b.Loop() {
		t, i, ok := a.Next()
		if !ok {
			b.Fatal("no more arrivals")
		}
		s.Shape(i, t, &r)
	}
}
