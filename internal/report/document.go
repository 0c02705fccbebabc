package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/term"

	"slosim/sim"
	"slosim/sim/clock"
)

// Document is a page of figures and tables in the report's style about something
// that is no run: a trace, or traffic before it is sent.
type Document struct {
	Status                string // of a judgement: PASS, WARN or BLOCK; "" = none
	Title, Headline, Lead string
	Setting               string // what it covers, in one line
	Command               string // that makes the page again
	Start                 clock.Duration
	Facts                 []Fact
	Notes                 []string
	Sections              []Section
}

// Fact is one of the numbers at the top of a document.
type Fact struct {
	Label, Value, Basis string
	Interval, Change    string // "[4.7, 5.1]"; against what it is compared with
	Bad                 bool   // it breaks a promise
}

// Section is a chapter of a document.
type Section struct {
	ID, Title, Lead string
	Plots           []Plot
	Grids           []Grid
}

// Plot is a figure: columns of numbers over time or over named rows.
type Plot struct {
	ID, Title, Aid, Unit string
	Log                  bool
	Bars                 bool // horizontal bars from the first line's values to the second's, of rows with names
	Elapsed              bool // label the time axis by the time since the start, not by weekday
	T                    []clock.Time
	From, To             clock.Time
	Names, Labels        []string // of the rows, instead of T; labels are short
	Below                string   // what the names are
	Lines                []PlotLine
	Moments              []Moment
}

// Moment is an instant with a name, such as a launch.
type Moment struct {
	T    clock.Time
	Name string
}

// PlotLine is a column of a plot and how it is drawn.
type PlotLine struct {
	Label, Unit string
	Values      []float64
	Colour      string // CSS custom property: "--p99"
	Dashed      bool
	Stack       bool // stacked on the lines before it that are, too
}

// Grid is a table; its first Left columns hold text, the others numbers.
type Grid struct {
	Caption string
	Head    []string
	Rows    [][]string
	Left    int
	Notes   []string
	Shades  [][]Shade // behind the cells of the page; nil = none
}

// Shade is a colour behind a cell.
type Shade struct {
	Colour string  // CSS custom property: "--slo"; "" = none
	Share  float64 // of full strength
}

// documentData is what the template shows.
type documentData struct {
	*pageData
	Sections []sectionView
}

type sectionView struct {
	Section
	Figures []*figure
	Tables  []gridView
}

type gridView struct {
	Caption string
	Table   *tableView
}

// Nav lists the sections.
func (d *documentData) Nav() []pair {
	var out []pair
	for _, s := range d.Sections {
		out = append(out, pair{s.ID, s.Section.Title})
	}
	return out
}

// Licences of what the page carries.
func (d *documentData) Licences() []pair { return licences() }

// HTML renders the document as one file that needs nothing else.
func (doc *Document) HTML() ([]byte, error) {
	d := &documentData{pageData: &pageData{
		Status: sim.Status(doc.Status), Title: clean(doc.Title), Headline: clean(doc.Headline), Reason: clean(doc.Lead), Setting: clean(doc.Setting), Command: clean(doc.Command),
	}}
	for _, n := range doc.Notes {
		d.Warnings = append(d.Warnings, clean(n))
	}
	for _, f := range doc.Facts {
		d.Facts = append(d.Facts, fact{Label: f.Label, Value: f.Value, Basis: f.Basis, Interval: f.Interval, Change: f.Change, Bad: f.Bad})
	}
	draw := &drawer{start: doc.Start}
	for _, s := range doc.Sections {
		v := sectionView{Section: s}
		for i := range s.Plots {
			v.Figures = append(v.Figures, draw.one(s.Plots[i].chart()))
		}
		for i := range s.Grids {
			v.Tables = append(v.Tables, gridView{s.Grids[i].Caption, s.Grids[i].table()})
		}
		d.Sections = append(d.Sections, v)
	}
	if draw.err != nil {
		return nil, draw.err
	}
	if err := d.embed(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&b, "document.html", d); err != nil {
		return nil, fmt.Errorf("page %q: %w", doc.Title, err)
	}
	return b.Bytes(), nil
}

