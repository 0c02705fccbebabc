package stats

import (
	"slices"
	"testing"
)

// A sample that lies in many pieces says what its values say, also when more come after it
// was asked, and when it is merged with another; its values stay in the order of time.
func TestPiecesAreOneSample(t *testing.T) {
	var s, other Sample
	var want []int64
	x := int64(1)
	add := func(to *Sample, n int) {
		for range n {
			x = x * 48271 % (1<<31 - 1)
			to.Add(x)
			want = append(want, x)
		}
	}
	look := func(about string) {
		t.Helper()
		sorted := slices.Sorted(slices.Values(want))
		qs := []float64{0, .25, .5, .99, 1}
		got := s.Quantiles(qs...)
		for i, q := range qs {
			h := q * float64(len(sorted)-1)
			low := int(h)
			exact := float64(sorted[low])
			if low+1 < len(sorted) {
				exact += (h - float64(low)) * float64(sorted[low+1]-sorted[low])
			}
			if got[i] != exact {
				t.Fatalf("%s: quantile %v is %v, want %v", about, q, got[i], exact)
			}
		}
		if s.N() != int64(len(want)) || s.Max() != sorted[len(sorted)-1] || s.RelError() != 0 {
			t.Fatalf("%s: %d values up to %d, want %d up to %d", about, s.N(), s.Max(), len(want), sorted[len(sorted)-1])
		}
	}
	add(&s, 3*piece+17)
	if n := len(s.full); n != 3 {
		t.Fatalf("%d full pieces", n)
	}
	look("pieces")
	add(&s, piece+3)
	look("more after a look")
	from := len(want)
	add(&other, 2*piece+5)
	if !slices.Equal(other.all(), want[from:]) { // as batches need it
		t.Fatal("the order of time is lost")
	}
	s.Merge(&other)
	look("merged")

	s, want, x = Sample{limit: 2*piece + 10}, nil, 1
	add(&s, 2*piece+11)
	var counted Hist = emptyHist(Fine)
	for _, v := range want {
		counted.AddFine(v)
	}
	if !s.counted || s.before != 0 || s.hist.N() != counted.N() || !slices.Equal(s.hist.order([]int64{0, piece, 2 * piece}), counted.order([]int64{0, piece, 2 * piece})) {
		t.Fatalf("%d values are counted, want %d", s.hist.N(), counted.N())
	}
}
