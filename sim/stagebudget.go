package sim

import (
	"math"

	"slosim/engine"
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// StageBudget is a table of thresholds, one per stage of a request's life, in the
// order of StageNames; 0 = none. The budget of decode is per token after the
// first (TPOT), that of publish is the way of the first token back to the client.
type StageBudget struct {
	Class    string
	Template string // "" = none
	Limits   [stages]clock.Duration
}

// StageReport says how a class keeps to its stage budgets.
type StageReport struct {
	StageBudget
	Phases []StagePhase
}

// StagePhase is a class's stages in one phase. A request violates when any of its
// stages exceeds its budget, or when it ends without all of its tokens.
type StagePhase struct {
	Phase      string
	Finished   int64          // requests with all their tokens, all replications
	Violations int64          // all replications
	Share      stats.Estimate // of requests that violate
	Lost       stats.Estimate // share of the violations that ended without all tokens
	Rows       [stages]StageRow
}

// StageRow is one stage. Caused adds up to 1 over the stages and Lost: a
// violation is caused by the stage that exceeds its budget by the largest factor.
type StageRow struct {
	Stage         string
	Limit         clock.Duration
	P50, P95, P99 stats.Estimate // seconds; decode per token
	Over          stats.Estimate // share of the finished requests that exceed the limit
	Caused        stats.Estimate // share of the violations
}

// stageCell counts a class within a phase.
type stageCell struct {
	limits   [stages]clock.Duration
	finished int64
	values   [stages]*stats.Hist // nanoseconds
	over     [stages]int64
	caused   [stages]int64
	lost     int64
}

func (r *recorder) addStages() {
	if len(r.plan.exp.StageBudgets) == 0 {
		return
	}
	r.stages = make([][]*stageCell, len(r.plan.exp.Traffic))
	for c := range r.plan.exp.Traffic {
		for _, b := range r.plan.exp.StageBudgets {
			if b.Class != r.plan.exp.Traffic[c].Name {
				continue
			}
			for range r.plan.phases {
				cell := &stageCell{limits: b.Limits}
				for k := range cell.values {
					cell.values[k] = stats.NewHist(stats.Fine)
				}
				r.stages[c] = append(r.stages[c], cell)
			}
		}
	}
}

// judge holds a request that has all its tokens against its class's budgets.
func (cell *stageCell) judge(f *flight, e *engine.Event) {
	cell.finished++
	parts := stagesOf(f, e, f.first)
	if f.req.Output >= 2 {
		parts[stageDecode] = e.At.Sub(f.first) / clock.Duration(f.req.Output-1)
	}
	worst, factor := -1, 1.0
	for k, d := range parts {
		if k != stageDecode || f.req.Output >= 2 {
			cell.values[k].AddFine(int64(d))
		}
		limit := cell.limits[k]
		if limit == 0 || d <= limit {
			continue
		}
		cell.over[k]++
		if x := float64(d) / float64(limit); worst < 0 || x > factor {
			worst, factor = k, x
		}
	}
	if worst >= 0 {
		cell.caused[worst]++
	}
}

// unanswered counts a request that ended without all of its tokens.
func (r *recorder) unanswered(f *flight) {
	if cell := f.at.cell.stages; cell != nil {
		cell.lost++
	}
}

// stageRep is a class's stages in one phase of one replication.
type stageRep struct {
	finished, violations int64
	share, lost          float64
	quantiles            [stages][3]float64 // seconds
	over, caused         [stages]float64
}

func (r *recorder) stageReps() [][]stageRep {
	var out [][]stageRep
	for _, b := range r.plan.exp.StageBudgets {
		for c := range r.plan.exp.Traffic {
			if r.plan.exp.Traffic[c].Name != b.Class {
				continue
			}
			var list []stageRep
			for _, cell := range r.stages[c] {
				list = append(list, cell.reduce())
			}
			out = append(out, list)
		}
	}
	return out
}

func (c *stageCell) reduce() stageRep {
	s := stageRep{finished: c.finished, violations: c.lost}
	for _, n := range c.caused {
		s.violations += n
	}
	s.share = float64(s.violations) / float64(c.finished+c.lost)
	s.lost = float64(c.lost) / float64(s.violations)
	for k := range c.values {
		s.quantiles[k] = [3]float64{math.NaN(), math.NaN(), math.NaN()}
		if c.values[k].N() > 0 {
			for i, q := range c.values[k].Quantiles(.5, .95, .99) {
				s.quantiles[k][i] = q / 1e9
			}
		}
		s.over[k] = float64(c.over[k]) / float64(c.finished)
		s.caused[k] = float64(c.caused[k]) / float64(s.violations)
	}
	return s
}

// stageReports combines the replications.
func (p *plan) stageReports(reps []*rep, phases int) []StageReport {
	var out []StageReport
	for i, b := range p.exp.StageBudgets {
		report := StageReport{StageBudget: b}
		for ph := range phases {
			list := make([]stageRep, len(reps))
			for k, rep := range reps {
				list[k] = rep.stages[i][ph]
			}
			report.Phases = append(report.Phases, combineStages(list, p.phases[ph].name, b))
		}
		out = append(out, report)
	}
	return out
}

func combineStages(list []stageRep, name string, b StageBudget) StagePhase {
	out := StagePhase{Phase: name}
	out.Finished = sumOf(list, func(r stageRep) int64 { return r.finished })
	out.Violations = sumOf(list, func(r stageRep) int64 { return r.violations })
	out.Share = stats.Share(over(list, func(r stageRep) float64 { return r.share }), out.Finished)
	out.Lost = stats.Share(over(list, func(r stageRep) float64 { return r.lost }), out.Violations)
	for k := range out.Rows {
		at := func(i int) stats.Estimate {
			e := stats.Of(over(list, func(r stageRep) float64 { return r.quantiles[k][i] }), out.Finished)
			e.Lo = max(e.Lo, 0)
			return e
		}
		row := StageRow{Stage: StageNames[k], Limit: b.Limits[k], P50: at(0), P95: at(1), P99: at(2)}
		row.P99.Thin = out.Finished < thinP99*int64(len(list))
		row.Over = stats.Share(over(list, func(r stageRep) float64 { return r.over[k] }), out.Finished)
		row.Caused = stats.Share(over(list, func(r stageRep) float64 { return r.caused[k] }), out.Violations)
		out.Rows[k] = row
	}
	return out
}
