package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
	"github.com/go-echarts/go-echarts/v2/types"

	"slosim/sim/clock"
)

// Tokens in an option that page.js replaces: colours name CSS custom properties
// ("--p99"), formatters name its functions.
const (
	formatTime   = "@time"
	formatDay    = "@day"
	formatNumber = "@number"
	formatTip    = "@tip"
)

// plotTop and plotBottom are the pixels around a plot: names of moments above,
// time labels below; zoomHeight is the slider's.
const (
	plotTop    = 34
	plotBottom = 26
	plotLeft   = 50
	labelGap   = 14 // pixels between the centres of direct labels
	zoomHeight = 44
	nameHeight = 18 // of the name of an axis of buckets
)

// option builds the chart's ECharts option. What go-echarts cannot say, or says
// wrongly, is patched into the map afterwards.
func (c *chart) option(start clock.Duration) (map[string]any, error) {
	l := charts.NewLine()
	l.SetGlobalOptions(
		charts.WithAnimation(false),
		charts.WithGridOpts(opts.Grid{Left: strconv.Itoa(plotLeft), Right: strconv.Itoa(max(16, c.labels)), Top: strconv.Itoa(plotTop), Bottom: strconv.Itoa(c.bottom())}),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "axis", Formatter: formatTip}),
		charts.WithXAxisOpts(c.xAxis(start)),
		charts.WithYAxisOpts(c.leftAxis()),
	)
	if c.second != nil {
		l.ExtendYAxis(c.rightAxis())
	}
	if c.group == groupRun {
		l.SetGlobalOptions(charts.WithDataZoomOpts(opts.DataZoom{Type: "slider", FilterMode: "none"}))
	}
	for i := range c.lines {
		l.MultiSeries = append(l.MultiSeries, c.series(i))
	}
	if len(l.MultiSeries) > 0 {
		c.annotate(&l.MultiSeries[c.annotated()], start)
	}
	l.Validate()
	return c.patch(l.JSON())
}

// bottom is the height below a plot, in pixels.
func (c *chart) bottom() int {
	height := plotBottom
	if c.Zoom {
		height += zoomHeight
	}
	if c.below != "" {
		height += nameHeight
	}
	return height
}

// xAxis is a time axis, or an axis of buckets.
func (c *chart) xAxis(start clock.Duration) opts.XAxis {
	axis := opts.XAxis{
		AxisLabel: &opts.AxisLabel{HideOverlap: opts.Bool(true), Color: "--muted", FontSize: 11},
		AxisLine:  &opts.AxisLine{LineStyle: &opts.LineStyle{Color: "--axis"}},
		AxisTick:  &opts.AxisTick{LineStyle: &opts.LineStyle{Color: "--axis"}},
		SplitLine: &opts.SplitLine{Show: opts.Bool(false)},
	}
	if c.buckets != nil {
		axis.Type, axis.Name, axis.NameLocation, axis.NameGap = "category", c.below, "middle", plotBottom
		return axis
	}
	axis.Type, axis.Min, axis.Max = "time", axisMs(c.from, start), axisMs(c.to, start)
	axis.AxisLabel.Formatter = formatTime
	if c.days {
		axis.AxisLabel.Formatter = formatDay
	}
	return axis
}

func (c *chart) leftAxis() opts.YAxis {
	axis := opts.YAxis{
		Type: "value", Name: c.Unit, Min: c.min,
		AxisLabel: &opts.AxisLabel{Formatter: formatNumber, Color: "--muted", FontSize: 11},
		AxisLine:  &opts.AxisLine{Show: opts.Bool(false)},
		SplitLine: &opts.SplitLine{Show: opts.Bool(true), LineStyle: &opts.LineStyle{Color: "--grid"}},
	}
	axis.Max = c.top()
	if c.log {
		axis.Type = "log"
		axis.Min, axis.Max = c.logRange()
	}
	return axis
}

// top is the upper end of a linear left axis.
func (c *chart) top() float64 {
	if c.max != 0 {
		return c.max
	}
	return niceMax(c.largest())
}

func (c *chart) rightAxis() opts.YAxis {
	return opts.YAxis{
		Type: "value", Position: "right", Min: 0, Max: c.second.max,
		AxisLabel: &opts.AxisLabel{Show: opts.Bool(false)},
		AxisLine:  &opts.AxisLine{Show: opts.Bool(false)},
		SplitLine: &opts.SplitLine{Show: opts.Bool(false)},
	}
}

