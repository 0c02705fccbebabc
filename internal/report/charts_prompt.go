package report

import (
	"fmt"
	"math"

	"slosim/sim"
	"slosim/sim/stats"
)

// leastForP99 is the number of requests per replication from which a range of
// prompt lengths shows its P99; below it, P99 is hardly more than the largest.
const leastForP99 = 100

// promptChart shows TTFT by prompt length in the last phase against the first:
// whether only the long prompts are slow, or the short ones with them.
func (s *story) promptChart() *chart {
	now, then := s.row(s.last, s.class, everyone), s.row(s.first, s.class, everyone)
	from, to := rangesWithData(now, then)
	if to-from < 2 {
		return nil
	}
	c := &chart{ID: "prompts", Height: 230 + nameHeight, labels: 44, below: "prompt length, tokens"}
	for k := from; k < to; k++ {
		c.buckets = append(c.buckets, bucket{bucketName(k), edgeName(k)})
	}
	after := newLengthLines(now, from, to)
	before := newLengthLines(then, from, to)
	sc := timeScale(max(largest(after.p99), largest(before.p99), largest(after.p50)))
	c.Unit = unitName(sc)
	s.drawPrompts(c, sc, before, after)
	c.log = largest(after.p99) > logAbove*lowest(after.p50)
	c.Aid = fmt.Sprintf("TTFT of the answered requests by prompt length; P99 where a replication has %d requests or more.", leastForP99)
	if c.log {
		c.Aid += " Log scale: equal steps are equal factors."
	}
	threshold := 0.0
	if o := s.objective(s.class); o != nil {
		threshold = o.Threshold.Seconds()
		c.levels = []level{{threshold * sc.factor, "SLO " + plainSeconds(threshold), "--slo"}}
		if k := firstFinite(after.p99); k >= 0 {
			c.lowered = after.p99[k] > threshold
		}
	}
	c.Title = s.promptTitle(after.p99, before.p99, from, threshold)
	return c
}

// drawPrompts adds the columns: the first phase dashed, if there is one, the last
// one solid with its interval.
func (s *story) drawPrompts(c *chart, sc scale, before, after lengthLines) {
	now := short(s.last.Name, 24)
	if s.first != nil {
		then := short(s.first.Name, 24)
		c.Keys = []key{{now, "--ink", "line"}, {then, "--ink", "dash"}}
		c.draw("TTFT P50, "+then, c.Unit, scaled(sc, before.p50), line{colour: "--p50", dash: "dashed", points: hollow})
		c.draw("TTFT P99, "+then, c.Unit, scaled(sc, before.p99), line{colour: "--p99", dash: "dashed", points: hollow})
		c.add("requests, "+then, "", before.n)
	}
	c.draw("TTFT P50, "+now, c.Unit, scaled(sc, after.p50), line{colour: "--p50", label: "P50", points: solid})
	c.draw("TTFT P99, "+now, c.Unit, scaled(sc, after.p99), line{colour: "--p99", label: "P99", width: 2, points: solid})
	if len(s.r.Seeds) > 1 {
		lines := c.lines
		c.lines = nil
		c.band("TTFT P99, "+now, c.Unit, scaled(sc, after.lo), scaled(sc, after.hi), "--p99")
		c.lines = append(c.lines, lines...) // above the band
		c.Keys = append(c.Keys, key{"95 % interval of P99", "--p99", "area"})
	}
	c.add("requests, "+now, "", after.n)
}

// lengthLines are the columns of one phase: a row per range of prompt lengths,
// NaN where the phase has too few requests.
type lengthLines struct{ p50, p99, lo, hi, n []float64 }

