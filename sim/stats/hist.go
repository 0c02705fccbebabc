package stats

import (
	"math"
	"math/bits"
)

// Hist is a log-linear histogram of non-negative integers: each octave is split
// into 2^precision equal buckets, values below 2^precision are exact. Octaves
// take memory from the smallest to the largest that was used. The zero value is
// not ready: use NewHist.
type Hist struct {
	inside    []uint32 // counts of the buckets between those of the smallest and the largest value
	inner     uint64   // number of the first of inside
	n         int64
	counts    []uint32 // of the buckets from number first on
	first     uint64   // a multiple of an octave's buckets
	precision uint
	least     int64 // smallest and largest value, exact
	most      int64
}

// The precisions in use: quantiles within 0.05 %, and within 0.8 %.
const (
	Fine   = 10
	Coarse = 6
)

// NewHist returns an empty histogram whose buckets are at most 2^−precision of
// their value wide, so a value read from the middle of a bucket is off by at
// most RelError.
func NewHist(precision uint) *Hist { return &Hist{precision: precision, least: math.MaxInt64} }

// RelError bounds the relative error of a quantile.
func (h *Hist) RelError() float64 { return 0.5 / float64(uint64(1)<<h.precision) }

// Add counts v; negative values count as 0.
func (h *Hist) Add(v int64) {
	switch h.precision {
	case Fine:
		h.AddFine(v)
	case Coarse:
		h.AddCoarse(v)
	default:
		h.extend(v)
	}
}

// AddFine is Add where the precision is known to be Fine, AddCoarse where it is Coarse:
// shifts by a constant need fewer instructions.
func (h *Hist) AddFine(v int64) {
	if i := bucket(uint64(v), Fine) - h.inner; i < uint64(len(h.inside)) {
		h.inside[i]++
		h.n++
	} else {
		h.extend(v)
	}
}

func (h *Hist) AddCoarse(v int64) {
	if i := bucket(uint64(v), Coarse) - h.inner; i < uint64(len(h.inside)) {
		h.inside[i]++
		h.n++
	} else {
		h.extend(v)
	}
}

// extend counts any value, also in the bucket of the smallest or the largest one, or
// beyond.
//
//go:noinline
func (h *Hist) extend(v int64) {
	v = max(v, 0)
	i := bucket(uint64(v), h.precision)
	if i < h.first || i >= h.first+uint64(len(h.counts)) {
		h.reach(i)
	}
	h.counts[i-h.first]++
	h.n++
	h.least, h.most = min(h.least, v), max(h.most, v)
	h.narrow()
}

// narrow sets inside.
func (h *Hist) narrow() {
	low, high := bucket(uint64(h.least), h.precision)+1, bucket(uint64(h.most), h.precision)
	h.inner, h.inside = low, nil
	if low < high {
		h.inside = h.counts[low-h.first : high-h.first]
	}
}

// bucket returns the number of a value's bucket: octave 0 holds [0, 2^p) exactly,
// octave k holds [2^(p+k−1), 2^(p+k)) in buckets of width 2^(k−1); each has 2^p
// numbers.
func bucket(u uint64, precision uint) uint64 {
	shift := uint64(bits.Len64(u >> ((precision + 1) & 63))) // of the octaves above 1
	return shift<<(precision&63) + u>>(shift&63)
}

// reach takes the octave of a bucket into memory.
func (h *Hist) reach(i uint64) {
	low, high := i>>h.precision<<h.precision, (i>>h.precision+1)<<h.precision
	if len(h.counts) > 0 {
		low, high = min(low, h.first), max(high, h.first+uint64(len(h.counts)))
	}
	grown := make([]uint32, high-low)
	if len(h.counts) > 0 {
		copy(grown[h.first-low:], h.counts)
	}
	h.counts, h.first = grown, low
}

// lower returns the smallest value of a bucket and the bucket's width.
func (h *Hist) lower(i uint64) (low, width float64) {
	octave, slot := i>>h.precision, i&(1<<h.precision-1)
	if octave == 0 {
		return float64(slot), 1
	}
	return float64((1<<h.precision + slot) << (octave - 1)), float64(uint64(1) << (octave - 1))
}

// N returns how many values were counted.
func (h *Hist) N() int64 { return h.n }

// Merge adds the counts of another histogram of the same precision.
func (h *Hist) Merge(o *Hist) {
	if o.precision != h.precision {
		panic("stats: histograms of different precision")
	}
	if len(o.counts) > 0 {
		h.reach(o.first)
		h.reach(o.first + uint64(len(o.counts)) - 1)
	}
	for i, c := range o.counts {
		h.counts[o.first-h.first+uint64(i)] += c
	}
	h.least, h.most = min(h.least, o.least), max(h.most, o.most)
	h.n += o.n
	if h.n > 0 {
		h.narrow()
	}
}

// Max returns the largest value, exactly.
func (h *Hist) Max() int64 { return h.most }

// Each calls f for every non-empty bucket in ascending order with the bucket's
// lower edge, width and count.
func (h *Hist) Each(f func(low, width float64, count int64)) {
	for i, c := range h.counts {
		if c > 0 {
			low, width := h.lower(h.first + uint64(i))
			f(low, width, int64(c))
		}
	}
}

// Quantiles returns the quantiles of ascending qs, NaN without values.
func (h *Hist) Quantiles(qs ...float64) []float64 {
	out := make([]float64, len(qs))
	ranks := make([]int64, len(qs))
	for i, q := range qs {
		out[i] = math.NaN()
		ranks[i] = int64(math.Round(q * float64(h.n-1)))
	}
	if h.n > 0 {
		copy(out, h.order(ranks))
	}
	return out
}

// order returns the estimated values of the given ascending ranks (from 0).
// Values are taken to lie evenly inside their bucket.
func (h *Hist) order(ranks []int64) []float64 {
	out := make([]float64, 0, len(ranks))
	seen := int64(0)
	h.Each(func(low, width float64, count int64) {
		for len(out) < len(ranks) && ranks[len(out)] < seen+count {
			v := low
			if width > 1 {
				v += width * (float64(ranks[len(out)]-seen) + 0.5) / float64(count)
			}
			out = append(out, min(max(v, float64(h.least)), float64(h.most)))
		}
		seen += count
	})
	return out
}
