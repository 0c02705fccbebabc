package promrules

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"slosim/sim/slo"
)

// Histogram is one of vLLM's, with its buckets in ascending order.
type Histogram struct {
	Name    string
	Buckets []float64
}

// Buckets of vLLM's histograms in seconds (vllm/v1/metrics/loggers.py).
var (
	ttftBuckets    = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenBuckets   = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBuckets = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

// histograms are the metrics that objectives are watched by.
var histograms = map[slo.Metric]Histogram{
	slo.TTFT:  {"vllm:time_to_first_token_seconds", ttftBuckets},
	slo.TPOT:  {"vllm:request_time_per_output_token_seconds", tokenBuckets},
	slo.ITL:   {"vllm:inter_token_latency_seconds", tokenBuckets},
	slo.E2E:   {"vllm:e2e_request_latency_seconds", requestBuckets},
	slo.Queue: {"vllm:request_queue_time_seconds", requestBuckets},
}

// prompts is the histogram of prompt lengths, in tokens.
const prompts = "vllm:request_prompt_tokens"

// HistogramOf returns the histogram that watches a metric.
func HistogramOf(m slo.Metric) (Histogram, bool) {
	h, ok := histograms[m]
	return h, ok
}

// MetricOf returns the metric that a histogram watches.
func MetricOf(name string) (slo.Metric, bool) {
	for _, m := range slo.Metrics {
		if histograms[m].Name == name && name != "" {
			return m, true
		}
	}
	return "", false
}

// labels writes a selector with a bucket's edge, or without.
func labels(selector, le string) string {
	switch {
	case selector == "" && le == "":
		return ""
	case selector == "":
		return "{le=\"" + le + "\"}"
	case le == "":
		return "{" + selector + "}"
	}
	return "{" + selector + ",le=\"" + le + "\"}"
}

// le writes a bucket's edge as the Python client exposes it: 1 as "1.0".
func le(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if v == math.Trunc(v) {
		text += ".0"
	}
	return text
}

// Good returns the rate of events at or below a threshold over a window, and what
// there is to say about its exactness ("" when the threshold is a bucket). The
// threshold is not below the first bucket, where a histogram says nothing.
func (h Histogram) Good(threshold float64, selector, window string) (expr, note string) {
	rate := func(edge float64) string {
		return fmt.Sprintf("sum(rate(%s_bucket%s[%s]))", h.Name, labels(selector, le(edge)), window)
	}
	k, exact := slices.BinarySearch(h.Buckets, threshold)
	switch {
	case exact:
		return rate(threshold), ""
	case k == len(h.Buckets):
		return rate(h.Buckets[k-1]), fmt.Sprintf("the threshold of %g s is beyond the last bucket of %s, %g s: that one stands for it", threshold, h.Name, h.Buckets[k-1])
	}
	lo, hi := h.Buckets[k-1], h.Buckets[k]
	part := (threshold - lo) / (hi - lo)
	return fmt.Sprintf("(%.6g * %s + %.6g * %s)", 1-part, rate(lo), part, rate(hi)),
		fmt.Sprintf("%g s is no bucket of %s: interpolated between %g and %g s", threshold, h.Name, lo, hi)
}

// All returns the rate of all events over a window.
func (h Histogram) All(selector, window string) string {
	return fmt.Sprintf("sum(rate(%s_count%s[%s]))", h.Name, labels(selector, ""), window)
}

// Answered returns the rates of requests answered in full and of all requests, by
// the API server's counter of HTTP answers. Streams that break off are not seen.
func Answered(selector, window string) (good, all string) {
	of := func(status string) string {
		l := `handler=~"/v1/(chat/)?completions"`
		if selector != "" {
			l = selector + "," + l
		}
		return fmt.Sprintf("sum(rate(http_requests_total{%s%s}[%s]))", l, status, window)
	}
	return of(`,status="2xx"`), of("")
}

// Ratio returns the rates of good and of all events of an objective. Bands of
// prompt lengths and goodput have none: vLLM does not join its histograms; nor have
// thresholds below its first bucket.
func Ratio(o *slo.Objective, selector, window string) (good, all, note string, ok bool) {
	if o.Metric == slo.Availability {
		good, all = Answered(selector, window)
		return good, all, "a stream that breaks off counts as answered", true
	}
	h, ok := histograms[o.Metric]
	if !ok || o.Banded() || o.Threshold.Seconds() < h.Buckets[0] {
		return "", "", "", false
	}
	good, note = h.Good(o.Threshold.Seconds(), selector, window)
	return good, h.All(selector, window), note, true
}

// promptBucket is the largest edge of vLLM's 1-2-5 buckets that is at most tokens.
func promptBucket(tokens float64) float64 {
	best := 1.0
	for e := 1.0; e <= tokens; e *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if m*e <= tokens {
				best = m * e
			}
		}
	}
	return best
}
