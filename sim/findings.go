package sim

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// findings states what the run shows, with evidence, ordered by how much of the
// bad events each explains.
func (p *plan) findings(r *Result) []Finding {
	var out []Finding
	for i := range r.SLOs {
		s := &r.SLOs[i]
		if s.Bad == 0 || s.Status == Met {
			continue
		}
		out = append(out, idleFinding(s)...)
		out = append(out, queueFinding(r, s)...)
		out = append(out, p.interferenceFinding(s)...)
		out = append(out, retryFinding(r, s)...)
	}
	for i := range r.Pools {
		out = append(out, loadFinding(&r.Pools[i])...)
		out = append(out, p.memoryFinding(r, i)...)
		out = append(out, p.coldFinding(r, i)...)
		out = append(out, p.collectiveFinding(r, i)...)
		out = append(out, linkFinding(&r.Pools[i])...)
		out = append(out, p.clockFinding(r, i)...)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Share > out[j].Share })
	return out
}

// idleFinding says which part of an objective no GPU can fix.
func idleFinding(s *SLO) []Finding {
	if s.IdleFloor.R == 0 || len(s.Phases) == 0 {
		return nil
	}
	bad := s.Phases[len(s.Phases)-1].BadShare.V
	if s.IdleFloor.V < 0.01*bad || s.IdleFloor.V == 0 {
		return nil
	}
	f := Finding{
		Title:    fmt.Sprintf("%s: %s of the requests miss %s even on an idle replica", s.Name, percent(s.IdleFloor.V), goalText(s.Objective)),
		Evidence: fmt.Sprintf("prompts of %s tokens and more: more replicas do not help them", thousands(int64(s.IdleLength))),
	}
	if bad > 0 {
		f.Share = min(1, s.IdleFloor.V/bad)
	}
	if s.IdleFloor.V > 1-s.Target {
		f.Evidence += fmt.Sprintf(", and at %s allowed no number of these replicas meets the objective", percent(1-s.Target))
	}
	return []Finding{f}
}

func loadFinding(p *PoolResult) []Finding {
	if p.PeakLoad == 0 {
		return nil
	}
	first, last := p.Load[0], p.Load[len(p.Load)-1]
	f := Finding{Title: fmt.Sprintf("Load of pool %s at the peak: %s of saturation", p.Name, percent(roundTo(p.PeakLoad, 3)))}
	if len(p.Load) > 1 && first.Saturation > 0 {
		f.Title = fmt.Sprintf("Load of pool %s at the peak: %s → %s of saturation", p.Name, percent(roundTo(first.PeakRate/first.Saturation, 3)), percent(roundTo(p.PeakLoad, 3)))
		f.Evidence = fmt.Sprintf("%.3g requests/s at the peak against %.3g/s of this mix that the pool can serve (%.3g/s before)", last.PeakRate, last.Saturation, first.Saturation)
	} else {
		f.Evidence = fmt.Sprintf("%.3g requests/s at the peak against %.3g/s that the pool can serve", last.PeakRate, last.Saturation)
	}
	return []Finding{f}
}

// linkFinding says that transfers of KV fill a pool's network.
func linkFinding(p *PoolResult) []Finding {
	if p.LinkUse.V < 0.7 {
		return nil
	}
	return []Finding{{
		Title:    fmt.Sprintf("The KV link of pool %s is %s in use: transfers wait for each other", p.Name, percent0(min(1, p.LinkUse.V))),
		Evidence: "more bandwidth per replica, min_tokens (short prompts computed where they decode) or an FP8 KV cache would relieve it",
		Share:    min(1, p.LinkUse.V) - 0.5,
	}}
}

// thousands writes a count with separators.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for k := len(text) - 3; k > 0; k -= 3 {
		text = text[:k] + "," + text[k:]
	}
	return text
}

