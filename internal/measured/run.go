// Package measured reads results of real serving runs: the layouts of public
// measurements in one folder, and the files that benchmark clients write. It
// turns each into a Run: what was deployed, what was sent, what was observed.
//
// It does not know how to simulate anything, and it reads model and GPU names as
// the source writes them.
package measured

import (
	"math"
	"slices"
)

// Run is one measured run.
type Run struct {
	Source string // layout it came in: "residency", "replay16", ...
	Name   string // unique within the source
	File   string // relative to the folder
	Line   int    // of a table with one run per row; 0 otherwise
	Group  string // rows that belong together: model, engine, GPU, TP
	Setup  Setup
	Load   Load
	Phases []string // names of the phases that requests and figures refer to; nil = one
	// Figures are what was published or computed from the requests.
	Figures []Figure
	Notes   []string // what is assumed because the source does not say it
	Full    bool     // by its own figures and Little's law as many requests were in flight as may run
	NoLoad  error    // what of the load the source does not say; nil = it can be sent again
	drawn   string   // how send times were drawn that the source does not say
	Reject  string   // why the run cannot be replayed; "" = it can
}

// Setup is what was deployed. Zero values: the source does not say.
type Setup struct {
	Model, GPU          string // as the source writes them
	Engine, Version     string // "vllm", "trtllm", "sglang"
	TP, PP, EP, DP      int
	Replicas            int
	Weights, KV         string // number formats: "bf16", "fp8", ...
	StaticScales        bool
	Frontend            string // of trtllm: "nim"; "" = its own server
	ExpertKernel        string // of mxfp4 experts: "mxfp8", "marlin"; "" = the engine's default
	Sampled             bool   // tokens are drawn by top-k and top-p, not greedily
	MaxSeqs             int
	MaxBatchedTokens    int
	MaxModelLen         int
	KVBlocks, BlockSize int
	Utilization         float64 // share of the GPU's memory
	PrefixCache         bool
	// Pool is the measured KV pool in blocks, where it is a figure to be predicted.
	Pool int
}

// Load is what was sent.
type Load struct {
	Requests []Request // in order of At
	InFlight int       // client-side cap; 0 = none
	// SteadyBatch > 0: the run was observed while so many requests were running.
	SteadyBatch int
}

// Request is one request and, where it is known, what became of it. Times in
// seconds from the start of the run.
type Request struct {
	At             float64
	Prompt, Output int
	Content        uint64 // prompts of equal content share a number; 0 = its own
	Phase          int
	Skip           bool // sent, but not compared: warm-up
	Seen           bool // TTFT and E2E are measured
	Failed         bool
	Lag            float64 // send later than intended
	TTFT, E2E      float64
}

// Figure is one measured figure. Times in seconds, rates per second.
type Figure struct {
	Metric string
	Phase  int
	Value  float64
	Values []float64 // per request, in order of arrival, behind Value; nil if unknown
}

// Metrics that a run may have.
const (
	TTFTMean   = "TTFT mean"
	TTFTP50    = "TTFT P50"
	TTFTP90    = "TTFT P90"
	TTFTP99    = "TTFT P99"
	TPOTMean   = "TPOT mean"
	TPOTP50    = "TPOT P50"
	TPOTP90    = "TPOT P90"
	TPOTP99    = "TPOT P99"
	E2EMean    = "E2E mean"
	E2EP50     = "E2E P50"
	E2EP90     = "E2E P90"
	E2EP99     = "E2E P99"
	Served     = "requests/s"
	TokenRate  = "output tokens/s"
	ITLP50     = "ITL P50"
	ITLP99     = "ITL P99"
	PoolBlocks = "KV blocks"
)

// Quantile returns the p-quantile by linear interpolation, as numpy does; the
// values must be sorted.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	x := p * float64(len(sorted)-1)
	i := int(x)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (sorted[i+1]-sorted[i])*(x-float64(i))
}

// Statistic computes a metric of this kind from per-request values: "... mean" or
// "... P50" to "... P99".
func Statistic(metric string, values []float64) float64 {
	p, isQuantile := quantileOf(metric)
	if !isQuantile {
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		return sum / float64(len(values))
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return Quantile(sorted, p)
}

func quantileOf(metric string) (float64, bool) {
	for _, q := range []struct {
		suffix string
		p      float64
	}{{"P50", .5}, {"P90", .9}, {"P95", .95}, {"P99", .99}} {
		if len(metric) > 3 && metric[len(metric)-3:] == q.suffix {
			return q.p, true
		}
	}
	return 0, false
}

// Latencies are the per-request values of some requests, in order of arrival.
type Latencies struct{ TTFT, TPOT, E2E []float64 }

// Add adds one answered request.
func (l *Latencies) Add(ttft, e2e float64, output int) {
	l.TTFT = append(l.TTFT, ttft)
	l.E2E = append(l.E2E, e2e)
	if output >= 2 {
		l.TPOT = append(l.TPOT, (e2e-ttft)/float64(output-1))
	}
}

// Of returns the values that a metric is a statistic of; nil for others.
func (l *Latencies) Of(metric string) []float64 {
	if len(metric) < 5 {
		return nil
	}
	switch metric[:4] {
	case "TTFT":
		return l.TTFT
	case "TPOT":
		return l.TPOT
	case "E2E ":
		return l.E2E
	}
	return nil
}

// requestMetrics are the figures of a run whose requests are known one by one.
var requestMetrics = []string{TTFTMean, TTFTP50, TTFTP90, TTFTP99, TPOTMean, TPOTP50, TPOTP99, E2EMean, E2EP50, E2EP99}

// fromRequests computes the figures of a phase from its requests.
func (r *Run) fromRequests(phase int) {
	var l Latencies
	for i := range r.Load.Requests {
		q := &r.Load.Requests[i]
		if q.Phase == phase && q.Seen && !q.Skip && !q.Failed {
			l.Add(q.TTFT, q.E2E, q.Output)
		}
	}
	for _, m := range requestMetrics {
		if values := l.Of(m); len(values) > 0 {
			r.Figures = append(r.Figures, Figure{Metric: m, Phase: phase, Value: Statistic(m, values), Values: values})
		}
	}
}

// heldBack is a lag, in seconds, that no client has without a cap.
const heldBack = 0.05

// rate computes the requests served per second: those that ended, over the span
// from the first arrival to the last token. It says something only where the
// client's cap held requests back: elsewhere it is the rate that was sent.
func (r *Run) rate() {
	n, end, held := 0, 0.0, 0.0
	for _, q := range r.Load.Requests {
		held = max(held, q.Lag)
		if q.Seen && !q.Failed {
			n++
			end = max(end, q.At+q.Lag+q.E2E)
		}
	}
	if n > 0 && held > heldBack && end > r.Load.Requests[0].At {
		r.Figures = append(r.Figures, Figure{Metric: Served, Value: float64(n) / (end - r.Load.Requests[0].At)})
	}
}
