package report

import (
	"fmt"
	"math"
	"slices"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// A fact is one headline number with what it takes to judge it.
type fact struct {
	Label    string // "TTFT P99, after"
	Value    string // "4.9 s"
	Interval string // "[4.7, 5.1]"; "" = fixed or one replication
	Basis    string // where it comes from: sample size, price
	Change   string // against the phase before; "" = nothing to compare
	Extra    string // what the number means for the reader
	Bad      bool   // it breaks a promise
}

// facts are the three numbers of every report, in order: what decided, what is
// left of the budget, what it costs.
func (s *story) facts() []fact {
	var out []fact
	if f, ok := s.decidingFact(); ok {
		out = append(out, f)
	}
	if s.focus != nil {
		out = append(out, s.budgetFact(s.focus))
	}
	if f, ok := s.costFact(); ok {
		out = append(out, f)
	}
	return out
}

// decidingFact is the quantile or share that the focus objective judges.
func (s *story) decidingFact() (fact, bool) {
	now := s.row(s.last, s.class, s.cohort)
	if now == nil {
		return fact{}, false
	}
	objective := slo.Objective{Metric: slo.TTFT, Target: .99, Threshold: clock.Second}
	if s.focus != nil {
		objective = s.focus.Objective
	}
	h, ok := decides(objective)
	if !ok {
		return s.attainedFact(), true
	}
	e := h.Of(now)
	f := fact{
		Label: h.Name + s.inPhase(), Value: h.scale(e.V).value(e), Interval: h.scale(e.V).interval(e),
		Basis: s.basis(now.N, e),
	}
	if math.IsInf(e.V, 1) {
		f.Value, f.Extra = "> "+span(clock.Duration(s.r.End)), s.unanswered(now, h)
	}
	if s.focus != nil {
		promised := plainSeconds(objective.Threshold.Seconds())
		f.Bad = e.V > objective.Threshold.Seconds()
		if a := s.focus.Adaptive; a != nil {
			promised = fmt.Sprintf("adaptive, %s to %s,", plainSeconds(a.Min.Seconds()), plainSeconds(a.Max.Seconds()))
			f.Bad = s.focus.Status == sim.Missed
		}
		f.Extra = joinSentences("SLO: "+promised+" for "+target(objective.Target), f.Extra)
	}
	f.Extra = joinSentences(f.Extra, s.modelError())
	if then := s.row(s.first, s.class, s.cohort); then != nil {
		before := h.Of(then)
		f.Change = clean(s.first.Name) + ": " + h.scale(before.V).full(before)
		if q := times(e.V, before.V); q != "" {
			f.Change += ", now " + q + " that"
		}
	}
	return f, true
}

// unanswered explains a quantile that lies among requests without an answer.
func (s *story) unanswered(c *sim.ClassPhase, h headline) string {
	o := c.Outcomes
	text := fmt.Sprintf("%s of the requests were never answered", share(float64(o.Rejected+o.TimedOut+o.Late)/float64(max(1, c.N))))
	answered := *c
	answered.TTFT = c.Answered
	if e := h.Of(&answered); e.R > 0 && !math.IsInf(e.V, 1) {
		text += "; " + h.Name + " of the answered: " + seconds(e)
	}
	return text
}

// attainedFact is the share of good events, for an availability objective.
func (s *story) attainedFact() fact {
	o := s.focus
	parts := attainedParts(o.Attained)
	f := fact{
		Label: attainedLabel(o.Metric) + s.inPhase(), Value: parts[0], Interval: parts[1],
		Basis: s.basis(o.Good+o.Bad, o.Attained), Extra: "SLO: " + target(o.Target), Bad: o.Status == sim.Missed,
	}
	if s.first != nil && s.index < len(o.Phases) {
		f.Change = "bad " + s.first.Name + " " + share(o.Phases[0].BadShare.V) + ", " + s.last.Name + " " + share(o.Phases[s.index].BadShare.V)
	}
	return f
}

func attainedLabel(m slo.Metric) string {
	switch m {
	case slo.Queue:
		return "Out of the queue in time"
	case slo.ITL:
		return "Tokens in time"
	case slo.Goodput:
		return "Goodput"
	}
	return "Availability"
}

// inPhase names the headline's phase, and its cohort unless it is everyone.
func (s *story) inPhase() string {
	out := ""
	if s.first != nil {
		out = ", " + clean(s.last.Name)
	}
	if s.cohort != everyone {
		out += ", " + clean(s.cohort)
	}
	return out
}

// basis says how many observations and replications carry a number.
func (s *story) basis(n int64, e stats.Estimate) string {
	out := "n = " + count(n) + " requests, " + plural(e.R, "replication")
	switch {
	case e.R == 1 && e.Batches > 0:
		out += fmt.Sprintf(", interval from %d batches of it", e.Batches)
	case e.R == 1:
		out += ", no interval"
	}
	if e.Thin {
		out += "; fewer than 1,000 per replication"
	}
	return out
}

// budgetFact is what remains of an objective's error budget.
func (s *story) budgetFact(o *sim.SLO) fact {
	b := &o.Budget
	rest, ok := left(o)
	f := fact{Label: "Error budget left after " + span(clock.Duration(s.r.End)), Value: none, Extra: s.exhaustion(b, o.Window)}
	if !ok {
		return f
	}
	parts := attainedParts(rest)
	f.Value, f.Interval, f.Bad = parts[0], parts[1], rest.V <= 0
	if rest.V <= 0 {
		f.Value, f.Interval = "0 %", ""
	}
	if o.Spent > 0 {
		f.Extra = joinSentences(f.Extra, share(o.Spent)+" was gone before the start")
	}
	f.Basis = fmt.Sprintf("%s allowed in %s; %s", badAllowed(b.Total), span(o.Window), plural(rest.R, "replication"))
	if s.first != nil && s.index < len(o.Phases) && o.Target < 1 {
		then, now := o.Phases[0].BadShare.V/(1-o.Target), o.Phases[s.index].BadShare.V/(1-o.Target)
		f.Change = "burn rate " + factor(then) + " " + clean(s.first.Name) + ", " + factor(now) + " " + clean(s.last.Name)
	}
	return f
}

// badAllowed writes the size of a budget: "142,560 bad requests".
func badAllowed(total float64) string {
	if text := number(total, 0); text != "1" {
		return text + " bad requests"
	}
	return "1 bad request"
}

// exhaustion says when a budget is gone, or why that is not known.
func (s *story) exhaustion(b *sim.Budget, window clock.Duration) string {
	m := mark(b, 100)
	switch {
	case m != nil && m.Reached:
		text := "gone on " + s.when(m.At) + s.markInterval(m)
		if !m.InSpan {
			text += ", projected"
		}
		if b.Unstable {
			text += "; the backlog grows, so the true date is no later"
		}
		return text
	case b.Needs != "":
		return "no date: " + b.Needs
	case b.Projected.R > 0:
		return inPercent.full(b.Projected) + " spent at the end of " + span(window) + ", projected"
	}
	return ""
}

// markInterval writes a mark's 95 % interval: " [17:40, 20:35]", with the day
// where it differs from the mark's.
func (s *story) markInterval(m *sim.Mark) string {
	if m.Lo == m.Hi {
		return ""
	}
	side := func(t clock.Time) string {
		text := s.when(t)
		if s.day(t) == s.day(m.At) {
			return text[len(s.day(t)+" at "):]
		}
		return text
	}
	return " [" + side(m.Lo) + ", " + side(m.Hi) + "]"
}

// costFact is the price of all pools for 30 days, or their GPU hours where no
// price is known.
func (s *story) costFact() (fact, bool) {
	if len(s.r.Pools) == 0 {
		return fact{}, false
	}
	var perMonth, usdSpan float64
	gpus, priced := 0, true
	for i, p := range s.r.Pools {
		perMonth, usdSpan, gpus = perMonth+p.USDPerMonth, usdSpan+p.USD, gpus+p.GPUs
		if i < len(s.r.Experiment.Pools) && s.r.Experiment.Pools[i].GPUHourUSD == 0 {
			priced = false
		}
	}
	f := fact{Label: "Cost per month", Value: usd(perMonth), Basis: s.fleet(gpus) + ", 30 days"}
	if !priced {
		f.Label, f.Value = "GPU hours per month", number(float64(gpus)*720, 0)
		f.Basis += "; no price set for every pool"
		return f, true
	}
	var served int64
	for i := range s.r.Phases {
		for _, c := range s.r.Phases[i].Classes {
			if c.Cohort == everyone {
				served += c.N
			}
		}
	}
	if n := float64(served) / float64(max(1, len(s.r.Seeds))); n > 0 {
		f.Extra = usd(usdSpan/n*1000) + " per 1,000 requests of the run"
	}
	if s.first != nil && !slices.ContainsFunc(s.r.Experiment.Pools, func(p sim.Pool) bool { return p.Autoscale != nil }) {
		f.Change = "same GPUs before and after"
	}
	return f, true
}

// fleet describes the hardware: "32 GPUs: 4 replicas of 8 × h100 at $2.95/h".
func (s *story) fleet(gpus int) string {
	out := plural(gpus, "GPU")
	if len(s.r.Experiment.Pools) == 1 {
		p := s.r.Experiment.Pools[0]
		out += fmt.Sprintf(": %s of %d × %s", plural(p.Replicas, "replica"), p.Deployment.GPUs(), clean(p.Deployment.GPU.Name))
		if p.GPUHourUSD > 0 {
			out += " at " + usd(p.GPUHourUSD) + "/GPU-hour"
		}
		return out
	}
	return out + " in " + plural(len(s.r.Experiment.Pools), "pool")
}

// unansweredShare is the share of an objective's bad events that no stage made late:
// rejected, failed, or given up by the client.
func unansweredShare(o *sim.SLO) (share float64) {
	for _, b := range o.Blame {
		switch b.Stage {
		case "rejected", "never answered", "given up":
			share += b.Share
		}
	}
	return share
}

// idleFloor writes what no number of GPUs can mend; "" when nothing is to say.
func idleFloor(o *sim.SLO) string {
	e := o.IdleFloor
	if e.R == 0 || math.IsNaN(e.V) {
		return ""
	}
	if e.V <= 0 {
		const none = "No request of this objective misses it on an idle replica: "
		switch unanswered := unansweredShare(o); {
		case o.Bad == 0:
			return none + "only load could make one miss it."
		case unanswered >= .5:
			return none + "the GPUs are fast enough, most misses are requests that got no answer."
		}
		return none + "all misses come from load."
	}
	if e.V < 1e-6 {
		return "On an idle replica next to no request of this objective misses it: all misses come from load."
	}
	text := share(e.V) + " of the requests miss " + plainSeconds(o.Threshold.Seconds()) + " even on an idle replica"
	if o.IdleLength > 0 {
		text += " (prompts of " + count(o.IdleLength) + " tokens and more)"
	}
	text += ": more GPUs cannot mend that share"
	if allowed := 1 - o.Target; e.V > allowed {
		return text + ", and it alone exceeds the " + target(allowed) + " allowed."
	}
	return text + "."
}

func joinSentences(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
