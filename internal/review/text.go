package review

import (
	"fmt"
	"io"
	"math"
	"strings"

	"slosim/internal/report"
)

// interval writes "+1.2 [1.1, 1.3]".
func interval(e Estimate, write func(float64) string) string {
	text := signed(float64(e.V), write)
	switch {
	case math.IsNaN(float64(e.V)):
		return "–"
	case math.IsInf(float64(e.V), 1):
		return "without bound"
	case math.IsInf(float64(e.V), -1):
		return "an end of it"
	}
	if e.Lo == e.Hi || math.IsInf(float64(e.V), 0) {
		return text
	}
	return text + " [" + signed(float64(e.Lo), write) + ", " + signed(float64(e.Hi), write) + "]"
}

func arrow(p Paired, write func(float64) string) string {
	return write(float64(p.Before.V)) + " → " + write(float64(p.After.V))
}

func seconds(v float64) string { return secs(Number(v)) }

// Headline is the verdict in a sentence.
func (r *Review) Headline() string {
	if r.Verdict.SLO == "" {
		return sentence(r.Verdict.Rule)
	}
	return r.Verdict.SLO + ": " + r.Verdict.Rule
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// sloGrid compares the objectives.
func (r *Review) sloGrid() report.Grid {
	g := report.Grid{Caption: "SLOs, " + r.Phase, Left: 2, Head: []string{"objective", "status", "bad share", "paired difference", "budget gone", "at target", "burn rate", "allowed"}}
	for _, s := range r.SLOs {
		status := fmt.Sprintf("%s → %s", s.Before, s.Status)
		if s.New {
			status = "new: " + string(s.Status)
		}
		g.Rows = append(g.Rows, []string{s.Name, status, arrow(s.Bad, percent), interval(s.Bad.Diff, points),
			s.goneText(), arrow(s.Quantile, seconds), arrow(s.Burn, burn), percent(float64(s.Allowed))})
	}
	return g
}

// points writes a difference of shares in percentage points.
func points(v float64) string { return strings.TrimSuffix(percent(v), " %") + " pp" }

func burn(v float64) string {
	if v < .005 {
		return short(math.Round(v*1e4) / 1e4)
	}
	return short(v)
}

// goneText says when the budget is gone in either world.
func (s *SLO) goneText() string {
	if s.unprojected && s.GoneBefore == nil && s.Gone == nil {
		return "not in the run"
	}
	return s.when(s.GoneBefore) + " → " + s.when(s.Gone)
}

// when says when the budget is gone; a short run knows only itself.
func (s *SLO) when(w *When) string {
	switch {
	case w != nil:
		return w.Text
	case s.unprojected:
		return "not in the run"
	}
	return "never"
}

// classGrid tells who is hurt.
func (r *Review) classGrid() report.Grid {
	g := report.Grid{Caption: "Who is hurt", Left: 3, Head: []string{"class", "cohort", "TTFT P99", "before → after", "paired difference", "TTFT P50", "TPOT P50", "E2E P99", "not ok", "requests"}}
	for _, c := range r.Classes {
		g.Rows = append(g.Rows, []string{c.Class, c.Cohort, c.Hurt, arrow(c.P99, seconds), interval(c.P99.Diff, seconds), arrow(c.P50, seconds), arrow(c.TPOT, seconds), arrow(c.E2E, seconds), arrow(c.Failed, percent), report.Whole(c.N)})
	}
	if len(r.Classes) > 1 {
		g.Notes = []string{"A cohort is the same requests in both worlds: with the change and without it."}
	}
	return g
}

func (r *Review) bandGrid() report.Grid {
	g := report.Grid{Caption: "By prompt length", Left: 2, Head: []string{"class", "prompt tokens", "TTFT P99", "paired difference", "answered before", "after"}}
	for _, b := range r.Bands {
		to := "up to " + report.Number(float64(b.To))
		if math.IsInf(float64(b.To), 1) {
			to = "over " + report.Number(float64(b.From))
		} else if b.From > 0 {
			to = report.Number(float64(b.From)) + " to " + report.Number(float64(b.To))
		}
		g.Rows = append(g.Rows, []string{b.Class, to, arrow(b.P99, seconds), interval(b.P99.Diff, seconds), report.Whole(b.Before), report.Whole(b.After)})
	}
	return g
}

func (r *Review) costGrid() report.Grid {
	g := report.Grid{Caption: "Throughput and cost", Left: 1, Head: []string{"what", "before → after", "paired difference"}}
	for _, c := range r.Cost {
		write := func(v float64) string {
			switch {
			case math.IsNaN(v):
				return "–"
			case c.Unit == "$":
				return money(v)
			case c.Unit == "%":
				return percent(v)
			case c.Unit == "":
				return report.Number(v)
			case strings.HasPrefix(c.Unit, "/"):
				return report.Number(v) + c.Unit
			}
			return report.Number(v) + " " + c.Unit
		}
		diff := interval(c.Value.Diff, write)
		if c.Unit == "%" {
			diff = interval(c.Value.Diff, points)
		}
		if c.Unit == "$" && c.Value.Before.V == 0 && c.Value.After.V == 0 {
			continue
		}
		g.Rows = append(g.Rows, []string{c.What, arrow(c.Value, write), diff})
	}
	return g
}

// grids are the tables of the terminal and of review.md, most important first.
func (r *Review) grids() []report.Grid {
	out := []report.Grid{r.sloGrid(), r.classGrid(), r.costGrid()}
	if len(r.Causes) > 0 {
		out = append(out, r.causeGrid())
	}
	if len(r.Promises) > 0 {
		out = append(out, r.promiseGrid())
	}
	if len(r.Canary) > 0 {
		out = append(out, r.canaryGrid())
	}
	return append(out, r.gainGrids()...)
}

// Terminal prints the review.
func (r *Review) Terminal(w io.Writer) {
	fmt.Fprintf(w, "%s  %s\n%s\n", r.Verdict.Call, r.Headline(), r.Title)
	if a := r.advice(); a != "" {
		fmt.Fprintf(w, "%s\n", a)
	}
	fmt.Fprintln(w)
	if len(r.Levers) > 0 {
		fmt.Fprintln(w, strings.Join(r.leverLines(), "\n")+"\n")
	}
	for _, g := range r.grids() {
		g.Print(w)
	}
	for _, line := range append(append([]string{}, r.whyLines()...), r.Notes...) {
		fmt.Fprintln(w, "- "+line)
	}
	if len(r.NotTried) > 0 {
		fmt.Fprintln(w, "- Not tried: "+strings.Join(r.NotTried, "; ")+".")
	}
	fmt.Fprintf(w, "\n%d replications, seed %d, %s requests simulated in all.\n%s\n", r.Replications, r.Seed, report.Whole(r.Requests), r.Rules())
}

// whyLines are the first few explanations.
// whyGrids is what the change's world shows, a finding per line.
func (r *Review) whyGrids() []report.Grid {
	if len(r.Why) == 0 {
		return nil
	}
	g := report.Grid{Caption: "What the world with the change shows", Left: 1, Head: []string{"finding"}}
	for _, line := range r.Why {
		g.Rows = append(g.Rows, []string{line})
	}
	return []report.Grid{g}
}

func (r *Review) whyLines() []string { return r.Why[:min(len(r.Why), 4)] }

// Markdown is the review for a pull request.
func (r *Review) Markdown() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "## sim review: %s\n\n**%s**\n\n%s\n\n", r.Verdict.Call, escape(r.Title), escape(r.Headline()))
	if a := r.advice(); a != "" {
		fmt.Fprintf(&b, "**What to do:** %s\n\n", escape(a))
	}
	writeGrid(&b, r.sloGrid(), 8, 20)
	writeGrid(&b, r.classGrid(), 5, 20)
	if len(r.Levers) > 0 {
		writeGrid(&b, r.leverGrid(), 6, 6)
	}
	for _, line := range r.whyLines() {
		fmt.Fprintf(&b, "- %s\n", escape(line))
	}
	fmt.Fprintf(&b, "\n<sub>%d replications on common random numbers, seed %d · `%s` · %s</sub>\n", r.Replications, r.Seed, r.Command, r.Rules())
	return []byte(b.String())
}

// writeGrid writes the first columns and rows of a table.
func writeGrid(b *strings.Builder, g report.Grid, columns, rows int) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(g.Head[:columns], " | "), strings.Repeat("---|", columns))
	for _, row := range g.Rows[:min(rows, len(g.Rows))] {
		cells := make([]string, columns)
		for i := range cells {
			cells[i] = escape(row[i])
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteByte('\n')
}

func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(s)
}