func (p *Plot) chart() *chart {
	c := &chart{ID: p.ID, Title: clean(p.Title), Aid: clean(p.Aid), Unit: p.Unit, Height: 260, log: p.Log, days: p.Elapsed, t: p.T, from: p.From, to: p.To, below: p.Below, labels: 16}
	if p.T != nil {
		c.group = groupRun
	}
	for _, m := range p.Moments {
		c.moments = append(c.moments, moment{m.T, short(m.Name, 20)})
	}
	for i, name := range p.Names {
		c.buckets = append(c.buckets, bucket{name, p.Labels[i]})
	}
	if p.Bars {
		return c.ranges(p)
	}
	for _, l := range p.Lines {
		shown := line{colour: l.Colour, width: 1.8}
		kind := "line"
		if l.Dashed {
			shown.dash, kind = "dashed", "dash"
		}
		if l.Stack {
			shown.stack, shown.fill, kind = "all", .55, "area"
		}
		if len(l.Values) == 1 {
			shown.points = solid
		}
		c.draw(clean(l.Label), l.Unit, l.Values, shown)
		c.Keys = append(c.Keys, key{clean(l.Label), l.Colour, kind})
	}
	return c
}

func (g *Grid) table() *tableView {
	t := &tableView{Notes: g.Notes}
	for i, h := range g.Head {
		t.Head = append(t.Head, cell{Text: h, Num: i >= g.Left})
	}
	for r, row := range g.Rows {
		var cells []cell
		for i, x := range row {
			cells = append(cells, cell{Text: clean(x), Num: i >= g.Left})
			if g.Shades != nil {
				cells[i].shade = g.Shades[r][i]
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// Print writes the table to a terminal or file.
func (g *Grid) Print(w io.Writer) {
	columns := defaultWidth
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			columns = max(leastWidth, min(mostWidth, n))
		}
	}
	t := &textTable{}
	for i, h := range g.Head {
		drop := 0
		if i > g.Left {
			drop = i
		}
		t.columns = append(t.columns, textColumn{head: h, left: i < g.Left, drop: drop})
	}
	for _, row := range g.Rows {
		cells := slices.Clone(row)
		for i := range cells {
			cells[i] = clean(cells[i])
		}
		t.add(cells...)
	}
	if g.Caption != "" {
		fmt.Fprintln(w, g.Caption)
	}
	t.write(w, columns, func(_, _ int, text string) string { return text })
	for _, n := range g.Notes {
		for _, line := range wrap(n, columns-2) {
			fmt.Fprintln(w, "  "+line)
		}
	}
	fmt.Fprintln(w)
}

// Markdown writes the table.
func (g *Grid) Markdown(w io.Writer) {
	if g.Caption != "" {
		fmt.Fprintf(w, "**%s**\n\n", markdown(clean(g.Caption)))
	}
	rule := make([]string, len(g.Head))
	for i := range rule {
		if rule[i] = "---"; i >= g.Left {
			rule[i] = "--:"
		}
	}
	for i, row := range append([][]string{g.Head, rule}, g.Rows...) {
		fmt.Fprint(w, "|")
		for _, x := range row {
			if i != 1 {
				x = markdown(clean(x))
			}
			fmt.Fprintf(w, " %s |", x)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for _, n := range g.Notes {
		fmt.Fprintf(w, "%s\n\n", markdown(clean(n)))
	}
}

// Number writes v with thousands separators, to about four significant digits.
func Number(v float64) string {
	if v == 0 {
		return "0"
	}
	return trimZeros(number(v, max(0, decimals(v, 0))))
}

// Whole writes a count.
func Whole(n int64) string { return count(n) }

// Percent writes 0.366 as "36.6 %".
func Percent(v float64) string { return share(v) }

// Span writes a duration as people say it.
func Span(d clock.Duration) string { return span(d) }

// Seconds writes a time of v seconds in the unit that suits it.
func Seconds(v float64) string { return timeScale(v).plain(v) }
