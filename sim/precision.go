package sim

import (
	"fmt"
	"math"

	"slosim/sim/slo"
	"slosim/sim/stats"
)

// Precision is how exactly a run knows what its objectives are about: the worst
// half width of their 95 % intervals, relative to the value.
type Precision struct {
	Wanted  float64 // 0 = nothing was asked for
	Reached float64 // +Inf when a value is not finite or has no interval
	Of      string  // the number that is known least
}

// precision finds the number that is known least: per objective the quantile that
// its target speaks of, in the judged phase, or for objectives without one the
// attained share; without objectives the P99 of each class's TTFT, last phase.
func (p *plan) precision(r *Result) Precision {
	out := Precision{Wanted: p.exp.Precision}
	take := func(name string, e stats.Estimate) {
		half := math.Inf(1)
		if e.R >= 2 && !math.IsInf(e.V, 0) && e.V > 0 {
			half = (e.Hi - e.Lo) / 2 / e.V
		}
		if out.Of == "" || half > out.Reached {
			out.Reached, out.Of = half, name
		}
	}
	for i := range r.SLOs {
		s := &r.SLOs[i]
		if name, e, ok := quantileOf(r, s); ok {
			take(s.Name+": "+metricName(s.Metric)+" "+name, e)
		} else if s.Attained.R > 0 {
			take(s.Name+": attained share", s.Attained)
		}
	}
	if len(r.SLOs) == 0 && len(r.Phases) > 0 {
		for _, c := range r.Phases[len(r.Phases)-1].Classes {
			if c.Cohort == "all" {
				take(c.Class+": TTFT P99", c.TTFT.P99)
			}
		}
	}
	return out
}

// quantileOf returns the quantile that an objective on a latency is about, when it
// judges a whole class.
func quantileOf(r *Result, s *SLO) (name string, e stats.Estimate, ok bool) {
	if len(s.Only)+len(s.Exclude) > 0 || s.Banded() {
		return "", e, false
	}
	for _, ph := range r.Phases {
		for _, c := range ph.Classes {
			if ph.Name != s.Judged || c.Class != s.Class || c.Cohort != "all" {
				continue
			}
			d, known := map[slo.Metric]Distribution{slo.TTFT: c.TTFT, slo.TPOT: c.TPOT, slo.E2E: c.E2E}[s.Metric]
			if !known {
				return "", e, false
			}
			switch s.Target {
			case 0.99:
				return "P99", d.P99, true
			case 0.95:
				return "P95", d.P95, true
			case 0.999:
				return "P99.9", d.P999, true
			case 0.9:
				return "P90", d.P90, true
			case 0.5:
				return "P50", d.P50, true
			}
		}
	}
	return "", e, false
}

// next returns how many replications to have next, after n of at most so many: n
// itself when the precision is reached or cannot be. Widths fall with √n, so it
// aims at what that promises, doubling at most.
func (p Precision) next(n, most int) int {
	if p.Reached <= p.Wanted || p.Of == "" || n >= most {
		return n
	}
	want := 2 * n
	if need := float64(n) * math.Pow(p.Reached/p.Wanted, 2); need < float64(want) {
		want = int(math.Ceil(need))
	}
	return min(most, max(want, n+1))
}

// warning says that a precision was not reached.
func (p Precision) warning(n int) []string {
	if p.Reached <= p.Wanted || p.Of == "" {
		return nil
	}
	reached := "no interval that is finite"
	if !math.IsInf(p.Reached, 0) {
		reached = "±" + percent(p.Reached)
	}
	text := fmt.Sprintf("a precision of %s was wanted; after %d replications, the most that is allowed, %s is known to %s", percent(p.Wanted), n, p.Of, reached)
	if need := math.Ceil(float64(n) * math.Pow(p.Reached/p.Wanted, 2)); need < 1e6 {
		text += fmt.Sprintf("; about %.0f would do", need)
	}
	return []string{text}
}
