package report

import (
	"fmt"
	"math"
	"slices"

	"slosim/internal/accuracy"
	"slosim/internal/measured"
	"slosim/sim"
	"slosim/sim/slo"
)

// Overlay is a measured result beside the simulated one: sorted values in seconds.
type Overlay struct {
	Name    string // of the measured result
	Class   string // of the simulation
	Metrics []OverlayMetric
	Notes   []string
}

// OverlayMetric is one metric of both.
type OverlayMetric struct {
	Name                string // "TTFT", "TPOT", "E2E"
	Measured, Simulated []float64
	// Published holds the quantiles of a result without single values, by quantile.
	Published map[float64]float64
	Mean      float64 // of such a result, in seconds; 0 = not known
}

// overlayQuantiles are the points of a quantile curve.
var overlayQuantiles = []float64{.01, .05, .1, .25, .5, .75, .9, .95, .99}

// at returns a measured quantile, NaN if it is not known.
func (m *OverlayMetric) at(q float64) float64 {
	if len(m.Measured) > 0 {
		return measured.Quantile(m.Measured, q)
	}
	if v, ok := m.Published[q]; ok {
		return v
	}
	return math.NaN()
}

// measuredCharts draws the quantile curves of a measured result over the
// simulated ones.
func (s *story) measuredCharts() []*chart {
	o := s.m.Measured
	if o == nil {
		return nil
	}
	var out []*chart
	for i := range o.Metrics {
		m := &o.Metrics[i]
		if len(m.Simulated) == 0 || len(m.Measured) == 0 && len(m.Published) == 0 {
			continue
		}
		out = append(out, measuredChart(m, o))
	}
	if len(out) > 0 {
		for _, n := range o.Notes {
			out[0].Aid += " Note: " + clean(n) + "."
		}
	}
	return out
}

func measuredChart(m *OverlayMetric, o *Overlay) *chart {
	c := &chart{ID: "measured-" + m.Name, Height: 260 + nameHeight, labels: 70, below: "quantile"}
	var got, want []float64
	for _, q := range overlayQuantiles {
		label := fmt.Sprintf("P%g", 100*q)
		c.buckets = append(c.buckets, bucket{label, label})
		got = append(got, measured.Quantile(m.Simulated, q))
		want = append(want, m.at(q))
	}
	sc := timeScale(max(largest(got), largest(want)))
	c.Unit = unitName(sc)
	c.draw("simulated", c.Unit, scaled(sc, got), line{colour: "--p50", label: "simulated", width: 2, points: solid})
	c.draw("measured", c.Unit, scaled(sc, want), line{colour: "--p99", label: "measured", dash: "dashed", points: hollow})
	c.log = largest(got) > logAbove*lowest(got)
	c.Title = fmt.Sprintf("%s measured and simulated: %s", m.Name, m.differences())
	c.Aid = fmt.Sprintf("Quantiles of %s over all requests of %s. Measured: %s, %s; simulated: %s.", m.Name, clean(o.Class), clean(o.Name), requests(len(m.Measured)), requests(len(m.Simulated)))
	return c
}

func requests(n int) string {
	if n == 0 {
		return "published quantiles only"
	}
	return plural(n, "request")
}

// differences says how far the simulation is off at P50 and P99.
func (m *OverlayMetric) differences() string {
	text := ""
	for _, q := range []float64{.5, .99} {
		want := m.at(q)
		if math.IsNaN(want) || want == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("P%g %+.1f %%", 100*q, 100*(measured.Quantile(m.Simulated, q)/want-1))
	}
	if text == "" {
		return "no common quantile"
	}
	return text
}

// unfittedError is said of GPUs whose kernels nobody measured.
const unfittedError = "model error: unfitted, ±30 %"

// modelError says how far the model was off in validation for the engine and GPU
// that serve the headline's class.
func (s *story) modelError() string {
	p := s.servingPool()
	if p == nil || s.m.Bands == nil {
		return ""
	}
	if !p.Deployment.GPU.Measured() {
		return unfittedError + " (no kernel tables of " + p.Deployment.GPU.Name + ")"
	}
	b, ok := accuracy.BandOf(s.m.Bands, p.Engine.Kind, p.Deployment.GPU.Name)
	v := b.TTFT
	if s.focus != nil && (s.focus.Metric == slo.TPOT || s.focus.Metric == slo.E2E) {
		v = b.TPOT
	}
	if !ok || v == 0 {
		return fmt.Sprintf("model error: unknown, no validated runs of %s on %s", p.Engine.Kind, p.Deployment.GPU.Name)
	}
	return fmt.Sprintf("model error ±%.0f %% (90 %% of %s of %s on %s)", math.Ceil(100*v), plural(b.Runs, "validated run"), p.Engine.Kind, p.Deployment.GPU.Name)
}

// servingPool is the pool that answers the headline's class.
func (s *story) servingPool() *sim.Pool {
	e := &s.r.Experiment
	for i := range e.Pools {
		if p := &e.Pools[i]; p.Role != "prefill" && (len(p.Classes) == 0 || slices.Contains(p.Classes, s.class)) {
			return p
		}
	}
	return nil
}
