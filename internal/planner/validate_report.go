package planner

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"slosim/internal/report"
)

// Grids are the tables for the terminal.
func (r *Report) Grids() []report.Grid {
	out := []report.Grid{r.summary()}
	var breaks []string
	for _, v := range r.Formulas {
		if v.Rule != "" {
			breaks = append(breaks, fmt.Sprintf("%s breaks %s; first at %s. %s.", v.Formula, v.Rule, v.FirstBreak, v.Reason))
		}
	}
	out[0].Notes = append(out[0].Notes, breaks...)
	return append(out, r.troubles()...)
}

// troubles are the tables of what has no answer.
func (r *Report) troubles() []report.Grid {
	var out []report.Grid
	if len(r.Faults) > 0 {
		out = append(out, report.Grid{Caption: "Scenarios that could not be simulated", Head: []string{"scenario and reason"}, Left: 1, Rows: column(r.Faults)})
	}
	if f := r.faults(); len(f.Rows) > 0 {
		out = append(out, f)
	}
	return out
}

func column(texts []string) [][]string {
	var out [][]string
	for _, t := range texts {
		out = append(out, []string{t})
	}
	return out
}

// summary is one line per formula.
func (r *Report) summary() report.Grid {
	g := report.Grid{
		Caption: fmt.Sprintf("%s: %d formulas in %d scenarios", r.File.Title, len(r.Formulas), r.Scenarios),
		Head:    []string{"formula", "claims", "grade", "s/o/w", "median", "worst", "GPUs", "$ a month"}, Left: 3,
		Notes: []string{fmt.Sprintf("Safe (s): inside the 95 %% interval or within %s; fleets: enough, and at most a quarter or one replica too many. o = optimistic, w = wasteful scenarios; "+
			"errors are median and worst; GPUs too few and too many and money are sums over the scenarios. "+
			"“=” marks a formula that no scenario contradicts: inside the simultaneous 95 %% interval everywhere, and that interval is narrow.", report.Percent(r.File.Tolerance))},
	}
	for _, v := range r.Formulas {
		grade := v.Grade
		if v.Exact {
			grade = "= " + grade
		}
		row := []string{v.Formula, v.Claims, grade, fmt.Sprintf("%d/%d/%d", v.Safe, v.Optimistic, v.Wasteful), signed(v.MedianErr), signed(v.WorstErr), "–", "–"}
		switch {
		case v.Safe+v.Optimistic+v.Wasteful == 0: // nothing was answered
			row[4], row[5] = "–", "–"
		case claims[v.Claims].sizing:
			row[6], row[7] = fmt.Sprintf("−%d +%d", v.Missing, v.ExtraGPUs), fmt.Sprintf("%+.0f", v.ExtraUSD)
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// overview is what the page begins with: the tables that have a row.
func (r *Report) overview() []report.Grid {
	out := append([]report.Grid{r.summary(), r.where()}, r.troubles()...)
	return slices.DeleteFunc(out, func(g report.Grid) bool { return len(g.Rows) == 0 })
}

// where says of each formula where it breaks and why.
func (r *Report) where() report.Grid {
	g := report.Grid{Caption: "Where they break", Head: []string{"formula", "breaks", "first at", "why"}, Left: 4}
	for _, v := range r.Formulas {
		if v.Rule != "" {
			g.Rows = append(g.Rows, []string{v.Formula, v.Rule, v.FirstBreak, v.Reason})
		}
	}
	return g
}

func (r *Report) faults() report.Grid {
	g := report.Grid{Caption: "Without an answer", Head: []string{"formula", "scenario", "reason"}, Left: 3}
	seen := map[string]int{}
	for _, row := range r.Rows {
		if row.Fault == "" || row.NotCovered {
			continue
		}
		if seen[row.Formula]++; seen[row.Formula] <= 3 {
			g.Rows = append(g.Rows, []string{row.Formula, row.Scenario, row.Fault})
		}
	}
	for _, name := range sortedNames(seen) {
		if n := seen[name]; n > 3 {
			g.Notes = append(g.Notes, fmt.Sprintf("%s: %d scenarios in all", name, n))
		}
	}
	return g
}

func signed(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return fmt.Sprintf("%+g", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("× %.3g", 1+v)
	}
	return fmt.Sprintf("%+.1f %%", 100*v)
}

// figure writes a value of a claim in its unit.
func figure(v float64, c *claim) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 1):
		return "without end"
	case c.unit == "s":
		return report.Seconds(v)
	case c.unit == "":
		return report.Percent(v)
	}
	return report.Number(v)
}