// warnings lists what a reader must know before trusting the numbers.
func (p *plan) warnings(r *Result, reps []*rep) []string {
	var out []string
	if len(r.Seeds) == 1 {
		out = append(out, "one replication: intervals are from batches of the run, equal parts in order of time, and only where these hold enough requests; they hold what was planned over time, too")
	}
	for _, ph := range r.Phases {
		for _, c := range ph.Classes {
			if c.TTFT.P99.Thin && c.N > 0 {
				out = append(out, fmt.Sprintf("P99 of %s (%s) in phase %q rests on fewer than %d requests in a replication", c.Class, c.Cohort, ph.Name, thinP99))
			}
			if c.Outcomes.Young > 0 {
				out = append(out, fmt.Sprintf("%s requests of %s (%s) in phase %q were decided in part only when the run ended (still streaming, or too young): they count where they were decided", thousands(c.Outcomes.Young), c.Class, c.Cohort, ph.Name))
			}
		}
	}
	if len(r.SLOs) > 0 {
		if b := &r.SLOs[0].Budget; b.Needs != "" {
			out = append(out, "no projection of the error budgets: "+b.Needs)
		} else if b.Unstable {
			out = append(out, "the backlog still grew on the last day: the days at which budgets are spent are a lower bound")
		}
	}
	out = append(out, heldWarnings(r.Held, len(r.Seeds))...)
	for k, c := range p.exp.Traffic {
		offered, held := sumOf(reps, func(r *rep) int64 { return r.offered[k] }), sumOf(reps, func(r *rep) int64 { return r.held[k] })
		if c.Client.MaxInFlight > 0 && held > 0 {
			out = append(out, fmt.Sprintf("%s of %s arrivals of %s were still held back by their client at the end (max_in_flight = %d): TTFT and SLOs do not see that wait, load is the offered rate", thousands(held), thousands(offered), c.Name, c.Client.MaxInFlight))
		}
		if c.Trace != nil && len(r.Seeds) > 1 {
			out = append(out, fmt.Sprintf("class %q replays a trace: its replications share arrivals and lengths, so intervals are too narrow", c.Name))
		}
	}
	return append(out, optimisticIntervals(r)...)
}

// noControl says what the control plane does not do in this experiment.
func noControl(e Experiment) []string {
	var none []string
	pool := func(has func(p Pool) bool) bool { return slices.ContainsFunc(e.Pools, has) }
	if len(e.Faults) == 0 && !pool(func(p Pool) bool { return p.Wear.MTBF > 0 }) {
		none = append(none, "failures")
	}
	if len(e.Rollouts) == 0 {
		none = append(none, "deployments")
	}
	if !pool(func(p Pool) bool { return p.Autoscale != nil }) {
		none = append(none, "autoscaling")
	}
	if len(none) < 2 {
		return none
	}
	return []string{strings.Join(none[:len(none)-1], ", ") + " and " + none[len(none)-1]}
}

// notModelled lists, in plain words, what a run leaves out.
func notModelled(e Experiment) []string {
	out := append(noControl(e), "LoRA adapters")
	var patient [2][]string // those who send again what was rejected apart
	for _, c := range e.Traffic {
		if c.Client.Timeout == 0 && c.Client.Patience.Kind == "" {
			k := min(1, c.Client.Retry.Times)
			patient[k] = append(patient[k], c.Name)
		}
	}
	for k, what := range []string{"time-outs and retries of clients (they wait for ever: ", "time-outs of clients (once admitted they wait for ever: "} {
		if len(patient[k]) > 0 {
			out = append([]string{what + strings.Join(patient[k], ", ") + ")"}, out...)
		}
	}
	for _, p := range e.Pools {
		if !p.Engine.PrefixCache {
			out = append([]string{"prefix cache of pool " + p.Name + ": every prompt is computed in full"}, out...)
		}
	}
	if e.Network == 0 {
		out = append([]string{"network between client and gateway (0 s)"}, out...)
	}
	for _, p := range e.Pools {
		if !p.Thermal.Enabled {
			out = append(out, "heat and power of pool "+p.Name+": compute runs at a constant 0.90 of the locked clock")
		}
	}
	return out
}
