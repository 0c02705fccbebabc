package report

import (
	"fmt"
	"math"
	"strings"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// Groups of charts that share hover and zoom: the simulated span, and the
// budget's window.
const (
	groupRun    = "run"
	groupBudget = "budget"
)

// logAbove is the ratio of P99 to P50 from which a time axis is logarithmic.
const logAbove = 20

// maxTicks bounds the alert marks of a chart.
const maxTicks = 60

// runChart starts a chart over the simulated span with the changes of a class
// marked; class "" marks all of them.
func (s *story) runChart(id, class string) *chart {
	c := &chart{ID: id, group: groupRun, t: s.r.Series.T, from: 0, to: s.r.End, Height: 230}
	var names []string
	room := 0.0
	for _, change := range s.r.Experiment.Changes {
		t := s.startOf(change.Name, clock.Time(change.At))
		if class != "" && change.Class != class || t > s.r.End {
			continue
		}
		name := short(change.Name, 20)
		// The lines of a cluster share the label of its first one.
		if n := len(c.moments); n > 0 {
			apart := float64(t.Sub(c.moments[n-1].t)) / float64(s.r.End) * leastPlot
			if apart < (room+nameWidth([]string{name}))/2 {
				names = append(names, name)
				room = nameWidth(names)
				c.moments[n-len(names)+1].name = startName(names)
				c.moments = append(c.moments, moment{t, ""})
				continue
			}
		}
		names, room = []string{name}, nameWidth([]string{name})
		c.moments = append(c.moments, moment{t, startName(names)})
	}
	return c
}

// leastPlot is the width of a plot that names of changes count on, and cellWidth
// that of a character, in pixels.
const (
	leastPlot = 480
	cellWidth = 6.5
)

// startName names the changes that begin around one moment.
func startName(names []string) string {
	if len(names) == 1 {
		return names[0] + " starts"
	}
	return strings.Join(names, ", ") + " start"
}

func nameWidth(names []string) float64 { return cellWidth * float64(width(startName(names))+2) }

// heroChart shows the metric that decided over time, with what changed and what
// was promised.
func (s *story) heroChart() *chart {
	data := s.series(s.class, s.cohort)
	if data == nil {
		data = s.series(s.class, everyone)
	}
	if data == nil {
		return nil
	}
	c := s.latencyChart("ttft", data, s.focus != nil && s.focus.Metric == slo.TPOT, s.objective(s.class))
	if c == nil {
		return nil
	}
	c.Wide, c.Zoom, c.Height = true, true, 420
	c.under("arrivals", data.Arrivals, "--arrivals", .16)
	if s.focus != nil {
		for _, a := range s.focus.Alerts[:min(maxTicks, len(s.focus.Alerts))] {
			c.ticks = append(c.ticks, alertTick(a))
		}
		if len(c.ticks) > 0 {
			c.Keys = append(c.Keys, alertKeys(s.focus.Alerts)...)
		}
	}
	return c
}

// latencyChart draws P50 and P99 of TTFT, or of TPOT, of one class and cohort.
func (s *story) latencyChart(id string, data *sim.ClassSeries, tpot bool, objective *sim.SLO) *chart {
	c := s.runChart(id, data.Class)
	name, p50, p99 := "TTFT", data.TTFTP50, data.TTFTP99
	if tpot {
		name, p50, p99, objective = "TPOT", data.TPOTP50, data.TPOTP99, s.focus
	}
	if largest(p99) == 0 && infinite(p99) == 0 {
		return nil
	}
	most := max(largest(p99), largest(p50))
	if most == 0 && objective != nil {
		most = objective.Threshold.Seconds()
	}
	sc := timeScale(most)
	c.Unit = unitName(sc)
	c.labels = 44
	if !tpot && len(s.r.Seeds) > 1 {
		c.band(name+" P99 of a replication", c.Unit, scaled(sc, data.TTFTP99Lo), scaled(sc, data.TTFTP99Hi), "--p99")
		c.Keys = append(c.Keys, key{fmt.Sprintf("range of P99 over %d replications", len(s.r.Seeds)), "--p99", "area"})
	}
	c.draw(name+" P50", c.Unit, scaled(sc, p50), line{colour: "--p50", label: "P50"})
	c.draw(name+" P99", c.Unit, scaled(sc, p99), line{colour: "--p99", label: "P99", width: 2})
	c.log = largest(p99) > logAbove*median(p50)
	if objective != nil {
		threshold := objective.Threshold.Seconds()
		c.levels = []level{{threshold * sc.factor, "SLO " + plainSeconds(threshold), "--slo"}}
		c.Title = s.crossing(name+" P99", p99, threshold)
	} else {
		c.Title = s.peak(name+" P99", p99)
	}
	s.shadeNever(c, p99, .12)
	s.shadeNever(c, p50, .14)
	if c.clipInfinite("not answered") {
		top := make([]float64, len(p99))
		for i, v := range p99 {
			top[i] = none64
			if math.IsInf(v, 1) {
				top[i] = v
			}
		}
		c.draw("", c.Unit, top, line{colour: "--slo", width: 5})
		c.columns[len(c.columns)-1].hidden = true
		c.Keys = append(c.Keys, key{"above the axis: not answered", "--slo", "line"})
	}
	width := span(s.r.Series.Width)
	c.Aid = fmt.Sprintf("%s of the requests that arrived in each %s: half are faster than P50, one in a hundred is slower than P99.", name, width)
	if c.log {
		c.Aid += " Log scale: equal steps are equal factors."
	}
	if len(c.bands) > 0 {
		c.Aid += " Shaded, with P99 at the top edge: more than 1 % of the requests were rejected or never answered."
		if infinite(p50) > 0 {
			c.Aid += " Darker: more than half."
		}
	}
	return c
}

// shadeNever marks the windows whose quantile lies among requests never answered.
func (s *story) shadeNever(c *chart, quantile []float64, opacity float32) {
	for i := 0; i < len(quantile); i++ {
		if !math.IsInf(quantile[i], 1) {
			continue
		}
		from := i
		for i < len(quantile) && math.IsInf(quantile[i], 1) {
			i++
		}
		c.bands = append(c.bands, timeBand{c.t[from], s.windowEnd(i - 1), "", "--slo", opacity})
	}
}

func (s *story) windowEnd(i int) clock.Time {
	return min(s.r.End, s.r.Series.T[i].Add(s.r.Series.Width))
}

// under lays a rate below a chart as an area on an axis of its own, which is
// three times as high as the rate and has no labels: the key tells its peak.
func (c *chart) under(name string, perSecond []float64, colour string, opacity float32) {
	top := largest(perSecond)
	if top == 0 {
		return
	}
	c.second = &secondAxis{max: top * 3.2}
	c.draw(name, "/s", perSecond, line{colour: colour, right: true, hidden: true, fill: opacity})
	c.Keys = append(c.Keys, key{name + ", at most " + trimZeros(number(top, decimals(top, 0))) + "/s (own axis)", colour, "area"})
}

// cohortChart compares P99 of the cohorts of the focus class: who is hurt.
func (s *story) cohortChart() *chart {
	cohorts := s.cohorts(s.class)
	var shown []*sim.ClassSeries
	for _, c := range cohorts {
		if largest(c.TTFTP99) > 0 || infinite(c.TTFTP99) > 0 {
			shown = append(shown, c)
		}
	}
	if len(shown) < 2 {
		return nil
	}
	c := s.runChart("cohorts", s.class)
	top, low := 0.0, math.Inf(1)
	for _, x := range shown {
		top = max(top, largest(x.TTFTP99))
		if m := median(x.TTFTP50); m < low {
			low = m
		}
	}
	sc := timeScale(top)
	c.Unit, c.labels, c.log, c.Height = unitName(sc), 110, top > logAbove*low, 260
	for i, x := range shown {
		label := "TTFT P99, " + short(x.Cohort, 40)
		c.draw(label, c.Unit, scaled(sc, x.TTFTP99), line{colour: "--cohort" + fmt.Sprint(i%4), label: short(x.Cohort, 14)})
	}
	if o := s.objective(s.class); o != nil {
		c.levels = []level{{o.Threshold.Seconds() * sc.factor, "SLO " + plainSeconds(o.Threshold.Seconds()), "--slo"}}
	}
	c.Title = s.cohortTitle(shown)
	c.Aid = "TTFT P99 by cohort: those whom a change moved, and the rest, who share the replicas with them."
	if c.log {
		c.Aid += " Log scale."
	}
	if c.clipInfinite("not answered") {
		c.Aid += " At the top edge: more than 1 % of the cohort was rejected or never answered."
	}
	return c
}

func (s *story) cohortTitle(shown []*sim.ClassSeries) string {
	text := ""
	for _, x := range shown {
		row := s.row(s.last, s.class, x.Cohort)
		if row == nil || row.TTFT.P99.R == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += short(x.Cohort, 40) + " " + timeScale(row.TTFT.P99.V).value(row.TTFT.P99)
	}
	if text == "" {
		return "Who is hurt"
	}
	return "TTFT P99 in phase " + clean(s.last.Name) + ": " + text
}

// classCharts are small multiples of all classes but the focus.
func (s *story) classCharts() []*chart {
	var out []*chart
	for i, class := range s.classes() {
		data := s.series(class, everyone)
		if class == s.class || data == nil {
			continue
		}
		if c := s.latencyChart(fmt.Sprintf("class%d", i), data, false, s.objective(class)); c != nil {
			c.Title = short(class, 60) + ": " + c.Title
			c.Height = 190
			out = append(out, c)
		}
	}
	return out
}