// heat lays a formula's errors out: rows are everything but the last axis, columns
// its values.
func (r *Report) heat(fm *Formula) []report.Grid {
	var out []report.Grid
	for gi := range r.File.Grids {
		grid := &r.File.Grids[gi]
		if g := r.heatOf(fm, grid); g != nil {
			out = append(out, *g)
		}
	}
	return out
}

func (r *Report) heatOf(fm *Formula, grid *Grid) *report.Grid {
	c := claims[fm.Claims]
	var columns, lines []string
	cells := map[[2]string]*Row{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Formula != fm.Name || row.op.scenario.Grid != grid {
			continue
		}
		line, col := place(row)
		if !slices.Contains(columns, col) {
			columns = append(columns, col)
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		cells[[2]string{line, col}] = row
	}
	if len(lines) == 0 {
		return nil
	}
	g := &report.Grid{Caption: "Grid " + grid.Name + ": error of " + c.title, Head: append([]string{""}, columns...), Left: 1}
	for _, line := range lines {
		texts, shades := []string{line}, []report.Shade{{}}
		for _, col := range columns {
			text, shade := cellOf(cells[[2]string{line, col}], &c)
			texts, shades = append(texts, text), append(shades, shade)
		}
		g.Rows, g.Shades = append(g.Rows, texts), append(g.Shades, shades)
	}
	return g
}

// place returns the row and column of a scenario in its heat map.
func place(r *Row) (line, column string) {
	var parts []string
	lastAxis := len(r.Axes) - 1
	for i, a := range r.Axes[:lastAxis] {
		if r.op.scenario.Grid.varies(i) {
			parts = append(parts, a.Name+" "+a.Text)
		}
	}
	if parts == nil {
		parts = []string{"all"}
	}
	return strings.Join(parts, ", "), r.Axes[lastAxis].Name + " " + r.Axes[lastAxis].Text
}

func cellOf(r *Row, c *claim) (string, report.Shade) {
	switch {
	case r == nil:
		return "", report.Shade{}
	case r.NotCovered:
		return "no fleet", report.Shade{Colour: "--muted", Share: .15}
	case r.Fault != "":
		return "no answer", report.Shade{Colour: "--muted", Share: .3}
	}
	text := fmt.Sprintf("%s: %s, not %s", signed(r.Error), figure(r.Answer, c), figure(r.Simulated.V, c))
	if r.Simulated.Lo < r.Simulated.Hi {
		text += fmt.Sprintf(" [%s, %s]", figure(r.Simulated.Lo, c), figure(r.Simulated.Hi, c))
	}
	if c.sizing {
		text = fmt.Sprintf("%+d GPUs: %s, not %d", r.ExtraGPUs, report.Number(math.Ceil(r.Answer)), int(r.Simulated.V))
		switch r.Held {
		case "yes":
			text += "; SLO held"
		case "no":
			text += "; SLO missed"
		}
	}
	size := math.Abs(math.Log(math.Max(1e-3, 1+r.Error)))
	if math.IsInf(r.Error, 0) || math.IsNaN(size) {
		size = 2
	}
	shade := report.Shade{Share: math.Min(.75, .18+.35*size)}
	switch r.Grade {
	case Optimistic:
		shade.Colour = "--slo"
	case Wasteful:
		shade.Colour = "--p50"
	default:
		shade.Colour, shade.Share = "--good", .2
	}
	return text, shade
}

// Document is the report as a page.
func (r *Report) Document(command string) *report.Document {
	counts := map[string]int{}
	for _, v := range r.Formulas {
		counts[v.Grade]++
	}
	d := &report.Document{
		Title:    r.File.Title,
		Headline: fmt.Sprintf("%d of %d formulas are safe over the grid", counts[string(Safe)], len(r.Formulas)),
		Lead:     r.lead(),
		Setting:  fmt.Sprintf("%d scenarios, %d seeds each, %s counted after %s of warm-up; %s requests simulated", r.Scenarios, r.File.Replications, report.Span(r.File.Duration), report.Span(r.File.Warmup), report.Whole(r.Requests)),
		Command:  command,
		Notes:    r.Faults,
	}
	for _, k := range []string{"safe", "optimistic", "wasteful", "optimistic and wasteful"} {
		d.Facts = append(d.Facts, report.Fact{Label: k, Value: fmt.Sprint(counts[k]), Basis: "formulas"})
	}
	d.Sections = append(d.Sections, report.Section{ID: "summary", Title: "The formulas", Grids: r.overview()})
	for i := range r.File.Formulas {
		fm := &r.File.Formulas[i]
		d.Sections = append(d.Sections, report.Section{ID: fmt.Sprintf("f%d", i), Title: fm.Name, Lead: r.about(fm), Grids: append(r.heat(fm), r.byRegion(i))})
	}
	return d
}

func (r *Report) lead() string {
	return "Each formula answers every scenario that it fits; the simulation says what is right. Green is safe, red promises what does not hold, blue buys or waits for nothing; the deeper, the further off."
}

func (r *Report) about(fm *Formula) string {
	var parts []string
	for _, t := range []string{fm.Title, sourceText(fm), formulaText(fm)} {
		if t != "" {
			parts = append(parts, strings.TrimSuffix(t, ".")+".")
		}
	}
	for _, v := range r.Formulas {
		if v.Formula == fm.Name && v.Rule != "" {
			parts = append(parts, "Breaks "+v.Rule+"; first at "+v.FirstBreak+". "+v.Reason+".")
		}
	}
	return strings.Join(parts, " ")
}

func sourceText(fm *Formula) string {
	if fm.Source == "" {
		return ""
	}
	return "Source: " + fm.Source
}

func formulaText(fm *Formula) string {
	if fm.Command != nil {
		return "Asked: " + strings.Join(fm.Command, " ")
	}
	return fm.Claims + " = " + strings.Join(append(slices.Clone(fm.Steps), fm.Expr), "; ")
}

func (r *Report) byRegion(i int) report.Grid {
	g := report.Grid{Caption: "By region", Head: []string{"axis", "value", "grade", "safe", "optimistic", "wasteful"}, Left: 3}
	for _, x := range r.Formulas[i].Regions {
		g.Rows = append(g.Rows, []string{x.Axis, x.Value, string(x.Grade), fmt.Sprint(x.Safe), fmt.Sprint(x.Optimistic), fmt.Sprint(x.Wasteful)})
	}
	return g
}

// Markdown writes the tables.
func (r *Report) Markdown(w io.Writer) {
	fmt.Fprintf(w, "# %s\n\n", r.File.Title)
	for _, g := range r.overview() {
		g.Markdown(w)
	}
	for i := range r.File.Formulas {
		fm := &r.File.Formulas[i]
		fmt.Fprintf(w, "## %s\n\n%s\n\n", fm.Name, r.about(fm))
		for _, g := range append(r.heat(fm), r.byRegion(i)) {
			g.Markdown(w)
		}
	}
}

// JSON writes every row; figures that JSON has no word for are null.
func (r *Report) JSON(w io.Writer) error {
	type row struct {
		Row
		Axes      map[string]any `json:"axes"`
		Answer    *float64       `json:"answer"`
		Error     *float64       `json:"error"`
		Simulated *float64       `json:"simulated"`
		Lo        *float64       `json:"lo"`
		Hi        *float64       `json:"hi"`
		R         int            `json:"seeds"`
	}
	out := struct {
		Title     string    `json:"title"`
		Scenarios int       `json:"scenarios"`
		Formulas  []Verdict `json:"formulas"`
		Rows      []row     `json:"rows"`
		Faults    []string  `json:"faults"`
	}{r.File.Title, r.Scenarios, slices.Clone(r.Formulas), nil, r.Faults}
	for _, x := range r.Rows {
		o := row{Row: x, Axes: map[string]any{}, R: x.Simulated.R}
		for _, a := range x.Axes {
			o.Axes[a.Name] = a.Value
			if math.IsNaN(a.Value) {
				o.Axes[a.Name] = a.Text
			}
		}
		if x.Fault == "" {
			o.Answer, o.Error = finite(x.Answer), finite(x.Error)
		}
		if x.Simulated.R > 0 {
			o.Simulated, o.Lo, o.Hi = finite(x.Simulated.V), finite(x.Simulated.Lo), finite(x.Simulated.Hi)
		}
		out.Rows = append(out.Rows, o)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(out)
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
