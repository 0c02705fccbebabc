package report

import (
	"fmt"
	"math"

	"slosim/sim"
)

// maxPoolCharts bounds how many pools are drawn; all are in the tables and in
// timeseries-pools.csv.
const maxPoolCharts = 6

// arrivalChart shows arrivals and completions of all classes together.
func (s *story) arrivalChart() *chart {
	c := s.runChart("arrivals", "")
	c.Unit, c.labels = "requests/s", 16
	n := len(s.r.Series.T)
	arrived, completed := make([]float64, n), make([]float64, n)
	for i := range s.r.Series.Classes {
		x := &s.r.Series.Classes[i]
		if x.Cohort != everyone {
			continue
		}
		for k := range n {
			arrived[k] += zeroIfNone(get(x.Arrivals, k))
			completed[k] += zeroIfNone(get(x.Completions, k))
		}
	}
	c.draw("arrivals", "/s", arrived, line{colour: "--arrivals", fill: .18})
	c.draw("completions", "/s", completed, line{colour: "--good", dash: "dashed"})
	if c.empty() {
		return nil
	}
	k := argmax(arrived)
	c.Title = fmt.Sprintf("Arrivals peak at %s requests/s (%s)", number(arrived[k], decimals(arrived[k], 0)), s.label(s.r.Series.T[k]))
	c.Aid = "Arrivals by the time of the request, completions by the time of the last token; the dashed line stays below where requests are rejected or pile up."
	c.Keys = []key{{"arrivals", "--arrivals", "area"}, {"completions", "--good", "dash"}}
	return c
}

