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
	keyed     uint64   // the same in keys: see Key
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
func NewHist(precision uint) *Hist { h := emptyHist(precision); return &h }

func emptyHist(precision uint) Hist { return Hist{precision: precision, least: math.MaxInt64} }

// RelError bounds the relative error of a quantile.
func (h *Hist) RelError() float64 { return 0.5 / float64(uint64(1)<<h.precision) }

// Add counts v; negative values count as 0.
func (h *Hist) Add(v int64) {
	if !h.hit(bucket(uint64(v), h.precision)) {
		h.extend(v)
	}
}

// AddFine is Add where the precision is known to be Fine: shifts by a constant need fewer
// instructions.
func (h *Hist) AddFine(v int64) {
	if !h.HitFine(v) {
		h.extend(v)
	}
}

// HitFine counts v if its bucket lies between those of the smallest and the largest value,
// and says whether it did: if not, Add does. The two are apart because this half is small
// enough to be compiled into its caller. The precision must be Fine, and that of HitCoarse
// Coarse.
func (h *Hist) HitFine(v int64) bool { return h.hit(bucket(uint64(v), Fine)) }

// HitCoarse is HitFine for Coarse.
func (h *Hist) HitCoarse(v int64) bool { return h.hit(bucket(uint64(v), Coarse)) }

// hit counts a bucket by its number.
func (h *Hist) hit(bucket uint64) bool { return h.hitInside(bucket - h.inner) }

// hitInside counts the i-th bucket of inside, if there is one.
func (h *Hist) hitInside(i uint64) bool {
	if i < uint64(len(h.inside)) {
		h.inside[i]++
		return true
	}
	return false
}

// Key leads to a value's bucket in any histogram by one shift: it is the value as a
// float64, whose exponent is the octave and whose first digits are the bucket within it.
// That holds from 2^Fine on and as long as a float64 is exact. The key 0 leads nowhere.
type Key uint64

const (
	mantissa  = 52
	bias      = 1023
	exactKeys = mantissa + 1 // log2 of where float64 stops being exact
)

// KeyOf returns the key of a value.
func KeyOf(v int64) Key {
	if v < 1<<Fine {
		return 0
	}
	return Key(math.Float64bits(float64(v)))
}

// HitFineKey is HitFine by the value's key.
func (h *Hist) HitFineKey(k Key) bool { return h.hitInside(uint64(k)>>(mantissa-Fine) - h.keyed) }

// HitCoarseKey is HitCoarse by the value's key.
func (h *Hist) HitCoarseKey(k Key) bool { return h.hitInside(uint64(k)>>(mantissa-Coarse) - h.keyed) }

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
	h.least, h.most = min(h.least, v), max(h.most, v)
	h.narrow()
}

// narrow sets inside. Values that float64 does not hold exactly stay outside.
func (h *Hist) narrow() {
	low, high := bucket(uint64(h.least), h.precision)+1, bucket(uint64(min(h.most, 1<<exactKeys)), h.precision)
	h.inner, h.inside = low, nil
	h.keyed = low + (bias+uint64(h.precision)-1)<<(h.precision&63)
	if low < high {
		h.inside = h.counts[low-h.first : high-h.first]
	}
}

// bucket returns the number of a value's bucket: octave 0 holds [0, 2^p) exactly,
// octave k holds [2^(p+k−1), 2^(p+k)) in buckets of width 2^(k−1); each has 2^p
// numbers. The buckets of octaves 0 and 1 are equally wide: 1 in the place of the lowest
// digit makes them one for the logarithm, and lets it be taken without asking for zero.
func bucket(u uint64, precision uint) uint64 {
	shift := uint64(bits.Len64(u>>(precision&63)|1) - 1) // of the octaves above 1
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

// N returns how many values were counted. It adds them up: counting them one by one would
// cost more, for there are more values than questions.
func (h *Hist) N() int64 {
	n := int64(0)
	for _, c := range h.counts {
		n += int64(c)
	}
	return n
}

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
	if len(h.counts) > 0 {
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
	n := h.N()
	for i, q := range qs {
		out[i] = math.NaN()
		ranks[i] = int64(math.Round(q * float64(n-1)))
	}
	if n > 0 {
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
