package report

import (
	"math"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// stageName is a stage as a budget names it.
func stageName(name string) string {
	switch name {
	case "decode":
		return "decode, per token"
	case "publish":
		return "stream"
	}
	return name
}

// stageLine is one line of a class's table of stage budgets, in words.
type stageLine struct {
	Phase, Stage, Limit string
	P50, P95, P99, Over stats.Estimate
	Caused              stats.Estimate
	Broken              bool // P99 exceeds the budget
	lost                bool // what ended without an answer: no times
}

// stageLines are a class's budgets in its last phase, or in all of them.
func (s *story) stageLines(r *sim.StageReport, all bool) []stageLine {
	var out []stageLine
	for i := range r.Phases {
		p := &r.Phases[i]
		if !all && i < len(r.Phases)-1 {
			continue
		}
		for k := range p.Rows {
			row := &p.Rows[k]
			limit := "none"
			if row.Limit > 0 {
				limit = plainSeconds(row.Limit.Seconds())
			}
			out = append(out, stageLine{clean(p.Phase), stageName(row.Stage), limit, row.P50, row.P95, row.P99, row.Over, row.Caused,
				row.Limit > 0 && row.P99.V > row.Limit.Seconds(), false})
		}
		if p.Lost.V > 0 {
			out = append(out, stageLine{Phase: clean(p.Phase), Stage: "ended without all tokens", Limit: "none", Caused: p.Lost, lost: true})
		}
	}
	return out
}

// over writes the share over a budget; nothing where there is none.
func (l *stageLine) over() string {
	if l.lost || l.Limit == "none" {
		return none
	}
	return inPercent.value(l.Over)
}

func (l *stageLine) time(e stats.Estimate) string {
	if e.R == 0 || math.IsNaN(e.V) {
		return none
	}
	return timeScale(e.V).value(e)
}

// stageTitle names a class's table.
func stageTitle(r *sim.StageReport) string {
	title := "Stage budgets of " + clean(r.Class)
	if r.Template != "" {
		title += ", template " + clean(r.Template)
	}
	return title
}

// violations says how many requests violate in the last phase, and whose fault it is.
func violations(r *sim.StageReport) string {
	if len(r.Phases) == 0 {
		return ""
	}
	p := &r.Phases[len(r.Phases)-1]
	return inPercent.full(p.Share) + " of the requests break a stage budget; a violation is caused by the stage that exceeds its budget by the largest factor."
}

func (t *terminal) stages() {
	for i := range t.r.Stages {
		r := &t.r.Stages[i]
		t.section(stageTitle(r))
		table := textTable{columns: []textColumn{{"stage", true, 0}, {"budget", false, 0}, {"P50", false, 2}, {"P95", false, 1}, {"P99", false, 0}, {"over", false, 1}, {"causes", false, 0}}}
		for _, l := range t.stageLines(r, false) {
			table.add(l.Stage, l.Limit, l.time(l.P50), l.time(l.P95), l.time(l.P99), l.over(), inPercent.value(l.Caused))
		}
		table.write(t.w, t.width, t.paintStatus(nil, -1))
		t.paragraph("  ", dim, violations(r))
	}
}

func (s *story) markdownStages(line func(string, ...any)) {
	for i := range s.r.Stages {
		r := &s.r.Stages[i]
		line("\n%s\n\n| stage | budget | P50 | P95 | P99 | over | causes |\n|---|--:|--:|--:|--:|--:|--:|", markdown(stageTitle(r)))
		for _, l := range s.stageLines(r, false) {
			line("| %s | %s | %s | %s | %s | %s | %s |", markdown(l.Stage), l.Limit, l.time(l.P50), l.time(l.P95), l.time(l.P99), l.over(), inPercent.value(l.Caused))
		}
	}
}

// stageView is a class's stage budgets on the page.
type stageView struct {
	Title, Text string
	Table       *tableView
}

func (s *story) stageViews() []stageView {
	var out []stageView
	for i := range s.r.Stages {
		r := &s.r.Stages[i]
		t := &tableView{Head: []cell{text("phase"), text("stage"), num("budget"), num("P50"), num("P95"), num("P99"), num("over budget"), num("of the violations"), text("")}}
		last := ""
		for _, l := range s.stageLines(r, true) {
			phase := cell{Text: l.Phase, Strong: true}
			if l.Phase == last {
				phase.Text = ""
			}
			last = l.Phase
			p99 := estimated(l.P99)
			p99.Strong = l.Broken
			row := []cell{phase, text(l.Stage), num(l.Limit), estimated(l.P50), estimated(l.P95), p99,
				{Text: l.over(), Num: true}, {Text: inPercent.value(l.Caused), Sub: inPercent.interval(l.Caused), Num: true}, {}}
			if w := math.Round(1000*l.Caused.V) / 10; w > 0 {
				row[8] = cell{Bars: []barPart{{Width: w, Colour: "--slo"}}}
			}
			t.Rows = append(t.Rows, row)
		}
		t.Notes = []string{"Over budget: share of the finished requests. In bold: P99 over budget."}
		out = append(out, stageView{stageTitle(r), violations(r), t})
	}
	return out
}

type summaryStageBudget struct {
	Class    string              `json:"class"`
	Template string              `json:"template,omitempty"`
	Phases   []summaryStagePhase `json:"phases"`
}

type summaryStagePhase struct {
	Phase      string            `json:"phase"`
	Finished   int64             `json:"finished"`
	Violations int64             `json:"violations"`
	Share      *estimate         `json:"violating_share"`
	Lost       *estimate         `json:"caused_by_no_answer"`
	Stages     []summaryStageRow `json:"stages"`
}

type summaryStageRow struct {
	Stage   string    `json:"stage"`
	BudgetS *amount   `json:"budget_s"` // null = none; decode is per token
	P50     *estimate `json:"p50_s"`
	P95     *estimate `json:"p95_s"`
	P99     *estimate `json:"p99_s"`
	Over    *estimate `json:"over_budget"`
	Caused  *estimate `json:"caused"` // share of the violations
}

func (s *story) summaryStageBudgets() []summaryStageBudget {
	var out []summaryStageBudget
	for _, r := range s.r.Stages {
		b := summaryStageBudget{Class: r.Class, Template: r.Template, Phases: []summaryStagePhase{}}
		for _, p := range r.Phases {
			sp := summaryStagePhase{Phase: p.Phase, Finished: p.Finished, Violations: p.Violations, Share: toEstimate(p.Share, 0), Lost: toEstimate(p.Lost, 0)}
			for _, row := range p.Rows {
				out := summaryStageRow{Stage: row.Stage, P50: toEstimate(row.P50, 0), P95: toEstimate(row.P95, 0), P99: toEstimate(row.P99, 0), Over: toEstimate(row.Over, 0), Caused: toEstimate(row.Caused, 0)}
				if row.Limit > 0 {
					out.BudgetS = toAmount(clock.Time(row.Limit))
				}
				sp.Stages = append(sp.Stages, out)
			}
			b.Phases = append(b.Phases, sp)
		}
		out = append(out, b)
	}
	return out
}
