package workloads

import (
	"testing"

	"slosim/sim/clock"
)

// benchmarkClass returns what draws a class as the reference day has it.
func benchmarkClass(b *testing.B) (*Shaper, *Arrivals) {
	c := Class{Name: "chat", Stream: "chat", Rate: Rate{Mean: 123, Shape: "constant", Burstiness: 1},
		Prompt: Dist{Kind: "lognormal", Mean: 2000, P99: 6400}, Output: Dist{Kind: "exponential", Mean: 256, Max: 4095}}
	s, err := NewShaper(&c, nil, 1)
	if err != nil {
		b.Fatal(err)
	}
	s.Expect(worthATable)
	b.ReportAllocs()
	return s, NewArrivals(&c, NewIntensity(&c, nil, 0), 1, 0, clock.Time(300*clock.Day))
}

// BenchmarkRequest is what a request costs before it reaches the cluster: its
// arrival, lengths and cohort.
func BenchmarkRequest(b *testing.B) {
	s, a := benchmarkClass(b)
	var r Request
	for b.Loop() {
		t, i, ok := a.Next()
		if !ok {
			b.Fatal("no more arrivals")
		}
		s.Shape(i, t, &r)
	}
}

// BenchmarkRequestColumns is the same for requests drawn column by column.
func BenchmarkRequestColumns(b *testing.B) {
	s, a := benchmarkClass(b)
	var r [Ahead]Request
	for n := 0; b.Loop(); n++ {
		if n%Ahead == 0 {
			if a.NextAll(&r) < Ahead {
				b.Fatal("no more arrivals")
			}
			s.ShapeAll(r[:])
		}
	}
}
