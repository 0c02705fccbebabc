package sim

import (
	"fmt"
	"math"
	"sort"
	"strconv"

	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// slo combines what the replications say of one objective. phases is how many
// phases the result has; cut says that the span ended early.
func (p *plan) slo(reps []*rep, k, phases int, cut bool) SLO {
	o := p.exp.SLOs[k]
	list := make([]sloRep, len(reps))
	for i, rep := range reps {
		list[i] = rep.slos[k]
	}
	s := SLO{Objective: o}
	s.Good = sumOf(list, func(r sloRep) int64 { return r.good })
	s.Bad = sumOf(list, func(r sloRep) int64 { return r.bad })
	for ph := range phases {
		var sp SLOPhase
		sp.Good = sumOf(list, func(r sloRep) int64 { return r.phases[ph].good })
		sp.Bad = sumOf(list, func(r sloRep) int64 { return r.phases[ph].bad })
		sp.BadShare = stats.BadShare(over(list, func(r sloRep) float64 { return r.phases[ph].badShare() }), sp.Good+sp.Bad)
		if len(list) == 1 { // the only run's own batches
			sp.BadShare = stats.BatchRatio(list[0].batches[ph][0], list[0].batches[ph][1])
		}
		s.Phases = append(s.Phases, sp)
	}
	s.judge(p, o, phases)
	last := p.phases[phases-1]
	if share, length, ok := p.idleFloor(o, last.to-1); ok {
		s.IdleFloor = stats.Estimate{V: share, Lo: share, Hi: share, R: 1}
		s.IdleLength = length
	} else if o.Metric == slo.TTFT && !p.severalPools(o.Class) {
		s.IdleFloor = stats.Share(over(reps, func(r *rep) float64 { return r.idleFloor[k] }), s.Good+s.Bad)
		for c := range p.exp.Traffic {
			if p.exp.Traffic[c].Name == o.Class {
				s.IdleLength = p.idleLength(int(p.poolOf[c]), o.Threshold)
			}
		}
	}
	s.blame(p, list)
	s.Budget = p.budgetOf(reps, list, k, cut)
	step := clock.Time(p.budgetStep()) * clock.Time(clock.Minute)
	for i := range list[0].burn {
		s.Burn = append(s.Burn, BurnPoint{clock.Time(i+1) * step, meanOf(over(list, func(r sloRep) float64 { return r.burn[i] }))})
	}
	for _, f := range list[0].alerts {
		s.Alerts = append(s.Alerts, Alert{Name: f.Pair.Name(), Severity: f.Pair.Severity, Fired: f.Fired, Resolved: f.Resolved})
	}
	s.Policy = list[0].events
	if o.Adaptive != nil {
		s.Adjusted = list[0].adjusted
		s.InForce = stats.Of(over(list, func(r sloRep) float64 { return r.limit }), int64(len(list)))
	}
	s.Weeks = weeksOf(list)
	s.Again = sumOf(list, func(r sloRep) int64 { return r.again })
	s.Bands = bandsOf(list)
	return s
}

func (c counts) badShare() float64 { return float64(c.bad) / float64(c.good+c.bad) }

// judge decides the last phase that has events: MET or MISSED when the interval
// of the bad share lies on one side of what the objective allows.
func (s *SLO) judge(p *plan, o slo.Objective, phases int) {
	ph := phases - 1
	for ph > 0 && s.Phases[ph].Good+s.Phases[ph].Bad == 0 {
		ph--
	}
	bad := s.Phases[ph].BadShare
	s.Judged = p.phases[ph].name
	s.Attained = stats.Estimate{V: 1 - bad.V, Lo: 1 - bad.Hi, Hi: 1 - bad.Lo, N: bad.N, R: bad.R, Batches: bad.Batches}
	allowed := 1 - o.Target
	lo, hi := bad.Lo, bad.Hi
	if bad.R == 1 { // its batches hold what was planned over time, too: they do not decide
		lo, hi = bad.V, bad.V
	}
	goal := inForceText(o)
	switch {
	case bad.R == 0:
		s.Status = Undecided
		s.Reason = "no event was counted: the class sent nothing that this objective judges"
	case hi <= allowed:
		s.Status = Met
		s.Reason = fmt.Sprintf("%s of the %s miss %s, %s may", percent(bad.V), eventNoun(o), goal, percent(allowed))
	case lo > allowed:
		s.Status = Missed
		s.Reason = fmt.Sprintf("%s of the %s miss %s, only %s may", percent(bad.V), eventNoun(o), goal, percent(allowed))
	default:
		s.Status = Undecided
		s.Reason = fmt.Sprintf("%s [%s, %s] of the %s miss %s, %s may: the interval holds both answers", percent(bad.V), percent(bad.Lo), percent(bad.Hi), eventNoun(o), goal, percent(allowed))
		if s.MoreReps = repsToDecide(bad, allowed); s.MoreReps > 0 {
			s.Reason += fmt.Sprintf("; about %d replications would decide", s.MoreReps)
		}
	}
	switch {
	case bad.R == 1 && bad.Batches > 0:
		s.Reason += fmt.Sprintf(" (one replication: decided by its value; from %d batches of it the interval is [%s, %s])", bad.Batches, percent(bad.Lo), percent(bad.Hi))
	case bad.R == 1:
		s.Reason += " (one replication: no interval)"
	}
}

// repsToDecide returns how many replications would bring the interval to one
// side of a limit if mean and spread stayed; 0 when more than 10,000.
func repsToDecide(e stats.Estimate, limit float64) int {
	if e.R < 2 || e.V == limit {
		return 0
	}
	sd := (e.Hi - e.V) / stats.T975(e.R-1) * math.Sqrt(float64(e.R))
	for r := e.R + 1; r <= 10_000; r++ {
		if stats.T975(r-1)*sd/math.Sqrt(float64(r)) <= math.Abs(e.V-limit) {
			return r
		}
	}
	return 0
}

func goalText(o slo.Objective) string {
	switch o.Metric {
	case slo.Availability:
		return "an answer"
	case slo.Goodput:
		return "one of " + o.All.Text(func(d clock.Duration) string { return seconds(d.Seconds()) })
	}
	return "the " + metricName(o.Metric) + " of " + seconds(o.Threshold.Seconds())
}

// inForceText is goalText where the threshold moves.
func inForceText(o slo.Objective) string {
	if o.Adaptive == nil {
		return goalText(o)
	}
	return fmt.Sprintf("the %s in force (%s to %s)", metricName(o.Metric), seconds(o.Adaptive.Min.Seconds()), seconds(o.Adaptive.Max.Seconds()))
}

// eventNoun says what an objective counts.
func eventNoun(o slo.Objective) string {
	if o.Metric == slo.ITL {
		return "tokens"
	}
	return "requests"
}

func metricName(m slo.Metric) string {
	switch m {
	case slo.TTFT:
		return "TTFT"
	case slo.TPOT:
		return "TPOT"
	case slo.E2E:
		return "E2E"
	case slo.ITL:
		return "ITL"
	case slo.Queue:
		return "time in the queue"
	}
	return string(m)
}

// percent writes a share with three significant digits: "9.8 %", "0.05 %".
func percent(v float64) string {
	if math.IsNaN(v) {
		return "no share"
	}
	return strconv.FormatFloat(roundTo(100*v, 3), 'f', -1, 64) + " %"
}

// roundTo keeps a number of significant digits.
func roundTo(v float64, digits int) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// seconds writes a time in seconds with three significant digits.
func seconds(v float64) string {
	if math.IsInf(v, 1) {
		return "beyond the end of the run"
	}
	if v < 1 {
		return strconv.FormatFloat(roundTo(1000*v, 3), 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(roundTo(v, 3), 'f', -1, 64) + " s"
}

// blame sorts the bad events by cohort and dominant stage.
func (s *SLO) blame(p *plan, list []sloRep) {
	total := int64(0)
	for g := range p.groups {
		for stage := range blameStages {
			n := sumOf(list, func(r sloRep) int64 { return r.blame[g][stage] })
			if n == 0 {
				continue
			}
			b := Blame{Cohort: p.groups[g].name, Count: n, Stage: [...]string{rejectedStage: "rejected", unansweredStage: "never answered", timedOutStage: "given up", failedStage: "failed"}[max(stage, rejectedStage)]}
			if stage < stages {
				b.Stage = StageNames[stage]
			}
			s.Blame = append(s.Blame, b)
			total += n
		}
	}
	for i := range s.Blame {
		s.Blame[i].Share = float64(s.Blame[i].Count) / float64(total)
	}
	sort.SliceStable(s.Blame, func(i, j int) bool { return s.Blame[i].Count > s.Blame[j].Count })
	s.BlameText = s.blameText(p)
}

// blameText says in a sentence whose requests miss and where their time goes.
func (s *SLO) blameText(p *plan) string {
	if len(s.Blame) == 0 {
		return ""
	}
	if !hasCohorts(p, s.Class) {
		return s.stageText()
	}
	text := ""
	for i, c := range s.cohortShares() {
		if c.share < 0.005 || i > 3 {
			break
		}
		if text != "" {
			text += "; "
		}
		who := "requests of " + c.name
		if c.name == "existing" {
			who = "existing requests"
		}
		text += fmt.Sprintf("%s of the misses are %s", percent0(c.share), who)
		if c.stageShare > 0.995 {
			text += " that " + stagePhrases[c.stage]
		} else {
			text += fmt.Sprintf(", %s of which %s", percent0(c.stageShare), stagePhrases[c.stage])
		}
	}
	return text
}

// stagePhrases say what held a bad event up.
var stagePhrases = map[string]string{
	"network":        "spent most of their time in network and front end",
	"queue":          "waited in the queue longer than anything else",
	"prefill":        "spent most of their time in their own prefill",
	"decode":         "spent most of their time decoding",
	"publish":        "spent most of their time in publication",
	"rejected":       "were rejected",
	"never answered": "were still waiting when the run ended",
	"given up":       "were given up by their clients",
	"failed":         "were lost with a replica that broke down",
}

// stageText is blameText for a class without cohorts.
func (s *SLO) stageText() string {
	text := ""
	for i, b := range s.Blame {
		if b.Share < 0.005 || i > 3 {
			break
		}
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%s of the misses %s", percent0(b.Share), stagePhrases[b.Stage])
	}
	return text
}

func hasCohorts(p *plan, class string) bool {
	for g := range p.groups {
		if p.groups[g].cohort > 0 && p.exp.Traffic[p.groups[g].class].Name == class {
			return true
		}
	}
	return false
}

func percent0(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// cohortShare is one cohort's part of the bad events and its main stage.
type cohortShare struct {
	name       string
	share      float64
	stage      string
	stageShare float64 // of the cohort's own bad events
}

func (s *SLO) cohortShares() []cohortShare {
	var out []cohortShare
	at := map[string]int{}
	for _, b := range s.Blame { // largest first: the first stage of a cohort is its main one
		k, ok := at[b.Cohort]
		if !ok {
			k = len(out)
			at[b.Cohort] = k
			out = append(out, cohortShare{name: b.Cohort, stage: b.Stage, stageShare: b.Share})
		}
		out[k].share += b.Share
	}
	for i := range out {
		out[i].stageShare /= out[i].share
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].share > out[j].share })
	return out
}

// budgetOf combines the outlooks of an objective.
func (p *plan) budgetOf(reps []*rep, list []sloRep, k int, cut bool) Budget {
	o := p.exp.SLOs[k]
	measured := sumOf(list, func(r sloRep) int64 { return r.good + r.bad }) / int64(len(list))
	b := Budget{WindowN: p.windowEvents(k, measured), Needs: p.needs()}
	b.Total = (1 - o.Target) * b.WindowN
	if cut {
		b.Needs = "the run was interrupted"
	}
	n := sumOf(list, func(r sloRep) int64 { return r.bad })
	b.Spent = stats.Of(over(list, func(r sloRep) float64 { return r.outlook.Spent }), n)
	if b.Needs == "" || p.exp.Duration >= o.Window {
		b.Needs = ""
		b.Projected = stats.Of(over(list, func(r sloRep) float64 { return r.outlook.Projected }), n)
	}
	for _, r := range reps {
		b.Unstable = b.Unstable || b.Projected.R > 0 && r.grew
	}
	b.Marks = marksOf(list, p.exp.Duration)
	for _, r := range list {
		b.WeekAlarm = b.WeekAlarm || r.outlook.WeekAlarm
	}
	b.BadMinutes = stats.Of(over(list, func(r sloRep) float64 { return float64(r.badMinutes) }), n)
	b.AllowedMinutes = (1 - o.Target) * o.Window.Seconds() / 60
	for _, e := range []*stats.Estimate{&b.Spent, &b.Projected, &b.BadMinutes} {
		e.Lo = max(e.Lo, 0)
	}
	b.Curve = curveOf(list, p.exp.Duration)
	return b
}

func marksOf(list []sloRep, span clock.Duration) []Mark {
	var out []Mark
	for i, pct := range slo.MarkPercents {
		var at []float64
		for _, r := range list {
			if t := r.outlook.Marks[i]; t != clock.Never {
				at = append(at, t.Seconds())
			}
		}
		m := Mark{Percent: pct, Reached: 2*len(at) > len(list)}
		if m.Reached {
			e := stats.Of(at, int64(len(at)))
			m.At = clock.Time(clock.FromSeconds(e.V))
			m.Lo = clock.Time(clock.FromSeconds(max(e.Lo, 0)))
			m.Hi = clock.Time(clock.FromSeconds(e.Hi))
			m.InSpan = m.At <= clock.Time(span)
		}
		out = append(out, m)
	}
	return out
}

// curveOf averages the spent share over time, until a day after all of it is gone.
func curveOf(list []sloRep, span clock.Duration) []BudgetPoint {
	gone := list[0].outlook.Before
	out := []BudgetPoint{{Spent: gone, Lo: gone, Hi: gone}}
	after := 0
	for i, point := range list[0].outlook.Points {
		e := stats.Of(over(list, func(r sloRep) float64 { return r.outlook.Points[i].Used }), 0)
		out = append(out, BudgetPoint{T: point.T, Spent: e.V, Lo: max(e.Lo, 0), Hi: e.Hi, Projected: point.T > clock.Time(span)})
		if e.V >= 1 && point.T > clock.Time(span) {
			if after++; after > 24 {
				break
			}
		}
	}
	return out
}

// verdictOf is the answer of the whole run: the worst of its objectives.
func verdictOf(r *Result) Verdict {
	if len(r.SLOs) == 0 {
		return Verdict{Status: Undecided, Reason: "the experiment promises nothing: it has no [[slo]]"}
	}
	worst := 0
	rank := map[Status]int{Met: 0, Undecided: 1, Missed: 2}
	for i := range r.SLOs {
		if rank[r.SLOs[i].Status] > rank[r.SLOs[worst].Status] {
			worst = i
		}
	}
	s := &r.SLOs[worst]
	v := Verdict{Status: s.Status, SLO: s.Name, Reason: s.Name + ": " + quantileText(r, s) + s.Reason}
	if mark := s.Budget.Marks; s.Status == Missed && len(mark) == 3 && mark[2].Reached {
		v.Reason += fmt.Sprintf("; the %s budget is gone on %s", windowText(s.Window), mark[2].At.DayHour(r.Experiment.Start))
	}
	return v
}

// windowText writes a window as "30 d".
func windowText(d clock.Duration) string {
	if d%clock.Day == 0 {
		return fmt.Sprintf("%d d", d/clock.Day)
	}
	return d.String()
}

// quantileText states the quantile that an objective is about, when it judges a
// whole class: "P99 is 4.43 s [4.39, 4.47]; ".
func quantileText(r *Result, s *SLO) string {
	if len(s.Only)+len(s.Exclude) > 0 || s.Banded() {
		return ""
	}
	for _, ph := range r.Phases {
		for _, c := range ph.Classes {
			if ph.Name != s.Judged || c.Class != s.Class || c.Cohort != "all" {
				continue
			}
			d, ok := map[slo.Metric]Distribution{slo.TTFT: c.TTFT, slo.TPOT: c.TPOT, slo.E2E: c.E2E}[s.Metric]
			e, name := d.P99, "P99"
			switch s.Target {
			case 0.99:
			case 0.95:
				e, name = d.P95, "P95"
			case 0.999:
				e, name = d.P999, "P99.9"
			case 0.9:
				e, name = d.P90, "P90"
			case 0.5:
				e, name = d.P50, "P50"
			default:
				ok = false
			}
			if !ok || e.R == 0 {
				return ""
			}
			return fmt.Sprintf("%s %s is %s; ", metricName(s.Metric), name, seconds(e.V))
		}
	}
	return ""
}
