package stats

import "math"

// Rule is how a quantile lies between order statistics: tools differ.
type Rule string

// The rules.
const (
	Linear  Rule = ""        // NumPy's default, as vllm bench serve and AIPerf have it
	StepCDF Rule = "step"    // guidellm: the smallest value with at least a share q at or below it
	Floor   Rule = "loadgen" // MLPerf loadgen: sorted[floor(n·q)]
)

// QuantilesBy is Quantiles by a rule.
func (s *Sample) QuantilesBy(rule Rule, qs ...float64) []float64 {
	if rule == Linear {
		return s.Quantiles(qs...)
	}
	finite := s.N()
	n := finite + s.inf
	out := make([]float64, len(qs))
	for i, q := range qs {
		k := int64(math.Floor(q * float64(n)))
		if rule == StepCDF {
			k = int64(math.Ceil(q*float64(n)-1e-9)) - 1
		}
		k = max(0, min(k, n-1))
		switch {
		case n == 0:
			out[i] = math.NaN()
		case k >= finite:
			out[i] = math.Inf(1)
		default:
			out[i] = s.orderStatistics([]int64{k})[k]
		}
	}
	return out
}

// FiniteQuantilesBy is QuantilesBy over the values that did come about.
func (s *Sample) FiniteQuantilesBy(rule Rule, qs ...float64) []float64 {
	inf := s.inf
	s.inf = 0
	defer func() { s.inf = inf }()
	return s.QuantilesBy(rule, qs...)
}
