package main

import (
	"fmt"
	"io"

	"slosim/internal/measured"
	"slosim/internal/report"
)

// mean returns the mean of values, of which there are some.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// printOverlay writes the measured result beside the simulated one, like for like:
// mean and quantiles of the same requests' latencies.
func printOverlay(w io.Writer, o *report.Overlay) {
	if o == nil {
		return
	}
	fmt.Fprintf(w, "\nMeasured %s against class %s\n\n  %-10s %12s %12s %10s\n", o.Name, o.Class, "metric", "measured", "simulated", "error")
	for _, m := range o.Metrics {
		printed := false
		line := func(name string, want, got float64) {
			printed = true
			fmt.Fprintf(w, "  %-10s %9.1f ms %9.1f ms %+8.1f %%\n", m.Name+" "+name, 1e3*want, 1e3*got, 100*(got/want-1))
		}
		if len(m.Simulated) == 0 {
			fmt.Fprintf(w, "  %-10s nothing was simulated\n", m.Name)
			continue
		}
		if len(m.Measured) > 0 {
			line("mean", mean(m.Measured), mean(m.Simulated))
		} else if m.Mean > 0 {
			line("mean", m.Mean, mean(m.Simulated))
		}
		for _, q := range []float64{.5, .9, .95, .99} {
			want, known := m.Published[q]
			if len(m.Measured) > 0 {
				want, known = measured.Quantile(m.Measured, q), true
			}
			if known && want > 0 {
				line(fmt.Sprintf("P%.0f", 100*q), want, measured.Quantile(m.Simulated, q))
			}
		}
		if !printed {
			fmt.Fprintf(w, "  %-10s not in the result\n", m.Name)
		}
	}
	for _, n := range o.Notes {
		fmt.Fprintln(w, "  Note:", n)
	}
}
