package sweep

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"slosim/internal/design"
	"slosim/internal/report"
	"slosim/sim/stats"
)

// mostRows bounds the points that a terminal shows.
const mostRows = 24

// short writes a number for a label: three significant digits.
func short(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	if err != nil {
		rounded = v
	}
	return design.Number(rounded)
}

// better orders points by the first metric, the best first; gaps come last.
func (r *Result) better(a, b int) int {
	sign := 1.0
	if r.Plan.Metrics[0].kind.high {
		sign = -1
	}
	x, y := sign*r.Estimate(a, 0).V, sign*r.Estimate(b, 0).V
	if math.IsNaN(x) || math.IsNaN(y) {
		return cmp.Compare(orInf(x), orInf(y))
	}
	return cmp.Compare(x, y)
}

func orInf(v float64) float64 {
	if math.IsNaN(v) {
		return math.Inf(1)
	}
	return v
}

// order is how points are listed: a grid as it is laid out, samples by the first
// metric.
func (r *Result) order() []int {
	out := make([]int, len(r.Plan.Points))
	for i := range out {
		out[i] = i
	}
	if r.Plan.File.Kind != Grid {
		slices.SortStableFunc(out, r.better)
	}
	return out
}

// table lists points with all metrics.
func (r *Result) table(points []int, caption string) report.Grid {
	f := r.Plan.File
	g := report.Grid{Caption: caption, Left: 0}
	for i := range f.Factors {
		g.Head = append(g.Head, f.Factors[i].Name)
		if _, ok := f.Factors[i].Numeric(); !ok && g.Left == i {
			g.Left++
		}
	}
	for m := range r.Plan.Metrics {
		g.Head = append(g.Head, r.Plan.Metrics[m].Title)
	}
	for _, p := range points {
		var row []string
		for i, v := range r.Plan.Points[p].Values {
			row = append(row, f.Factors[i].Label(v))
		}
		for m := range r.Plan.Metrics {
			switch {
			case r.Plan.Points[p].Invalid != "":
				row = append(row, "left out")
			default:
				row = append(row, r.Plan.Metrics[m].interval(r.Estimate(p, m)))
			}
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// effectGrid lists how much each factor moves a metric.
func (r *Result) effectGrid(m int) report.Grid {
	metric := &r.Plan.Metrics[m]
	g := report.Grid{Caption: "What moves " + metric.Title, Head: []string{"setting", "least at", "greatest at", "from", "to", "difference", "variance explained"}, Left: 3}
	gaps := 0
	for _, e := range r.of(m) {
		gaps = e.Gaps
		name := r.Plan.File.Factors[e.Factor].Name
		if e.Low < 0 {
			g.Rows = append(g.Rows, []string{name, "–", "–", "–", "–", "–", "–"})
			continue
		}
		explained := "–"
		if !math.IsNaN(e.Share) {
			explained = report.Percent(e.Share)
		}
		g.Rows = append(g.Rows, []string{name, e.Levels[e.Low].Label, e.Levels[e.High].Label, metric.Show(e.Levels[e.Low].Mean.V), metric.Show(e.Levels[e.High].Mean.V), metric.difference(e.Range), explained})
	}
	if gaps > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("%d of %d points have no finite value on every seed and are left out here.", gaps, len(r.Plan.Points)))
	}
	return g
}

// pair returns the two factors of the heat maps, rows first.
func (r *Result) pair() (rows, columns int, ok bool) {
	f := r.Plan.File
	if len(f.Heat) == 2 {
		index := func(name string) int {
			return slices.IndexFunc(f.Factors, func(x design.Factor) bool { return x.Name == name })
		}
		return index(f.Heat[0]), index(f.Heat[1]), true
	}
	if len(f.Factors) < 2 {
		return 0, 0, false
	}
	top := []int{r.of(0)[0].Factor, r.of(0)[1].Factor}
	slices.Sort(top) // in the order of the file
	return top[0], top[1], true
}

// heat is the heat map of a metric over two factors: means over the points of a cell.
func (r *Result) heat(m int) (report.Grid, bool) {
	a, b, ok := r.pair()
	if !ok {
		return report.Grid{}, false
	}
	metric, f := &r.Plan.Metrics[m], r.Plan.File
	rowOf, rows := r.levels(a)
	columnOf, columns := r.levels(b)
	cells := make([][]stats.Estimate, len(rows))
	low, high := math.Inf(1), math.Inf(-1)
	for i := range cells {
		cells[i] = make([]stats.Estimate, len(columns))
		for j := range columns {
			cells[i][j] = r.cell(m, func(p int) bool { return rowOf[p] == i && columnOf[p] == j })
			if v := cells[i][j].V; !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	g := report.Grid{Caption: fmt.Sprintf("%s: %s (rows) by %s", metric.Title, f.Factors[a].Name, f.Factors[b].Name), Head: append([]string{f.Factors[a].Name + " \\ " + f.Factors[b].Name}, columns...), Left: 1}
	for i, line := range cells {
		texts, shades := []string{rows[i]}, []report.Shade{{}}
		for _, e := range line {
			texts = append(texts, metric.Show(e.V))
			shades = append(shades, metric.shade(e.V, low, high))
		}
		g.Rows, g.Shades = append(g.Rows, texts), append(g.Shades, shades)
	}
	switch others := len(f.Factors) - 2; {
	case others == 1:
		g.Notes = append(g.Notes, "Each cell is the mean over its points, whatever the third setting is there.")
	case others > 1:
		g.Notes = append(g.Notes, fmt.Sprintf("Each cell is the mean over its points, whatever the other %d settings are there.", others))
	}
	return g, true
}

// cell averages a metric over points; one without a value makes no value.
func (r *Result) cell(m int, in func(point int) bool) stats.Estimate {
	var values []float64
	for p := range r.Plan.Points {
		if in(p) && r.Plan.Points[p].Invalid == "" {
			values = append(values, r.Estimate(p, m).V)
		}
	}
	return stats.Of(values, 0)
}

// shade goes from good to bad, in the logarithm when values span more than tenfold.
func (m *Metric) shade(v, low, high float64) report.Shade {
	switch {
	case math.IsNaN(v):
		return report.Shade{Colour: "--muted", Share: .1}
	case math.IsInf(v, 1):
		return report.Shade{Colour: "--slo", Share: .6}
	case !(high > low):
		return report.Shade{}
	}
	at := (v - low) / (high - low)
	if low > 0 && high > 10*low {
		at = math.Log(v/low) / math.Log(high/low)
	}
	if m.kind.high {
		at = 1 - at
	}
	if at <= .5 {
		return report.Shade{Colour: "--good", Share: .5 * (1 - 2*at)}
	}
	return report.Shade{Colour: "--slo", Share: .5 * (2*at - 1)}
}

// Grids are the tables for the terminal.
func (r *Result) Grids() []report.Grid {
	order := r.order()
	caption := fmt.Sprintf("%s: %s", r.Plan.File.Name, r.setting())
	all := r.table(order, caption)
	if n := len(order); n > mostRows {
		head := order[:mostRows-4]
		all = r.table(append(slices.Clone(head), order[n-4:]...), caption)
		gap := make([]string, len(all.Head))
		for i := range gap {
			gap[i] = "…"
		}
		all.Rows = slices.Insert(all.Rows, len(head), gap)
		all.Notes = append(all.Notes, fmt.Sprintf("%d of %d points; all of them: sweep.html, results.parquet.", mostRows, n))
	}
	out := []report.Grid{all}
	if g, ok := r.heat(0); ok {
		out = append(out, g)
	}
	out = append(out, r.effectGrid(0))
	if len(r.Failures) > 0 {
		out = append(out, r.failureGrid())
	}
	return out
}

func (r *Result) failureGrid() report.Grid {
	g := report.Grid{Caption: "Simulations that failed", Head: []string{"point", "seed", "why"}, Left: 3}
	for i, f := range r.Failures {
		if i == mostRows {
			g.Notes = append(g.Notes, fmt.Sprintf("and %d more", len(r.Failures)-i))
			break
		}
		text, _, _ := strings.Cut(f.Text, "\n")
		g.Rows = append(g.Rows, []string{strings.Join(r.Plan.File.settings(r.Plan.Points[f.Point].Values), " "), fmt.Sprint(f.Seed), text})
	}
	return g
}

// setting says in one line what was done.
func (r *Result) setting() string {
	f := r.Plan.File
	kind := map[string]string{Grid: "grid", LatinHypercube: "Latin hypercube", Sobol: "Sobol' design"}[f.Kind]
	text := fmt.Sprintf("%s of %d points on %d seeds", kind, len(r.Plan.Points), len(r.Plan.Seeds))
	if n := r.leftOut(); n > 0 {
		text += fmt.Sprintf(", %d left out", n)
	}
	return text
}

func (r *Result) leftOut() int {
	n := 0
	for i := range r.Plan.Points {
		if r.Plan.Points[i].Invalid != "" {
			n++
		}
	}
	return n
}

// best names the point with the best first metric.
func (r *Result) best() (string, bool) {
	order := make([]int, 0, len(r.Plan.Points))
	for i := range r.Plan.Points {
		if !math.IsNaN(r.Estimate(i, 0).V) {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return "", false
	}
	p := slices.MinFunc(order, r.better)
	var parts []string
	for i, v := range r.Plan.Points[p].Values {
		parts = append(parts, r.Plan.File.Factors[i].Name+" "+r.Plan.File.Factors[i].Label(v))
	}
	m := &r.Plan.Metrics[0]
	return fmt.Sprintf("%s is best at %s: %s", m.Title, strings.Join(parts, ", "), m.interval(r.Estimate(p, 0))), true
}

// headline says what matters most.
func (r *Result) headline() string {
	m := &r.Plan.Metrics[0]
	top := r.of(0)[0]
	if top.Low < 0 || math.IsNaN(top.Share) {
		return "Nothing that varies moves " + m.Title
	}
	f := &r.Plan.File.Factors[top.Factor]
	return fmt.Sprintf("%s moves most with %s: %s at %s, %s at %s", m.Title, f.Name, m.Show(top.Levels[top.Low].Mean.V), top.Levels[top.Low].Label, m.Show(top.Levels[top.High].Mean.V), top.Levels[top.High].Label)
}

// Markdown writes the tables.
func (r *Result) Markdown(w io.Writer) {
	fmt.Fprintf(w, "# Sweep %s\n\n%s.\n\n", r.Plan.File.Name, r.headline())
	if text, ok := r.best(); ok {
		fmt.Fprintf(w, "%s.\n\n", text)
	}
	for _, g := range r.Grids() {
		g.Markdown(w)
	}
}
