package report

import (
	"encoding/json"
	"html/template"
	"math"
	"slices"
	"strconv"

	"slosim/sim/clock"
)

// chart is one figure of the page: what it says, its data, and how each column
// is drawn. option turns it into an ECharts option; the same columns make the
// table behind the figure's disclosure.
type chart struct {
	ID     string // unique on the page
	Title  string // the finding, as a sentence
	Aid    string // how to read it, one line
	Unit   string // of the left axis
	Height int    // pixels
	Wide   bool   // takes the whole width of the page
	Zoom   bool   // carries the zoom slider of its group

	group   string       // charts that share hover and zoom
	t       []clock.Time // one entry per row of the columns
	from    clock.Time   // ends of the time axis
	to      clock.Time
	days    bool     // label the axis with days of the run, not weekdays
	buckets []bucket // one per row, instead of t: no time axis
	below   string   // name of the axis of buckets
	columns []chartColumn
	lines   []line
	levels  []level
	lowered bool // the levels' names stand below their lines
	moments []moment
	bands   []timeBand
	ticks   []tick
	log     bool    // left axis
	max     float64 // of the left axis; 0 = from the data
	min     float64 // of the left axis
	every   float64 // between the left axis's labels; 0 = from the range
	second  *secondAxis
	bars    bool    // horizontal bars instead of lines: buckets downwards, values to the right
	clip    float64 // where +Inf is drawn: the left axis's upper end; 0 = nowhere
	clipAs  string  // what +Inf means, in the table and the tooltip
	labels  int     // pixels right of the plot for direct labels

	Keys []key // what the colours mean, where no direct label fits
}

// bucket is a row of a chart without a time axis.
type bucket struct {
	Name  string // in the table and the tooltip: "2K to 4K"
	Label string // on the axis, four characters at most: "≤4K"
}

// chartColumn is one series of numbers, in the unit that the axis shows.
type chartColumn struct {
	Label  string
	Unit   string
	Values []float64
	hidden bool // drawn, but neither in the table nor in the tooltip
}

// line draws a column.
type line struct {
	column int
	colour string // a CSS custom property: "--p99"
	dash   string // "", "dashed" or "dotted"
	width  float32
	fill   float32 // opacity of the area below; 0 = none
	points points
	stack  string
	right  bool   // on the second axis
	label  string // at the line's end
	hidden bool   // no stroke: the lower edge of a band
}

// points say how a line marks its values.
type points int

const (
	noPoints points = iota
	solid
	hollow
)

// level is a horizontal line with a name, such as an SLO.
type level struct {
	value  float64
	name   string
	colour string
}

// moment is a vertical line with a name, such as a launch.
type moment struct {
	t    clock.Time
	name string
}

// timeBand shades a span of time.
type timeBand struct {
	from, to clock.Time
	name     string
	colour   string
	opacity  float32
}

// tick is a small mark at the top of the plot, such as an alert.
type tick struct {
	t      clock.Time
	name   string
	colour string
	symbol string // of ECharts
}

// secondAxis is an axis without labels for an area below the lines.
type secondAxis struct{ max float64 }

// key explains a colour in the line above a chart.
type key struct {
	Name   string
	Colour string // CSS custom property: "--p99"
	Kind   string // "line", "dash", "dot", "area", "tick", "tick-open"
}

// Paint is the key's colour for a style attribute. The names of custom
// properties are constants of this package.
func (k key) Paint() template.CSS { return paint(k.Colour) }

func paint(property string) template.CSS { return template.CSS("var(" + property + ")") }

// add appends a column and returns its index.
func (c *chart) add(label, unit string, values []float64) int {
	c.columns = append(c.columns, chartColumn{Label: label, Unit: unit, Values: values})
	return len(c.columns) - 1
}

// draw appends a column and the line that shows it.
func (c *chart) draw(label, unit string, values []float64, l line) {
	l.column = c.add(label, unit, values)
	c.lines = append(c.lines, l)
}

// band draws the span between two columns, which appear in the table; the
// difference that ECharts stacks on the lower one does not.
func (c *chart) band(label, unit string, lo, hi []float64, colour string) {
	low := c.add(label+", low", unit, lo)
	c.add(label+", high", unit, hi)
	diff := make([]float64, len(lo))
	for i := range lo {
		diff[i] = get(hi, i) - lo[i]
	}
	between := c.add("", unit, diff)
	c.columns[between].hidden = true
	stack := "band" + strconv.Itoa(low)
	c.lines = append(c.lines,
		line{column: low, colour: colour, stack: stack, hidden: true},
		line{column: between, colour: colour, stack: stack, hidden: true, fill: .22})
}

// largest returns the greatest finite value that the left axis has to hold.
func (c *chart) largest() float64 {
	top := 0.0
	stacks := map[string][]float64{}
	for _, l := range c.lines {
		if l.right {
			continue
		}
		values := c.columns[l.column].Values
		if l.stack != "" {
			sum := stacks[l.stack]
			if sum == nil {
				sum = make([]float64, len(values))
				stacks[l.stack] = sum
			}
			for i, v := range values {
				if i < len(sum) && !math.IsNaN(v) && !math.IsInf(v, 0) {
					sum[i] += v
				}
			}
			values = sum
		}
		top = max(top, largest(values))
	}
	for _, l := range c.levels {
		top = max(top, l.value)
	}
	return max(top, c.clip)
}

