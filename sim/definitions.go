package sim

import (
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// Definitions are whose metric definitions the quantiles of a run follow, for
// like-for-like comparison; objectives are judged by ours.
const (
	VLLMBench = "vllm-bench" // np.percentile over answered requests
	AIPerf    = "aiperf"     // the same
	GuideLLM  = "guidellm"   // step CDF; TPOT = (last token − sent) ÷ output tokens, TTFT included
	MLPerf    = "mlperf"     // sorted[floor(n·p)]
)

// Definitions in the order of messages; "" is ours.
var Definitions = []string{VLLMBench, AIPerf, GuideLLM, MLPerf}

// rule is how quantiles are taken.
func (e *Experiment) rule() stats.Rule {
	switch e.Metrics {
	case GuideLLM:
		return stats.StepCDF
	case MLPerf:
		return stats.Floor
	}
	return stats.Linear
}

// quantiles returns how a sample's quantiles are taken: other tools leave out what
// was never answered.
func (e *Experiment) quantiles(s *stats.Sample) func(qs ...float64) []float64 {
	if e.Metrics == "" {
		return s.Quantiles
	}
	return func(qs ...float64) []float64 { return s.FiniteQuantilesBy(e.rule(), qs...) }
}

// reportedTPOT is a finished request's time per output token as reports have it.
func (e *Experiment) reportedTPOT(own, e2e clock.Duration, output int32) clock.Duration {
	if e.Metrics == GuideLLM {
		return e2e / clock.Duration(output)
	}
	return own
}
