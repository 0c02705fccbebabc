package report

import (
	"fmt"
	"math"
	"slices"

	"slosim/sim"
)

var none64 = math.NaN()

// stageChart stacks the mean stages of TTFT over time.
func (s *story) stageChart() *chart {
	data := s.series(s.class, s.cohort)
	if data == nil {
		return nil
	}
	c := s.runChart("stages", s.class)
	top := largest(data.Queue) + largest(data.Prefill) + largest(data.Network)
	sc := timeScale(top)
	c.Unit, c.Height, c.labels = unitName(sc), 260, 16
	for _, stage := range []struct {
		name, colour string
		values       []float64
	}{
		{"network", "--network", data.Network}, {"queue", "--queue", data.Queue},
		{"prefill", "--prefill", data.Prefill}, {"publish", "--publish", data.Publish},
	} {
		c.draw(stage.name, c.Unit, scaled(sc, stage.values), line{colour: stage.colour, stack: "ttft", width: .6, fill: .75})
		c.Keys = append(c.Keys, key{stage.name, stage.colour, "area"})
	}
	if c.empty() {
		return nil
	}
	c.Title = s.stageTitle()
	c.Aid = "Mean time that an answered request spends in each stage before its first token; the stages add up to the mean TTFT of the answered."
	return c
}

// stageTitle says which stage grew, and to which share of the mean TTFT.
func (s *story) stageTitle() string {
	now := s.row(s.last, s.class, s.cohort)
	if now == nil {
		return "Where the time to the first token goes"
	}
	after := stageValues(&now.Stages)
	total := after[0] + after[1] + after[2] + after[3]
	k := argmax(after[:])
	if k < 0 || !(total > 0) {
		return "Where the time to the first token goes"
	}
	text := fmt.Sprintf("%s makes %s of the mean TTFT", capital(ttftStages[k]), share(after[k]/total))
	then := s.row(s.first, s.class, s.cohort)
	if then == nil {
		return text
	}
	before := stageValues(&then.Stages)
	growth := make([]float64, len(after))
	for i := range after {
		growth[i] = after[i] - before[i]
	}
	g := argmax(growth)
	if g < 0 || growth[g] <= 0 {
		return text
	}
	return fmt.Sprintf("%s grows most: from %s to %s of a mean TTFT of %s", capital(ttftStages[g]), plainAt(before[g]), plainAt(after[g]), plainAt(total))
}

// ttftStages are the stages before the first token, in order.
var ttftStages = [4]string{"network", "queue", "prefill", "publish"}

func stageValues(s *sim.Stages) [4]float64 {
	return [4]float64{s.Network.V, s.Queue.V, s.Prefill.V, s.Publish.V}
}

// mixChart stacks the share of prompts per length bucket.
func (s *story) mixChart() *chart {
	data := s.series(s.class, everyone)
	if data == nil || len(data.PromptMix) == 0 {
		return nil
	}
	c := s.runChart("mix", s.class)
	c.Unit, c.max, c.labels = "%", 100, 16
	buckets := len(sim.PromptEdges) + 1
	for k := range buckets {
		values := scaled(inPercent, mixOf(data, k))
		if largest(values) < .05 {
			continue
		}
		colour := fmt.Sprintf("--mix%d", k)
		c.draw(bucketName(k), "%", values, line{colour: colour, stack: "mix", width: .3, fill: .95})
		c.Keys = append(c.Keys, key{bucketName(k), colour, "area"})
	}
	if c.empty() {
		return nil
	}
	c.Title = s.mixTitle(data)
	c.Aid = "Share of arriving requests by prompt length, in tokens: the longer, the brighter."
	return c
}

// mixTitle names the length beyond which the share of prompts changed most.
func (s *story) mixTitle(data *sim.ClassSeries) string {
	if s.first == nil {
		return "Prompt-length mix over time"
	}
	best, from, to := 0, 0.0, 0.0
	for k := range len(sim.PromptEdges) {
		before, after := s.tail(data, s.first, k+1), s.tail(data, s.last, k+1)
		if math.Abs(after-before) > math.Abs(to-from)+1e-9 {
			best, from, to = k, before, after
		}
	}
	if math.Abs(to-from) < .01 {
		return "The prompt-length mix stays the same"
	}
	return fmt.Sprintf("Prompts over %s tokens go from %s to %s of the requests", tokens(sim.PromptEdges[best]), share(from), share(to))
}

// tail is the share of a phase's requests in bucket k and above.
func (s *story) tail(data *sim.ClassSeries, p *sim.Phase, k int) float64 {
	sum, weight := 0.0, 0.0
	for i, t := range s.r.Series.T {
		w := get(data.Arrivals, i)
		if t < p.From || t >= p.To || i >= len(data.PromptMix) || math.IsNaN(w) {
			continue
		}
		for _, v := range data.PromptMix[i][min(k, len(data.PromptMix[i])):] {
			if !math.IsNaN(v) {
				sum += w * v
			}
		}
		weight += w
	}
	if weight == 0 {
		return 0
	}
	return sum / weight
}

// lengthChart shows the quantiles of the prompt length.
func (s *story) lengthChart() *chart {
	data := s.series(s.class, everyone)
	if data == nil || largest(data.PromptP50) == 0 {
		return nil
	}
	c := s.runChart("lengths", s.class)
	c.Unit, c.labels = "tokens", 44
	c.draw("prompt P50", "tokens", data.PromptP50, line{colour: "--p50", label: "P50"})
	c.draw("prompt P90", "tokens", data.PromptP90, line{colour: "--p90", label: "P90"})
	c.draw("prompt P99", "tokens", data.PromptP99, line{colour: "--p99", label: "P99"})
	c.log = largest(data.PromptP99) > logAbove*median(data.PromptP50)
	c.Title = "Prompt length over time"
	if now, then := s.row(s.last, s.class, everyone), s.row(s.first, s.class, everyone); now != nil && then != nil {
		c.Title = fmt.Sprintf("Prompt P99: %s tokens in phase %s, %s in phase %s", number(then.Prompt.P99.V, 0), clean(s.first.Name), number(now.Prompt.P99.V, 0), clean(s.last.Name))
	}
	c.Aid = "Quantiles of the prompt length of the requests that arrived in each " + span(s.r.Series.Width) + "."
	if c.log {
		c.Aid += " Log scale."
	}
	return c
}

// bucketName writes a prompt-length bucket: "2K to 4K".
func bucketName(k int) string {
	switch {
	case k == 0:
		return "up to " + tokens(sim.PromptEdges[0])
	case k == len(sim.PromptEdges):
		return "over " + tokens(sim.PromptEdges[k-1])
	}
	return tokens(sim.PromptEdges[k-1]) + " to " + tokens(sim.PromptEdges[k])
}

// tokens writes a token count as people say it: 2000 → "2K".
func tokens(v float64) string {
	if v >= 1000 && math.Mod(v, 1000) == 0 {
		return number(v/1000, 0) + "K"
	}
	return number(v, 0)
}

// unitName is a scale's unit for an axis.
func unitName(sc scale) string { return sc.unit[min(1, len(sc.unit)):] }

// scaled returns the values in a scale's unit.
func scaled(sc scale, values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v * sc.factor
	}
	return out
}

// plainAt writes a time without an interval: a point of a series.
func plainAt(v float64) string { return timeScale(v).plain(v) }

// median of the finite values; NaN without any.
func median(values []float64) float64 {
	var v []float64
	for _, x := range values {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			v = append(v, x)
		}
	}
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	return v[len(v)/2]
}