func (c *chart) series(i int) charts.SingleSeries {
	l := c.lines[i]
	width := l.width
	if width == 0 {
		width = 1.6
	}
	opacity := float32(1)
	if l.hidden {
		width, opacity = 0, 0
	}
	out := charts.SingleSeries{
		Name: c.columns[l.column].Label, Type: types.ChartLine, Id: fmt.Sprintf("s%d", i), Stack: l.stack,
		ShowSymbol: opts.Bool(false), Symbol: "none",
		Encode:    &opts.Encode{X: "t", Y: "c" + strconv.Itoa(l.column)},
		LineStyle: &opts.LineStyle{Color: l.colour, Width: width, Type: l.dash, Opacity: opts.Float(opacity)},
		ItemStyle: &opts.ItemStyle{Color: l.colour},
	}
	if l.right {
		out.YAxisIndex = 1
	}
	if l.points != noPoints {
		out.ShowSymbol, out.Symbol, out.SymbolSize = opts.Bool(true), "circle", 6
	}
	if l.points == hollow {
		out.ItemStyle = &opts.ItemStyle{Color: "--bg", BorderColor: l.colour, BorderWidth: 1.5}
	}
	if l.fill > 0 {
		out.AreaStyle = &opts.AreaStyle{Color: l.colour, Opacity: opts.Float(l.fill)}
	}
	return out
}

// annotated is the series that carries the chart's marks: the last one on the
// left axis, so that they lie above the others.
func (c *chart) annotated() int {
	for i := len(c.lines) - 1; i >= 0; i-- {
		if !c.lines[i].right && c.lines[i].stack == "" {
			return i
		}
	}
	return len(c.lines) - 1
}

// annotate adds levels, moments, bands and ticks to a series. The items are maps:
// go-echarts has no item with a style and a label of its own, and its MarkArea
// items write "YAxis".
func (c *chart) annotate(s *charts.SingleSeries, start clock.Duration) {
	var lines, areas, points []any
	position := "insideStartTop"
	if c.lowered {
		position = "insideStartBottom"
	}
	for _, v := range c.levels {
		lines = append(lines, map[string]any{
			"yAxis": v.value, "name": v.name,
			"lineStyle": map[string]any{"color": v.colour, "type": "dashed", "width": 1.5},
			"label":     map[string]any{"formatter": "{b}", "position": position, "color": v.colour, "fontWeight": "bold", "fontSize": 12},
		})
	}
	for _, m := range c.moments {
		lines = append(lines, map[string]any{
			"xAxis": axisMs(m.t, start), "name": m.name,
			"lineStyle": map[string]any{"color": "--ink", "type": "solid", "width": 1},
			"label":     map[string]any{"formatter": "{b}", "position": "end", "color": "--ink", "fontSize": 12},
		})
	}
	for _, b := range c.bands {
		areas = append(areas, []any{
			map[string]any{"xAxis": axisMs(b.from, start), "name": b.name, "itemStyle": map[string]any{"color": b.colour, "opacity": b.opacity},
				"label": map[string]any{"position": "insideTop", "color": "--muted", "fontSize": 11}},
			map[string]any{"xAxis": axisMs(b.to, start)},
		})
	}
	for _, k := range c.ticks {
		points = append(points, map[string]any{
			"xAxis": axisMs(k.t, start), "yAxis": 0, "y": plotTop + 8, "name": k.name, "symbol": k.symbol, "symbolSize": 9,
			"symbolRotate": 180, "itemStyle": map[string]any{"color": k.colour, "borderColor": "--bg", "borderWidth": 1},
		})
	}
	if lines != nil {
		s.MarkLines = &opts.MarkLines{Data: lines, MarkLineStyle: opts.MarkLineStyle{Symbol: []string{"none", "none"}}}
	}
	if areas != nil {
		s.MarkAreas = &opts.MarkAreas{Data: areas}
	}
	if points != nil {
		s.MarkPoints = &opts.MarkPoints{Data: points, MarkPointStyle: opts.MarkPointStyle{Label: &opts.Label{Show: opts.Bool(false)}}}
	}
}

