package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is a number with what is known of its error: the mean over
// replications and its 95 % Student-t interval.
type Estimate struct {
	V       float64 // mean over replications; +Inf when the quantile lies among requests never answered
	Lo, Hi  float64 // 95 % interval; equal to V when R = 1
	N       int64   // observations behind it, all replications
	R       int     // replications that gave a value; 1 = no interval, 0 = no value
	Batches int     // of one run that made the interval, when R = 1; 0 = none did
	Thin    bool    // fewer observations in a replication than the statistic needs (P99: 1,000)
}

// Of returns the estimate from one value per replication. NaN marks a
// replication that gave none. When any is +Inf, so is the mean, and the interval
// is not bounded above. n is the number of observations behind all of them.
func Of(values []float64, n int64) Estimate {
	var sum, squares float64
	e := Estimate{N: n}
	low := math.Inf(1)
	inf := false
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		e.R++
		inf = inf || math.IsInf(v, 1)
		low = min(low, v)
		sum += v
	}
	if e.R == 0 {
		e.V, e.Lo, e.Hi = math.NaN(), math.NaN(), math.NaN()
		return e
	}
	if inf {
		e.V, e.Lo, e.Hi = math.Inf(1), low, math.Inf(1)
		return e
	}
	e.V = sum / float64(e.R)
	e.Lo, e.Hi = e.V, e.V
	if e.R == 1 {
		return e
	}
	for _, v := range values {
		if !math.IsNaN(v) {
			squares += (v - e.V) * (v - e.V)
		}
	}
	half := T975(e.R-1) * math.Sqrt(squares/float64(e.R-1)/float64(e.R))
	e.Lo, e.Hi = e.V-half, e.V+half
	return e
}

// Share is Of for shares: the interval is cut to [0, 1].
func Share(values []float64, n int64) Estimate {
	e := Of(values, n)
	e.Lo, e.Hi = max(e.Lo, 0), min(e.Hi, 1)
	return e
}

// BadShare is Share for the share of bad events, with a floor under its upper end:
// when all replications agree, Student's t sees no spread and would be certain
// from any number of events, so the interval then reaches at least to what n
// independent events leave possible (Clopper and Pearson, 97.5 % one-sided).
func BadShare(values []float64, n int64) Estimate {
	e := Share(values, n)
	if e.R < 2 {
		return e
	}
	return e.withFloor(n)
}

// withFloor widens an interval without width to what n independent events leave
// possible.
func (e Estimate) withFloor(n int64) Estimate {
	if e.Lo < e.Hi || n == 0 {
		return e
	}
	bad := math.Round(e.V * float64(n))
	good := float64(n) - bad
	if good > 0 {
		e.Hi = distuv.Beta{Alpha: bad + 1, Beta: good}.Quantile(0.975)
	}
	if bad > 0 {
		e.Lo = distuv.Beta{Alpha: bad, Beta: good + 1}.Quantile(0.025)
	}
	return e
}

// T975 returns the 97.5 % quantile of Student's t distribution, the half width
// of a 95 % interval in standard errors.
func T975(degrees int) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(degrees)}.Quantile(0.975)
}
