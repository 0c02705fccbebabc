package report

import (
	"fmt"
	"unicode/utf8"
)

// Sizes of a chart of horizontal bars, in pixels.
const (
	barHeight    = 34
	barGlyph     = 6.4 // width of a character of a label
	mostBarLabel = 22  // characters
)

// ranges draws a bar per row from the first line's value to the second's: a tornado
// chart, when the rows come widest first.
func (c *chart) ranges(p *Plot) *chart {
	c.bars, c.buckets, c.labels = true, nil, 28
	for i, name := range p.Names {
		c.buckets = append(c.buckets, bucket{clean(name), short(clean(p.Labels[i]), mostBarLabel)})
	}
	low, high := p.Lines[0], p.Lines[1]
	width := make([]float64, len(low.Values))
	for i := range width {
		width[i] = high.Values[i] - low.Values[i]
	}
	c.draw(clean(low.Label), low.Unit, low.Values, line{colour: low.Colour, stack: "bar", hidden: true})
	c.add(clean(high.Label), high.Unit, high.Values)
	c.draw("", high.Unit, width, line{colour: high.Colour, stack: "bar"})
	c.columns[2].hidden = true
	c.Height = plotTop + plotBottom + nameHeight + barHeight*max(2, len(width))
	c.min = 0
	c.max = niceMax(largest(high.Values))
	return c
}

// patchBars turns a chart of lines over buckets on its side and its lines into bars.
func (c *chart) patchBars(m map[string]any) {
	left := 20.0
	for _, b := range c.buckets {
		left = max(left, 20+barGlyph*float64(utf8.RuneCountInString(b.Label)))
	}
	x, y := m["xAxis"].([]any), m["yAxis"].([]any)
	m["xAxis"], m["yAxis"] = y, x
	values, names := y[0].(map[string]any), x[0].(map[string]any)
	names["inverse"] = true
	names["name"] = ""
	names["axisTick"] = map[string]any{"show": false}
	values["nameLocation"], values["nameGap"] = "middle", plotBottom
	values["nameTextStyle"] = map[string]any{"color": "--muted", "fontSize": 11}
	m["grid"].([]any)[0].(map[string]any)["left"] = fmt.Sprintf("%.0f", left)
	m["grid"].([]any)[0].(map[string]any)["top"] = "10"
	m["tooltip"].(map[string]any)["axisPointer"] = map[string]any{"type": "shadow", "label": map[string]any{"show": false}}
	for i, raw := range m["series"].([]any) {
		s := raw.(map[string]any)
		encode := s["encode"].(map[string]any)
		encode["x"], encode["y"] = encode["y"], encode["x"]
		s["type"], s["barMaxWidth"] = "bar", 18
		delete(s, "areaStyle")
		delete(s, "stackStrategy")
		style := map[string]any{"color": c.lines[i].colour}
		if c.lines[i].hidden {
			style = map[string]any{"color": "transparent"}
		}
		s["itemStyle"] = style
	}
}
