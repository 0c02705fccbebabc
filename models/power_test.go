package models

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The table of powers agrees with math.Pow, also at the borders of its cells.
func TestPowersAgreeWithPow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.Float64Range(0, 1).Draw(t, "exponent")
		p := newPowers(e)
		check := func(u float64) {
			if got, want := p.of(u), math.Pow(u, e); math.Abs(got-want) > 1e-13*want {
				t.Fatalf("%v^%v = %v, want %v", u, e, got, want)
			}
		}
		octave := math.Ldexp(1, -rapid.IntRange(1, 70).Draw(t, "octave"))
		border := octave * (1 + float64(rapid.IntRange(0, powerCells-1).Draw(t, "cell"))/powerCells)
		for _, u := range []float64{1, border, math.Nextafter(border, 0), border * (1 + 0.5/powerCells), rapid.Float64Range(1e-9, 1).Draw(t, "u")} {
			check(u)
		}
		if p.of(0) != 0 || p.of(-1) != 0 {
			t.Fatal("no power of what is not positive")
		}
	})
}

func BenchmarkPowers(b *testing.B) {
	p, sum := newPowers(0.7), 0.0
	for i := 0; b.Loop(); i++ {
		sum += p.of(0.1 + float64(i&1023)/2048)
	}
	_ = sum
}
