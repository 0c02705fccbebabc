package sim

import (
	"fmt"

	"slosim/sim/slo"
)

// BreakLength returns the prompt length, in tokens, from which on objective k
// breaks, and how that is known: in the first phase that keeps the objective, the
// lower edge of the first bucket of prompt lengths whose P99 of the TTFT exceeds
// the threshold, or what an idle replica cannot do in time, if that is shorter.
// 0 = it breaks at no length, or the objective is not on TTFT.
func (r *Result) BreakLength(k int) (length int32, why string) {
	s := &r.SLOs[k]
	if s.Metric != slo.TTFT {
		return 0, ""
	}
	if s.IdleLength > 0 {
		length, why = s.IdleLength, "even an idle replica is too slow for them"
	}
	for i, ph := range r.Phases {
		if i >= len(s.Phases) || !(s.Phases[i].BadShare.V <= 1-s.Target) {
			continue
		}
		for _, c := range ph.Classes {
			if c.Class != s.Class || c.Cohort != "all" {
				continue
			}
			for b, band := range c.ByLength {
				if b == 0 || band.P99.R == 0 || band.P99.V <= s.Threshold.Seconds() {
					continue
				}
				if from := int32(PromptEdges[b-1]); length == 0 || from < length {
					length, why = from, fmt.Sprintf("in the simulated phase %q, which kept the objective, the P99 of prompts beyond them is %s", ph.Name, seconds(band.P99.V))
				}
				break
			}
		}
		break
	}
	return length, why
}

// IdleLengths returns, per objective on TTFT, the smallest prompt that misses its
// threshold on an idle replica of the pool that serves its class; 0 for others. It
// simulates nothing.
func IdleLengths(e Experiment) ([]int32, error) {
	p, err := newPlan(e)
	if err != nil {
		return nil, err
	}
	out := make([]int32, len(e.SLOs))
	for k, o := range e.SLOs {
		for c := range e.Traffic {
			if o.Metric == slo.TTFT && e.Traffic[c].Name == o.Class {
				out[k] = p.idleLength(int(p.poolOf[c]), o.Threshold)
			}
		}
	}
	return out, nil
}
