package review

import (
	"fmt"
	"math"

	"slosim/sim"
)

// Call is the outcome of a review.
type Call string

// The calls, from best to worst.
const (
	Pass  Call = "PASS"
	Warn  Call = "WARN"
	Block Call = "BLOCK"
)

// Verdict is the call and the rule that decided it.
type Verdict struct {
	Call Call   `json:"call"`
	SLO  string `json:"slo"`  // the objective that decided it; "" = none
	Rule string `json:"rule"` // which rule, in a sentence
}

// rules states how a call comes about; docs/review.md and every review print it.
const rules = "BLOCK: an objective is MISSED with the change, and its bad share grows beyond chance and by a material amount. " +
	"WARN: it grows so and is not MISSED, or a new objective is not MET. PASS: anything else. " +
	"Beyond chance: one-sided paired t test over replications, %s over all objectives together. " +
	"Material: the burn rate grows by %s or more, or an objective that was MET is MISSED."

// Rules are the rules with this review's thresholds.
func (r *Review) Rules() string { return fmt.Sprintf(rules, percent(r.chance), short(r.material)) }

// decide judges every objective and returns the worst call.
func decide(slos []SLO, material, chance float64) Verdict {
	v := Verdict{Call: Pass, Rule: "no objective gets worse beyond chance and by a material amount"}
	if len(slos) == 0 {
		return Verdict{Call: Warn, Rule: "the experiment promises nothing: it has no [[slo]]"}
	}
	for k := range slos {
		call := slos[k].judge(material, chance/float64(len(slos)))
		if rank(call) > rank(v.Call) {
			v = Verdict{call, slos[k].Name, slos[k].Rule}
		}
	}
	return v
}

func rank(c Call) int { return map[Call]int{Pass: 0, Warn: 1, Block: 2}[c] }

// judge calls one objective and says by which rule.
func (s *SLO) judge(material, alpha float64) Call {
	after := fmt.Sprintf("%s of the requests miss it, %s may", percent(float64(s.Bad.After.V)), percent(float64(s.Allowed)))
	if s.New {
		switch s.Status {
		case sim.Missed:
			s.Worse, s.Rule = true, "it is new with the change and MISSED: "+after
			return Block
		case sim.Undecided:
			s.Rule = "it is new with the change and UNDECIDED"
			return Warn
		}
		s.Rule = "it is new with the change and MET"
		return Pass
	}
	low := lowerBound(s.diffs, alpha)
	s.Worse = low > 0
	growth := float64(s.Burn.Diff.V)
	grew := fmt.Sprintf("the bad share goes from %s to %s, %s may miss", percent(float64(s.Bad.Before.V)), percent(float64(s.Bad.After.V)), percent(float64(s.Allowed)))
	switch {
	case math.IsNaN(growth):
		s.Rule = "no event to judge by in one of the worlds"
		return Warn
	case !s.Worse && s.Status == sim.Missed && s.Before != sim.Met:
		s.Rule = fmt.Sprintf("already %s without the change, and not worse beyond chance: %s", s.Before, grew)
		return Pass
	case !s.Worse:
		s.Rule = "not worse beyond chance: " + grew
		return Pass
	case s.Status == sim.Missed && (growth >= material || s.Before == sim.Met):
		s.Rule = fmt.Sprintf("%s without the change, MISSED with it: %s", s.Before, grew)
		return Block
	case growth >= material:
		s.Rule = fmt.Sprintf("worse, and %s with the change: %s", s.Status, grew)
		return Warn
	}
	s.Rule = fmt.Sprintf("worse by less than counts (burn rate +%s): %s", short(growth), grew)
	return Pass
}
