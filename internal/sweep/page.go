package sweep

import (
	"fmt"

	"slosim/internal/report"
)

// Bounds of the page.
const (
	mostMaps   = 6 // heat maps and tornado charts
	mostCurves = 6 // main effects in full
)

// Document is the sweep as a page.
func (r *Result) Document(command string) *report.Document {
	f := r.Plan.File
	d := &report.Document{Title: f.Title, Headline: r.headline(), Setting: r.setting(), Command: command}
	if d.Title == "" {
		d.Title = "Sweep " + f.Name
	}
	if text, ok := r.best(); ok {
		d.Lead = text + ". Intervals are 95 %, over the seeds; all points have the same seeds. Figures are of the last phase."
	}
	for _, e := range r.of(0) {
		if len(d.Facts) == 4 {
			break
		}
		if e.Low < 0 {
			continue
		}
		m := &r.Plan.Metrics[0]
		d.Facts = append(d.Facts, report.Fact{Label: m.Title + " by " + f.Factors[e.Factor].Name, Value: m.Show(e.Range.V),
			Basis: fmt.Sprintf("%s at %s to %s at %s", m.Show(e.Levels[e.Low].Mean.V), e.Levels[e.Low].Label, m.Show(e.Levels[e.High].Mean.V), e.Levels[e.High].Label)})
	}
	if n := r.leftOut(); n > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d of %d points are no valid experiment and are left out, for example: %s.", n, len(r.Plan.Points), r.firstInvalid()))
	}
	if n := len(r.Failures); n > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d simulations failed; their points have gaps.", n))
	}
	d.Sections = append(d.Sections, r.tornadoes(), r.curves())
	heat := report.Section{ID: "heat", Title: "Two settings at a time", Lead: "Green is good, red is bad, within each map."}
	for m := range min(mostMaps, len(r.Plan.Metrics)) {
		if g, ok := r.heat(m); ok {
			heat.Grids = append(heat.Grids, g)
		}
	}
	if heat.Grids != nil {
		d.Sections = append(d.Sections, heat)
	}
	points := report.Section{ID: "points", Title: "Every point", Grids: []report.Grid{r.table(r.order(), "")}}
	if len(r.Failures) > 0 {
		points.Grids = append(points.Grids, r.failureGrid())
	}
	d.Sections = append(d.Sections, points)
	return d
}

func (r *Result) firstInvalid() string {
	for i := range r.Plan.Points {
		if text := r.Plan.Points[i].Invalid; text != "" {
			return text
		}
	}
	return ""
}

// tornadoes are bars from the least to the greatest mean of each factor's levels, one
// chart per metric, the widest on top.
func (r *Result) tornadoes() report.Section {
	s := report.Section{ID: "tornado", Title: "What moves what", Lead: "Each bar runs from the least to the greatest mean over a setting's levels, whatever the other settings are: its main effect. Variance explained is the part of all points' variance that the setting alone accounts for; what no setting accounts for is interaction."}
	for m := range min(mostMaps, len(r.Plan.Metrics)) {
		metric := &r.Plan.Metrics[m]
		p := report.Plot{ID: fmt.Sprintf("tornado-%d", m), Title: metric.Title, Aid: "by setting: mean at its best and worst level", Unit: metric.unit(), Bars: true, Below: "setting"}
		low := report.PlotLine{Label: "least", Unit: metric.unit(), Colour: "--p50"}
		high := report.PlotLine{Label: "greatest", Unit: metric.unit(), Colour: "--p99"}
		for _, e := range r.of(m) {
			if e.Low < 0 {
				continue
			}
			name := r.Plan.File.Factors[e.Factor].Name
			p.Names = append(p.Names, fmt.Sprintf("%s, %s to %s", name, e.Levels[e.Low].Label, e.Levels[e.High].Label))
			p.Labels = append(p.Labels, name)
			low.Values = append(low.Values, metric.drawn(e.Levels[e.Low].Mean.V))
			high.Values = append(high.Values, metric.drawn(e.Levels[e.High].Mean.V))
		}
		if p.Names != nil {
			p.Lines = []report.PlotLine{low, high}
			s.Plots = append(s.Plots, p)
		}
		s.Grids = append(s.Grids, r.effectGrid(m))
	}
	return s
}

// unit is that of an axis.
func (m *Metric) unit() string {
	switch m.kind.unit {
	case "":
		if m.kind.show(.5) == report.Percent(.5) {
			return "%"
		}
		return ""
	case "usd":
		return "$"
	case "c":
		return "°C"
	case "mhz":
		return "MHz"
	case "kwh":
		return "kWh"
	case "w":
		return "W"
	}
	return m.kind.unit
}

// drawn is a value in the unit of the axis.
func (m *Metric) drawn(v float64) float64 {
	if m.unit() == "%" {
		return 100 * v
	}
	return v
}

// curves draw the first metrics over the levels of the factors that move them most.
func (r *Result) curves() report.Section {
	s := report.Section{ID: "effects", Title: "How it moves", Lead: "Means over a setting's levels, with their 95 % interval over the seeds."}
	for _, e := range r.of(0) {
		if len(s.Plots) == mostCurves {
			break
		}
		metric, f := &r.Plan.Metrics[e.Metric], &r.Plan.File.Factors[e.Factor]
		p := report.Plot{ID: fmt.Sprintf("effect-%d", e.Factor), Title: metric.Title + " over " + f.Name, Unit: metric.unit(), Below: f.Name}
		mean := report.PlotLine{Label: "mean", Unit: metric.unit(), Colour: "--p99"}
		lo := report.PlotLine{Label: "low end", Unit: metric.unit(), Colour: "--muted", Dashed: true}
		hi := report.PlotLine{Label: "high end", Unit: metric.unit(), Colour: "--muted", Dashed: true}
		for _, l := range e.Levels {
			p.Names = append(p.Names, fmt.Sprintf("%s (%d points)", l.Label, l.N))
			p.Labels = append(p.Labels, l.Label)
			mean.Values = append(mean.Values, metric.drawn(l.Mean.V))
			lo.Values = append(lo.Values, metric.drawn(max(0, l.Mean.Lo)))
			hi.Values = append(hi.Values, metric.drawn(l.Mean.Hi))
		}
		p.Lines = []report.PlotLine{mean}
		if len(r.Plan.Seeds) > 1 {
			p.Lines = append(p.Lines, lo, hi)
		}
		s.Plots = append(s.Plots, p)
	}
	return s
}
