package stats

import (
	"math"
	"math/bits"
)

// Hist is a log-linear histogram of non-negative integers: each octave is split
// into 2^precision equal buckets, values below 2^precision are exact. Octaves
// take memory when first used. The zero value is not ready: use NewHist.
type Hist struct {
	n         int64
	least     int64 // smallest and largest value, exact
	most      int64
	precision uint
	octaves   [64][]uint32
}

// NewHist returns an empty histogram whose buckets are at most 2^−precision of
// their value wide, so a value read from the middle of a bucket is off by at
// most RelError.
func NewHist(precision uint) *Hist { return &Hist{precision: precision} }

// RelError bounds the relative error of a quantile.
func (h *Hist) RelError() float64 { return 0.5 / float64(uint64(1)<<h.precision) }

// Add counts v; negative values count as 0.
func (h *Hist) Add(v int64) {
	u := uint64(max(v, 0))
	octave, slot := h.index(u)
	if h.octaves[octave] == nil {
		h.octaves[octave] = make([]uint32, 1<<h.precision)
	}
	h.octaves[octave][slot]++
	if h.n == 0 || v < h.least {
		h.least = max(v, 0)
	}
	h.most = max(h.most, v)
	h.n++
}

// index maps a value to its octave and slot: octave 0 holds [0, 2^p) exactly,
// octave k holds [2^(p+k−1), 2^(p+k)) in buckets of width 2^(k−1).
func (h *Hist) index(u uint64) (octave int, slot uint64) {
	octave = bits.Len64(u >> h.precision)
	if octave == 0 {
		return 0, u
	}
	return octave, (u >> (octave - 1)) & (1<<h.precision - 1)
}

// lower returns the smallest value of a bucket and the bucket's width.
func (h *Hist) lower(octave int, slot uint64) (low, width float64) {
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
	for k, oct := range o.octaves {
		if oct == nil {
			continue
		}
		if h.octaves[k] == nil {
			h.octaves[k] = make([]uint32, 1<<h.precision)
		}
		for i, c := range oct {
			h.octaves[k][i] += c
		}
	}
	if o.n > 0 && (h.n == 0 || o.least < h.least) {
		h.least = o.least
	}
	h.most = max(h.most, o.most)
	h.n += o.n
}

// Max returns the largest value, exactly.
func (h *Hist) Max() int64 { return h.most }

// Each calls f for every non-empty bucket in ascending order with the bucket's
// lower edge, width and count.
func (h *Hist) Each(f func(low, width float64, count int64)) {
	for k, oct := range h.octaves {
		for i, c := range oct {
			if c > 0 {
				low, width := h.lower(k, uint64(i))
				f(low, width, int64(c))
			}
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