func zeroIfNone(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// queueChart shows running and waiting requests of a pool's replicas.
func (s *story) queueChart(i int, p *sim.PoolSeries) *chart {
	c := s.runChart(fmt.Sprintf("queue%d", i), "")
	c.Unit, c.labels = "requests per replica", 60
	c.draw("running", "", p.Running, line{colour: "--line", label: "running"})
	c.draw("waiting", "", p.Waiting, line{colour: "--queue", label: "waiting"})
	if c.empty() {
		return nil
	}
	c.Title = fmt.Sprintf("Up to %s requests run and %s wait per replica", oneDecimal(largest(p.Running)), oneDecimal(largest(p.Waiting)))
	c.Aid = "Mean over replicas: requests in the batch, and requests in the queue or the front end."
	return c
}

// cacheChart shows KV-cache use, and preemptions where there are any.
func (s *story) cacheChart(i int, p *sim.PoolSeries) *chart {
	c := s.runChart(fmt.Sprintf("kv%d", i), "")
	c.Unit, c.labels, c.max = "% of KV blocks", 60, 100
	c.draw("KV use, mean", "%", scaled(inPercent, p.KVUse), line{colour: "--line", label: "mean"})
	c.draw("KV use, fullest replica", "%", scaled(inPercent, p.KVMax), line{colour: "--ink", dash: "dotted", label: "fullest"})
	if c.empty() {
		return nil
	}
	peak := largest(p.KVMax)
	if i < len(s.r.Pools) {
		peak = max(peak, s.r.Pools[i].KVPeak) // between the samples of the series
	}
	c.Title = fmt.Sprintf("The KV cache is at most %s full", share(peak))
	if largest(p.Preempt) > 0 {
		c.under("preemptions", p.Preempt, "--slo", .35)
		c.Title += "; preemptions happen"
	} else {
		c.Title += "; nothing is preempted"
	}
	c.Aid = "Share of the KV blocks in use. Near 100 %, requests wait for blocks or lose theirs and are computed again."
	if largest(p.PrefixHit) > 0 {
		c.draw("prompt tokens found in the prefix cache", "%", scaled(inPercent, p.PrefixHit), line{colour: "--good", dash: "dashed", label: "prefix hits"})
		c.labels = 76
		c.Aid += " Dashed: share of the prompt tokens found in the prefix cache."
	}
	return c
}

func oneDecimal(v float64) string {
	if v >= 10 {
		return number(v, 0)
	}
	return number(v, 1)
}

// splitChart stacks where the step time goes.
func (s *story) splitChart(i int, p *sim.PoolSeries) *chart {
	c := s.runChart(fmt.Sprintf("split%d", i), "")
	c.Unit, c.max, c.labels = "% of step time", 100, 16
	parts := []struct {
		name string
		of   func(sim.StepSplit) float64
	}{
		{"linear layers", func(x sim.StepSplit) float64 { return x.Gemm }}, {"attention", func(x sim.StepSplit) float64 { return x.Attn }},
		{"collectives", func(x sim.StepSplit) float64 { return x.Comm }}, {"small ops", func(x sim.StepSplit) float64 { return x.Small }},
		{"LM head", func(x sim.StepSplit) float64 { return x.Head }}, {"host", func(x sim.StepSplit) float64 { return x.Host }},
	}
	for k, part := range parts {
		values := scaled(inPercent, split(part.of)(p))
		colour := fmt.Sprintf("--part%d", k)
		c.draw(part.name, "%", values, line{colour: colour, stack: "split", width: .4, fill: .8})
		c.Keys = append(c.Keys, key{part.name, colour, "area"})
	}
	if c.empty() {
		return nil
	}
	c.Title = "Where the step time goes"
	if i < len(s.r.Pools) {
		x := s.r.Pools[i].Split
		c.Title = fmt.Sprintf("Linear layers take %s of the step time, collectives %s, the host %s", share(x.Gemm), share(x.Comm), share(x.Host))
	}
	c.Aid = "Shares of the time of engine steps: GPU kernels by kind, all-reduce between GPUs, and the host outside the GPU."
	return c
}

// clockChart, heatChart and powerChart show the GPUs' state.
func (s *story) clockChart(i int, p *sim.PoolSeries) *chart {
	c := s.runChart(fmt.Sprintf("clock%d", i), "")
	c.Unit, c.labels = "MHz", 16
	c.draw("SM clock", "MHz", p.ClockMHz, line{colour: "--line"})
	if c.empty() {
		return nil
	}
	low := lowest(p.ClockMHz)
	c.max = niceMax(largest(p.ClockMHz))
	c.Title = fmt.Sprintf("The SM clock averages %s MHz or more at all times", number(low, 0))
	if i < len(s.r.Experiment.Pools) {
		if top := s.r.Experiment.Pools[i].Deployment.GPU.MaxClockMHz; top > 0 {
			c.levels = []level{{float64(top), "maximum " + count(top), "--muted"}}
			c.Title = fmt.Sprintf("The SM clock falls to %s of its maximum of %s MHz", share(low/float64(top)), count(top))
			if low >= float64(top)-1 {
				c.Title = fmt.Sprintf("The SM clock stays at its maximum of %s MHz", count(top))
			}
		}
	}
	c.Aid = "Mean over the pool's GPUs. Compute-bound work, above all prefill, slows down with the clock."
	return c
}

func (s *story) heatChart(i int, p *sim.PoolSeries) *chart {
	c := s.runChart(fmt.Sprintf("heat%d", i), "")
	c.Unit, c.labels = "°C", 60
	c.draw("GPU temperature, mean", "°C", p.TempC, line{colour: "--line", label: "mean"})
	c.draw("GPU temperature, hottest", "°C", p.TempMaxC, line{colour: "--ink", dash: "dotted", label: "hottest"})
	if c.empty() {
		return nil
	}
	c.Title = fmt.Sprintf("The hottest GPU reaches %s °C", number(largest(p.TempMaxC), 0))
	c.Aid = "GPU temperature over the pool; above the slowdown limit the clock would fall."
	if i < len(s.r.Experiment.Pools) {
		if limit := s.r.Experiment.Pools[i].Deployment.GPU.MaxTempC; limit > 0 {
			c.levels = []level{{limit, "slowdown " + number(limit, 0) + " °C", "--slo"}}
		}
	}
	return c
}

func (s *story) powerChart(i int, p *sim.PoolSeries) *chart {
	c := s.runChart(fmt.Sprintf("power%d", i), "")
	c.Unit, c.labels = "W per GPU", 16
	c.draw("power", "W", p.PowerW, line{colour: "--line"})
	if c.empty() {
		return nil
	}
	c.Title = fmt.Sprintf("A GPU draws up to %s W", number(largest(p.PowerW), 0))
	c.Aid = "Mean over the pool's GPUs, within each window."
	if i < len(s.r.Experiment.Pools) {
		if limit := s.r.Experiment.Pools[i].Deployment.GPU.TDPW; limit > 0 {
			c.levels = []level{{limit, "power cap " + number(limit, 0) + " W", "--slo"}}
		}
	}
	return c
}

// lowest returns the smallest finite value, or 0.
func lowest(values []float64) float64 {
	low := math.Inf(1)
	for _, v := range values {
		if v < low {
			low = v
		}
	}
	if math.IsInf(low, 0) {
		return 0
	}
	return low
}