// patch completes what go-echarts leaves out: end labels, ticks of a log axis,
// names of buckets, UTC, silent marks, and a zoom slider in the page's own look.
func (c *chart) patch(option map[string]any) (map[string]any, error) {
	data, err := json.Marshal(option)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	for _, unused := range []string{"title", "legend", "toolbox", "color"} {
		delete(m, unused)
	}
	m["useUTC"] = true
	m["grid"].([]any)[0].(map[string]any)["outerBoundsMode"] = "none"
	m["textStyle"] = map[string]any{"fontFamily": "inherit"}
	tooltip := m["tooltip"].(map[string]any)
	tooltip["confine"] = true
	tooltip["transitionDuration"] = 0
	tooltip["axisPointer"] = map[string]any{"type": "line", "lineStyle": map[string]any{"color": "--axis"}, "label": map[string]any{"show": false}}
	offsets := c.labelOffsets()
	for i, raw := range m["series"].([]any) {
		c.patchSeries(raw.(map[string]any), c.lines[i], offsets[i])
	}
	axes := m["yAxis"].([]any)
	left := axes[0].(map[string]any)
	left["nameGap"] = 12
	left["nameTextStyle"] = map[string]any{"align": "left", "padding": []int{0, 0, 0, 8 - plotLeft}, "color": "--muted", "fontSize": 11}
	if c.every > 0 {
		left["interval"] = c.every
	}
	if c.log {
		ticks := c.logTicks()
		left["axisLabel"].(map[string]any)["customValues"] = ticks
		left["axisTick"] = map[string]any{"customValues": ticks, "show": false}
	}
	c.patchBuckets(m["xAxis"].([]any)[0].(map[string]any))
	if c.bars {
		c.patchBars(m)
	}
	if c.second != nil {
		axes[1].(map[string]any)["axisTick"] = map[string]any{"show": false}
	}
	c.patchZoom(m)
	return m, nil
}

// patchBuckets names the buckets of an axis that is not time.
func (c *chart) patchBuckets(axis map[string]any) {
	if c.buckets == nil {
		return
	}
	var labels []string
	for _, b := range c.buckets {
		labels = append(labels, b.Label)
	}
	axis["data"] = labels
	axis["nameTextStyle"] = map[string]any{"color": "--muted", "fontSize": 11}
}

func (c *chart) patchSeries(s map[string]any, l line, offset float64) {
	s["emphasis"] = map[string]any{"disabled": true}
	if l.stack != "" {
		s["stackStrategy"] = "all" // the default stacks negative values apart
	}
	if l.label != "" {
		s["endLabel"] = map[string]any{"show": true, "formatter": l.label, "color": l.colour, "fontSize": 12, "fontWeight": "bold",
			"distance": 6, "offset": []float64{0, offset}}
	}
	for _, name := range []string{"markLine", "markArea", "markPoint"} {
		if mark, ok := s[name].(map[string]any); ok {
			mark["silent"] = true
			mark["animation"] = false
		}
	}
}

// labelOffsets moves direct labels apart, in pixels down from their lines' ends;
// ECharts does not move labels at line ends by itself.
func (c *chart) labelOffsets() map[int]float64 {
	type end struct {
		line int
		y    float64
	}
	var ends []end
	for i, l := range c.lines {
		if l.label != "" {
			ends = append(ends, end{i, c.pixel(c.lastShown(c.columns[l.column].Values))})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	out := map[int]float64{}
	for k := 1; k < len(ends); k++ {
		above := ends[k-1].y + out[ends[k-1].line]
		if room := ends[k].y - above; room < labelGap {
			out[ends[k].line] = labelGap - room
		}
	}
	return out
}

// pixel is the height of a value of the left axis, in pixels from the plot's top.
func (c *chart) pixel(v float64) float64 {
	height := float64(c.Height - plotTop - c.bottom())
	lo, hi := c.min, c.top()
	if c.log {
		lo, hi = c.logRange()
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	return height * (hi - v) / (hi - lo)
}

// lastShown returns the last value that is drawn, or 0.
func (c *chart) lastShown(values []float64) float64 {
	for _, v := range slices.Backward(values) {
		if v = c.shown(v); !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
	}
	return 0
}

func (c *chart) patchZoom(m map[string]any) {
	zooms, ok := m["dataZoom"].([]any)
	if !ok {
		return
	}
	z := zooms[0].(map[string]any)
	z["id"], z["show"] = "zoom", c.Zoom
	for k, v := range map[string]any{
		"height": 22, "bottom": 6, "left": plotLeft, "right": max(16, c.labels), "brushSelect": false, "showDetail": false, "showDataShadow": false,
		"borderColor": "--grid", "backgroundColor": "--bg", "fillerColor": "--zoom",
		"handleStyle": map[string]any{"color": "--bg", "borderColor": "--muted"}, "moveHandleSize": 0,
	} {
		z[k] = v
	}
}
