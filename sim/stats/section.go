package stats

import "math"

// fewestBatches is how many batches an interval within one run needs at least.
const fewestBatches = 10

// beyond is how many values of a batch must lie above a quantile on average, or else
// its value there says little.
const beyond = 100

// Section is the 95 % interval of a statistic from the batches of one run; Batches =
// 0: there are too few values for one.
type Section struct {
	Half    float64
	Batches int
}

// BatchValues are the mean and the quantiles of each batch of one run.
type BatchValues struct {
	mean      []float64
	quantiles [][]float64 // nil: the batches are too small for it
}

// InBatches cuts one run's values, which the samples hold in their order of time, part
// by part (a class's cohorts), into batches: equal parts of each sample. Values that
// never came about have no place in time: with any of them, or with more values than
// are kept, there are no batches. It reorders values within their batches, so it comes
// before the quantiles of the whole.
func InBatches(samples []*Sample, qs []float64) BatchValues {
	v := BatchValues{quantiles: make([][]float64, len(qs))}
	n := 0
	for _, s := range samples {
		if s.counted || s.inf > 0 {
			return v
		}
		n += s.kept()
	}
	for _, k := range []int{Batches, fewestBatches} {
		size := n / k
		if size < beyond {
			continue
		}
		most := 1 - beyond/float64(size) // quantile that batches of this size bear
		var wanted []int
		var asked []float64
		for i, q := range qs {
			if v.quantiles[i] == nil && 1-q <= most && q <= most {
				wanted, asked = append(wanted, i), append(asked, q)
			}
		}
		if len(wanted) == 0 && v.mean != nil {
			continue
		}
		means := make([]float64, 0, k)
		for b := range k {
			batch := part(samples, b, k)
			means = append(means, batch.Mean())
			for j, x := range batch.Quantiles(asked...) {
				v.quantiles[wanted[j]] = append(v.quantiles[wanted[j]], x)
			}
		}
		if v.mean == nil {
			v.mean = means
		}
	}
	return v
}

// Around returns the 95 % intervals around the values of the whole run: Student's t
// times the root of the mean square of the batches' deviations from them, over the
// root of their number (sectioning: Asmussen and Glynn, Stochastic Simulation, 2007,
// III.5a). Batches must be long against the time over which the run forgets.
func (v BatchValues) Around(mean float64, at []float64) (m Section, quantiles []Section) {
	for i, list := range v.quantiles {
		quantiles = append(quantiles, section(list, at[i]))
	}
	return section(v.mean, mean), quantiles
}

func section(values []float64, at float64) Section {
	k := len(values)
	if k == 0 {
		return Section{}
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - at) * (v - at)
	}
	return Section{T975(k-1) * math.Sqrt(squares/float64(k-1)/float64(k)), k}
}

// part returns the b-th of k equal parts of each sample together.
func part(samples []*Sample, b, k int) *Sample {
	cut := func(v []int64) []int64 { return v[len(v)*b/k : len(v)*(b+1)/k] }
	out := &Sample{}
	if len(samples) == 1 {
		out.values = cut(samples[0].all())
	} else {
		for _, s := range samples {
			out.values = append(out.values, cut(s.all())...)
		}
	}
	for _, v := range out.values {
		out.sum += float64(v)
	}
	return out
}
