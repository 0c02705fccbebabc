package stats

import "math"

// Batches is how many batches an interval within one run is made of (Schmeiser,
// 1982: 10 to 30 lose little).
const Batches = 20

// BatchRatio returns the ratio Σ part / Σ all of one run with a 95 % interval from
// its batches in order of time: residuals part − ratio·all, Student's t. Batches must
// be long against the time over which the run forgets; no interval with fewer than
// ten batches that have anything.
func BatchRatio(part, all []float64) Estimate {
	var p, n float64
	k := 0
	for i := range all {
		p += part[i]
		n += all[i]
		if all[i] > 0 {
			k++
		}
	}
	e := Estimate{V: p / n, Lo: p / n, Hi: p / n, N: int64(n), R: 1}
	if n == 0 {
		e.R = 0
		return e
	}
	if k < Batches/2 {
		return e
	}
	squares := 0.0
	for i := range all {
		if all[i] > 0 {
			d := part[i] - e.V*all[i]
			squares += d * d
		}
	}
	mean := n / float64(k)
	half := T975(k-1) * math.Sqrt(squares/float64(k*(k-1))) / mean
	e.Lo, e.Hi, e.Batches = max(0, e.V-half), min(1, e.V+half), k
	return e.withFloor(e.N)
}

// MSER5 returns how many of the first observations of a run to cut as its
// transient: those before the cut at which the standard error of the rest is least,
// in batches of five (White, Cobb and Spratt, 2000). ok is false when the cut falls
// into the second half: the run is too short to tell.
func MSER5(values []float64) (cut int, ok bool) {
	const size = 5
	k := len(values) / size
	if k < 10 {
		return 0, false
	}
	means := make([]float64, k)
	for i := range means {
		for _, v := range values[i*size : (i+1)*size] {
			means[i] += v / size
		}
	}
	var sum, squares float64
	best, at := math.Inf(1), 0
	for i := k - 1; i >= 0; i-- { // of the means from i on
		sum += means[i]
		squares += means[i] * means[i]
		n := float64(k - i)
		if n < 5 {
			continue
		}
		if score := (squares - sum*sum/n) / (n * n); score <= best {
			best, at = score, i
		}
	}
	return at * size, at <= k/2
}