// clipInfinite draws the infinite values of the columns at the top of the left
// axis; call it when all other columns and levels are set. It reports whether
// there are any.
func (c *chart) clipInfinite(as string) bool {
	if !slices.ContainsFunc(c.columns, func(col chartColumn) bool { return infinite(col.Values) > 0 }) {
		return false
	}
	c.clipAs, c.clip = as, niceMax(1.1*c.largest())
	if c.log {
		c.clip = tickAbove(1.1 * c.largest())
	}
	return true
}

// shown is the value at which v is drawn.
func (c *chart) shown(v float64) float64 {
	if c.clip > 0 && math.IsInf(v, 1) {
		return c.clip
	}
	return v
}

// empty reports whether there is nothing to draw: no value other than 0 in any
// column.
func (c *chart) empty() bool {
	for _, col := range c.columns {
		if slices.ContainsFunc(col.Values, func(v float64) bool { return v != 0 && !math.IsNaN(v) }) {
			return false
		}
	}
	return true
}

// largest returns the greatest finite value, or 0.
func largest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		if v > top && !math.IsInf(v, 0) {
			top = v
		}
	}
	return top
}

// argmax returns the index of the greatest finite value, or −1.
func argmax(values []float64) int {
	at := -1
	for i, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) && (at < 0 || v > values[at]) {
			at = i
		}
	}
	return at
}

// block is the JSON that page.js draws a chart from.
type block struct {
	ID      string         `json:"id"`
	Group   string         `json:"group,omitempty"`
	T0      float64        `json:"t0"`           // milliseconds, first row
	Dt      float64        `json:"dt,omitempty"` // between rows, when they are evenly spaced
	T       []float64      `json:"t,omitempty"`  // otherwise
	Days    bool           `json:"days,omitempty"`
	Names   []string       `json:"names,omitempty"` // of the rows, without a time axis
	Below   string         `json:"below,omitempty"` // what the names are
	Start   float64        `json:"start"`           // t = 0 of the experiment
	N       int            `json:"n"`
	Columns []blockColumn  `json:"columns"`
	Option  map[string]any `json:"option"`
}

type blockColumn struct {
	Label  string       `json:"label"`
	Unit   string       `json:"unit"`
	Hidden bool         `json:"hidden,omitempty"`
	Colour string       `json:"colour,omitempty"`
	Values []chartValue `json:"values"`
	Above  []int        `json:"above,omitempty"` // rows drawn at the top of the axis
	As     string       `json:"as,omitempty"`    // what those rows say
}

// chartValue is a number on the page: four significant digits, counts in full, and
// null for none.
type chartValue float64

// MarshalJSON implements json.Marshaler.
func (v chartValue) MarshalJSON() ([]byte, error) {
	f := float64(v)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendFloat(nil, f, 'f', -1, 64), nil
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'e', 3, 64), 64)
	if err != nil {
		return nil, err
	}
	return strconv.AppendFloat(nil, rounded, 'g', -1, 64), nil
}

// JSON renders the chart's block; html/template puts it into a script element
// of type application/json, where json.Marshal's escapes keep it inert.
func (c *chart) JSON(start clock.Duration) (template.JS, error) {
	option, err := c.option(start)
	if err != nil {
		return "", err
	}
	b := block{ID: c.ID, Group: c.group, Days: c.days, Start: axisMs(0, start), N: max(len(c.t), len(c.buckets)), Below: c.below, Option: option}
	for _, x := range c.buckets {
		b.Names = append(b.Names, x.Name)
	}
	if len(c.t) > 0 {
		b.T0 = axisMs(c.t[0], start)
	}
	if dt, ok := even(c.t); ok {
		b.Dt = dt.Seconds() * 1e3
	} else {
		for _, t := range c.t {
			b.T = append(b.T, axisMs(t, start))
		}
	}
	for i, col := range c.columns {
		out := blockColumn{Label: col.Label, Unit: col.Unit, Hidden: col.hidden, Values: make([]chartValue, len(col.Values))}
		for k, v := range col.Values {
			out.Values[k] = chartValue(c.shown(v))
			if c.clip > 0 && math.IsInf(v, 1) {
				out.Above, out.As = append(out.Above, k), c.clipAs
			}
		}
		for _, l := range c.lines {
			if l.column == i && !l.hidden {
				out.Colour = l.colour
			}
		}
		b.Columns = append(b.Columns, out)
	}
	data, err := json.Marshal(b)
	return template.JS(data), err
}

// even reports whether the instants are evenly spaced, and by how much.
func even(t []clock.Time) (clock.Duration, bool) {
	if len(t) < 2 {
		return 0, true
	}
	dt := t[1].Sub(t[0])
	for i := 2; i < len(t); i++ {
		if t[i].Sub(t[i-1]) != dt {
			return 0, false
		}
	}
	return dt, true
}

// axisEpochMs is a Monday 00:00 UTC, so that a time axis in UTC shows the
// experiment's own weekdays and times of day.
const axisEpochMs = 4 * 86400e3

// axisMs is an instant on the page's time axes.
func axisMs(t clock.Time, start clock.Duration) float64 {
	return axisEpochMs + float64((int64(t)+int64(start))/1e6)
}