func newLengthLines(c *sim.ClassPhase, from, to int) lengthLines {
	var l lengthLines
	for k := from; k < to; k++ {
		b := lengthBand(c, k)
		p99 := b.P99
		if b.N < int64(leastForP99*p99.R) || p99.R == 0 {
			p99 = stats.Estimate{V: none64, Lo: none64, Hi: none64}
		}
		if b.P50.R == 0 {
			b.P50.V = none64
		}
		l.p50, l.p99, l.n = append(l.p50, b.P50.V), append(l.p99, p99.V), append(l.n, float64(b.N))
		l.lo, l.hi = append(l.lo, max(0, p99.Lo)), append(l.hi, p99.Hi)
	}
	return l
}

// lengthBand is range k of a row; it has no requests where the row has none.
func lengthBand(c *sim.ClassPhase, k int) sim.LengthBand {
	if c == nil || k >= len(c.ByLength) {
		return sim.LengthBand{}
	}
	return c.ByLength[k]
}

// rangesWithData is the span [from, to) of ranges in which some row has requests.
func rangesWithData(rows ...*sim.ClassPhase) (from, to int) {
	from = len(sim.PromptEdges) + 1
	for k := range len(sim.PromptEdges) + 1 {
		for _, c := range rows {
			if lengthBand(c, k).P50.R > 0 {
				from, to = min(from, k), k+1
			}
		}
	}
	return from, to
}

// promptTitle says at which prompt lengths P99 breaks the threshold, and at which
// it did before; without a threshold, how far P99 grows with the length.
func (s *story) promptTitle(after, before []float64, from int, threshold float64) string {
	k := argmax(after)
	if k < 0 {
		return "TTFT by prompt length"
	}
	if threshold == 0 {
		return fmt.Sprintf("TTFT P99 is highest for prompts of %s tokens: %s", bucketName(from+k), plainAt(after[k]))
	}
	text, now := "", overFrom(after, from, threshold)
	switch now {
	case overNowhere:
		text = fmt.Sprintf("TTFT P99 stays below %s at every prompt length: at most %s (%s tokens)", plainSeconds(threshold), plainAt(after[k]), bucketName(from+k))
	case overEverywhere:
		first := firstFinite(after)
		text = fmt.Sprintf("TTFT P99 is over %s at every prompt length, %s even for %s tokens", plainSeconds(threshold), plainAt(after[first]), bucketName(from+first))
	default:
		text = fmt.Sprintf("TTFT P99 is over %s for prompts %s", plainSeconds(threshold), now)
	}
	if argmax(before) < 0 {
		return text
	}
	if then := overFrom(before, from, threshold); then != now {
		return text + "; " + clean(s.first.Name) + ": " + then
	}
	return text + ", as in phase " + clean(s.first.Name)
}

// The prompt lengths at which a threshold is broken, beside those of overFrom.
const (
	overNowhere    = "at none"
	overEverywhere = "at every length"
)

// overFrom names the prompt lengths at which values exceed the threshold: none,
// all, those over an edge, or a count of ranges.
func overFrom(values []float64, from int, threshold float64) string {
	first, over, known, gap := -1, 0, 0, false
	for k, v := range values {
		switch {
		case math.IsNaN(v):
			continue
		case v > threshold:
			if first < 0 {
				first = k
			}
			over++
		case first >= 0:
			gap = true
		}
		known++
	}
	switch {
	case over == 0:
		return overNowhere
	case over == known:
		return overEverywhere
	case gap:
		return fmt.Sprintf("in %d of %d ranges of length", over, known)
	}
	return "over " + tokens(sim.PromptEdges[from+first-1]) + " tokens"
}

// firstFinite is the index of the first value that is a number.
func firstFinite(values []float64) int {
	for k, v := range values {
		if !math.IsNaN(v) {
			return k
		}
	}
	return -1
}

// edgeName is a range's label on an axis, by its upper edge: "≤4K", ">64K".
func edgeName(k int) string {
	if k == len(sim.PromptEdges) {
		return ">" + tokens(sim.PromptEdges[k-1])
	}
	return "≤" + tokens(sim.PromptEdges[k])
}
