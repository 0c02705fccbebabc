package accuracy

import (
	"slices"

	"slosim/internal/measured"
	"slosim/sim/rng"
)

const (
	resamples   = 200
	blockLength = 50 // consecutive requests: neighbours wait for the same steps
)

// Noise returns the 95 % interval of a measured statistic relative to its value,
// by a block bootstrap over its requests, always the same. Without the values
// behind it, or with too few, ok is false.
func Noise(f measured.Figure, name string) (lo, hi float64, ok bool) {
	n := len(f.Values)
	if n < 4*blockLength || f.Value == 0 {
		return 0, 0, false
	}
	source := rng.New(1, rng.Gap, "bootstrap "+name+" "+f.Metric)
	stats := make([]float64, resamples)
	sample := make([]float64, 0, n+blockLength)
	draw := int64(0)
	for i := range stats {
		for sample = sample[:0]; len(sample) < n; draw++ {
			from := int(source.Float64(draw) * float64(n-blockLength+1))
			sample = append(sample, f.Values[from:from+blockLength]...)
		}
		stats[i] = measured.Statistic(f.Metric, sample[:n])
	}
	slices.Sort(stats)
	return measured.Quantile(stats, .025)/f.Value - 1, measured.Quantile(stats, .975)/f.Value - 1, true
}
