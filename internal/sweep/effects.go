package sweep

import (
	"cmp"
	"math"
	"slices"

	"slosim/internal/design"
	"slosim/sim/stats"
)

// Levels of a factor with more values than mostLevels are made of equally many points
// each, in order of the value.
const (
	mostLevels = 8
	binnedInto = 5
)

// Effect is how much one factor moves one metric: its main effect. The metric is
// averaged over all points of a level, whatever the other factors are there.
type Effect struct {
	Metric, Factor int
	Levels         []Level
	Low, High      int            // levels with the least and the greatest mean; -1 = none
	Range          stats.Estimate // High − Low, over seeds
	// Share is the part of the points' variance that the levels explain: ε² = (SSB −
	// (k−1)·MSW) ÷ SST of a one-way analysis, cut to [0, 1]; NaN when nothing varies.
	Share float64
	Gaps  int // points without a finite value, left out
}

// Level is some points whose factor has one value, or nearly.
type Level struct {
	Label string
	Mean  stats.Estimate // over seeds
	N     int            // points
}

// effects fills r.Effects, ordered by metric, the widest first.
func (r *Result) effects() {
	for m := range r.Plan.Metrics {
		var list []Effect
		for f := range r.Plan.File.Factors {
			list = append(list, r.effect(m, f))
		}
		slices.SortStableFunc(list, func(a, b Effect) int { return cmp.Compare(orZero(b.Range.V), orZero(a.Range.V)) })
		r.Effects = append(r.Effects, list...)
	}
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// of returns a metric's effects, the widest first.
func (r *Result) of(metric int) []Effect {
	n := len(r.Plan.File.Factors)
	return r.Effects[metric*n : (metric+1)*n]
}

func (r *Result) effect(metric, factor int) Effect {
	e := Effect{Metric: metric, Factor: factor, Low: -1, High: -1, Share: math.NaN()}
	level, labels := r.levels(factor)
	groups := make([][]int, len(labels)) // points of each level
	for p := range r.Plan.Points {
		switch {
		case r.Plan.Points[p].Invalid != "":
		case !r.finite(p, metric):
			e.Gaps++
		default:
			groups[level[p]] = append(groups[level[p]], p)
		}
	}
	perSeed := make([][]float64, len(labels))
	for l, points := range groups {
		perSeed[l] = make([]float64, len(r.Plan.Seeds))
		for s := range perSeed[l] {
			perSeed[l][s] = math.NaN()
			if len(points) > 0 {
				perSeed[l][s] = r.mean(points, metric, s)
			}
		}
		e.Levels = append(e.Levels, Level{labels[l], stats.Of(perSeed[l], 0), len(points)})
		if len(points) == 0 {
			continue
		}
		if v := e.Levels[l].Mean.V; e.Low < 0 || v < e.Levels[e.Low].Mean.V {
			e.Low = l
		}
		if v := e.Levels[l].Mean.V; e.High < 0 || v > e.Levels[e.High].Mean.V {
			e.High = l
		}
	}
	if e.Low >= 0 {
		diff := make([]float64, len(r.Plan.Seeds))
		for s := range diff {
			diff[s] = perSeed[e.High][s] - perSeed[e.Low][s]
		}
		e.Range = stats.Of(diff, 0)
	}
	e.Share = r.explained(groups, metric)
	return e
}

// finite tells whether a metric has a finite value at a point on every seed.
func (r *Result) finite(point, metric int) bool {
	for _, v := range r.Values[point][metric] {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// mean is a metric's mean over points on one seed.
func (r *Result) mean(points []int, metric, seed int) float64 {
	sum := 0.0
	for _, p := range points {
		sum += r.Values[p][metric][seed]
	}
	return sum / float64(len(points))
}

// explained is ε² of the groups.
func (r *Result) explained(groups [][]int, metric int) float64 {
	var all []float64
	k, within := 0, 0.0
	for _, points := range groups {
		if len(points) == 0 {
			continue
		}
		k++
		var values []float64
		for _, p := range points {
			values = append(values, r.Estimate(p, metric).V)
		}
		within += squares(values)
		all = append(all, values...)
	}
	total := squares(all)
	if k < 2 || !(total > 0) {
		return math.NaN()
	}
	if len(all) == k { // one point per level: the factor is all there is
		return 1
	}
	noise := within / float64(len(all)-k)
	return min(1, max(0, (total-within-float64(k-1)*noise)/total))
}

// squares is the sum of squared deviations from the mean.
func squares(values []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum
}

// levels returns the level of every point and their labels, in order of the value.
func (r *Result) levels(factor int) (of []int, labels []string) {
	f := &r.Plan.File.Factors[factor]
	var distinct []string
	for _, p := range r.Plan.Points {
		if !slices.Contains(distinct, p.Values[factor]) {
			distinct = append(distinct, p.Values[factor])
		}
		if len(distinct) > mostLevels && f.Values == nil {
			return r.bins(factor)
		}
	}
	if f.Values != nil {
		distinct = f.Values // in the order in which they are listed
	} else {
		slices.SortFunc(distinct, func(a, b string) int { return cmp.Compare(numberOf(a), numberOf(b)) })
	}
	for _, p := range r.Plan.Points {
		of = append(of, slices.Index(distinct, p.Values[factor]))
	}
	for _, v := range distinct {
		labels = append(labels, f.Label(v))
	}
	return of, labels
}

// bins parts the points into levels of equally many.
func (r *Result) bins(factor int) (of []int, labels []string) {
	n := len(r.Plan.Points)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	at := func(i int) float64 { return numberOf(r.Plan.Points[order[i]].Values[factor]) }
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(numberOf(r.Plan.Points[a].Values[factor]), numberOf(r.Plan.Points[b].Values[factor]))
	})
	of = make([]int, n)
	first, unit := 0, r.Plan.File.Factors[factor].Unit
	for l := range binnedInto {
		last := (l + 1) * n / binnedInto
		for last < n && last > first && at(last) == at(last-1) {
			last++ // equal values stay together
		}
		if last <= first {
			continue
		}
		for _, p := range order[first:last] {
			of[p] = len(labels)
		}
		labels = append(labels, short(at(first))+" to "+short(at(last-1))+unit)
		first = last
	}
	return of, labels
}

func numberOf(value string) float64 {
	v, _, _ := design.Split(value)
	return v
}
