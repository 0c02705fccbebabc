package stats

import (
	"math"
	"math/bits"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// anyValue draws from all octaves and from the borders of buckets and of keys.
func anyValue(t *rapid.T) int64 {
	v := rapid.Int64Range(0, math.MaxInt64).Draw(t, "digits") >> rapid.IntRange(0, 63).Draw(t, "shift")
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return int64(1)<<rapid.IntRange(0, 62).Draw(t, "octave") + rapid.Int64Range(-2, 2).Draw(t, "beside")
	case 1:
		return rapid.Int64Range(-3, 70).Draw(t, "small")
	}
	return v
}

// Whatever way a value is counted, by its number, by its key or neither, the histogram is
// the same.
func TestHitsCountAsTheGeneralWayDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Custom(anyValue), 1, 300).Draw(t, "values")
		for _, precision := range []uint{Fine, Coarse} {
			general, numbers, keys := NewHist(precision), NewHist(precision), NewHist(precision)
			for _, v := range values {
				general.extend(v)
				hit, byKey := numbers.HitFine, keys.HitFineKey
				if precision == Coarse {
					hit, byKey = numbers.HitCoarse, keys.HitCoarseKey
				}
				if !hit(v) {
					numbers.Add(v)
				}
				if !byKey(KeyOf(v)) {
					keys.Add(v)
				}
			}
			if !reflect.DeepEqual(general, numbers) || !reflect.DeepEqual(general, keys) {
				t.Fatalf("precision %d: %+v by number, %+v by key, want %+v", precision, numbers, keys, general)
			}
			if n := general.N(); n != int64(len(values)) {
				t.Fatalf("%d values, counted %d", len(values), n)
			}
		}
	})
}

// A bucket's number is that of its definition.
func TestBucketsFollowTheirDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := uint64(max(0, anyValue(t)))
		for _, p := range []uint{Fine, Coarse} {
			shift := bits.Len64(u >> (p + 1))
			if got, want := bucket(u, p), uint64(shift)<<p+u>>shift; got != want {
				t.Fatalf("%d is in bucket %d of precision %d, want %d", u, got, p, want)
			}
		}
	})
}

// A sample that counts by keys equals one that counts each value the general way.
func TestSamplesCountAsTheGeneralWayDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Custom(anyValue), 4, 300).Draw(t, "values")
		s, h, sum, most := Sample{limit: 2}, NewHist(Fine), 0.0, int64(0)
		for _, v := range values {
			s.Add(v)
			h.extend(v)
			sum, most = sum+float64(v), max(most, v)
		}
		if !reflect.DeepEqual(&s.hist, h) || s.sum != sum || s.Max() != most {
			t.Fatalf("%+v, want sum %v, largest %d, %+v", s, sum, most, h)
		}
	})
}
