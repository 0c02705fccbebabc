package stats

import (
	"math"
	"slices"
)

// exactLimit is how many values a Sample keeps before it falls back to a
// histogram.
const exactLimit = 2_000_000

// Sample collects one metric: all values up to two million of them, then a
// log-linear histogram. Values that never came about (a request without an
// answer) count as +Inf. The zero value is ready.
type Sample struct {
	sum     float64
	hist    Hist // once counted
	counted bool // there are too many values to keep
	values  []int64
	full    [][]int64 // those before them, in the order of time
	before  int       // how many these are
	inf     int64
	max     int64
	limit   int // of values; 0 = exactLimit
}

// Add records a value.
func (s *Sample) Add(v int64) {
	if !s.Hit(KeyOf(v), v) {
		s.AddMissed(v)
	}
}

// Hit records a value if its bucket is one of those between the smallest and the largest,
// and says whether it did: if not, AddMissed must follow. It needs the value's key. Such a
// value is not the largest, so only the sum is to be kept.
func (s *Sample) Hit(k Key, v int64) bool {
	s.sum += float64(v)
	return s.hist.HitFineKey(k)
}

// AddMissed ends what Hit has begun.
//
//go:noinline
func (s *Sample) AddMissed(v int64) {
	s.max = max(s.max, v)
	if s.counted {
		s.hist.AddFine(v)
		return
	}
	limit := s.limit
	if limit == 0 {
		limit = exactLimit
	}
	if s.kept() < limit {
		if len(s.values) >= piece { // one slice would be copied whenever it grows
			s.full, s.before = append(s.full, s.values), s.kept()
			s.values = make([]int64, 0, piece)
		}
		s.values = append(s.values, v)
		return
	}
	s.toHist()
	s.hist.AddFine(v)
}

// piece is how many values lie together while they come.
const piece = 1 << 16

// kept returns how many values there are, if they are kept.
func (s *Sample) kept() int { return s.before + len(s.values) }

// all returns the values in one piece, in the order of time until something reorders them.
func (s *Sample) all() []int64 {
	if s.before > 0 {
		s.values = slices.Concat(append(s.full, s.values)...)
		s.full, s.before = nil, 0
	}
	return s.values
}

func (s *Sample) toHist() {
	s.hist, s.counted = emptyHist(Fine), true
	s.count(s)
	s.values, s.full, s.before = nil, nil, 0
}

// count counts the values that another sample keeps, or the same one.
func (s *Sample) count(o *Sample) {
	for _, part := range append(o.full, o.values) {
		for _, v := range part {
			s.hist.AddFine(v)
		}
	}
}

// AddInf records a value that never came about.
func (s *Sample) AddInf() { s.inf++ }

// N returns the number of finite values, Inf that of the others.
func (s *Sample) N() int64 {
	if s.counted {
		return s.hist.N()
	}
	return int64(s.kept())
}

// Inf returns how many values never came about.
func (s *Sample) Inf() int64 { return s.inf }

// Max returns the largest finite value.
func (s *Sample) Max() int64 { return s.max }

// RelError bounds the relative error of quantiles: 0 when all values are kept.
func (s *Sample) RelError() float64 {
	if !s.counted {
		return 0
	}
	return s.hist.RelError()
}

// Mean returns the mean of the finite values, NaN without any.
func (s *Sample) Mean() float64 { return s.sum / float64(s.N()) }

// Merge adds the values of other samples.
func (s *Sample) Merge(others ...*Sample) {
	for _, o := range others {
		s.inf += o.inf
		s.sum += o.sum
		s.max = max(s.max, o.max)
		total := s.kept() + o.kept()
		if !s.counted && (o.counted || total > exactLimit) {
			s.toHist()
		}
		switch {
		case !s.counted:
			s.values = append(s.all(), o.all()...)
		case o.counted:
			s.hist.Merge(&o.hist)
		default:
			s.count(o)
		}
	}
}

// Quantiles returns the quantiles of ascending qs in [0, 1] by linear
// interpolation between order statistics, as NumPy does: +Inf where they fall
// among values that never came about, NaN without values. It reorders the
// values it holds.
func (s *Sample) Quantiles(qs ...float64) []float64 {
	finite := s.N()
	n := finite + s.inf
	out := make([]float64, len(qs))
	ranks := make([]int64, 0, 2*len(qs))
	for _, q := range qs {
		low := int64(math.Floor(q * float64(n-1)))
		ranks = append(ranks, min(low, max(finite-1, 0)), min(low+1, max(finite-1, 0)))
	}
	var at map[int64]float64
	if finite > 0 {
		at = s.orderStatistics(ranks)
	}
	for i, q := range qs {
		if n == 0 {
			out[i] = math.NaN()
			continue
		}
		h := q * float64(n-1)
		low := int64(math.Floor(h))
		frac := h - float64(low)
		switch {
		case low >= finite || (frac > 0 && low+1 >= finite && s.inf > 0):
			out[i] = math.Inf(1)
		case frac == 0 || low+1 >= finite:
			out[i] = at[low]
		default:
			out[i] = at[low] + frac*(at[low+1]-at[low])
		}
	}
	return out
}

// FiniteQuantiles is Quantiles over the values that did come about.
func (s *Sample) FiniteQuantiles(qs ...float64) []float64 {
	inf := s.inf
	s.inf = 0
	defer func() { s.inf = inf }()
	return s.Quantiles(qs...)
}

// orderStatistics returns the values at the given ranks.
func (s *Sample) orderStatistics(ranks []int64) map[int64]float64 {
	ranks = slices.Compact(slices.Sorted(slices.Values(ranks)))
	at := make(map[int64]float64, len(ranks))
	if s.counted {
		for i, v := range s.hist.order(ranks) {
			at[ranks[i]] = v
		}
		return at
	}
	from, values := 0, s.all()
	for _, k := range ranks {
		nth(values[from:], int(k)-from)
		at[k] = float64(values[k])
		from = int(k)
	}
	return at
}

// nth reorders v so that v[k] is what sorting would put there, with nothing
// larger before it and nothing smaller behind it (Floyd and Rivest, 1975).
func nth(v []int64, k int) {
	lo, hi := 0, len(v)-1
	for hi > lo {
		if hi-lo > 600 {
			n, i := float64(hi-lo+1), float64(k-lo+1)
			z := math.Log(n)
			size := 0.5 * math.Exp(2*z/3)
			sd := 0.5 * math.Sqrt(z*size*(n-size)/n) * math.Copysign(1, i-n/2)
			a := max(lo, int(float64(k)-i*size/n+sd))
			b := min(hi, int(float64(k)+(n-i)*size/n+sd))
			nth(v[a:b+1], k-a)
		}
		t := v[k]
		i, j := lo, hi
		v[lo], v[k] = v[k], v[lo]
		if v[hi] > t {
			v[lo], v[hi] = v[hi], v[lo]
		}
		for i < j {
			v[i], v[j] = v[j], v[i]
			i++
			j--
			for v[i] < t {
				i++
			}
			for v[j] > t {
				j--
			}
		}
		if v[lo] == t {
			v[lo], v[j] = v[j], v[lo]
		} else {
			j++
			v[j], v[hi] = v[hi], v[j]
		}
		if j <= k {
			lo = j + 1
		}
		if k <= j {
			hi = j - 1
		}
	}
}
