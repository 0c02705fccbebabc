package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"slosim/internal/report"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// curveLoads are the loads of a curve, as shares of saturation; the rule's lines, 70,
// 80 and 95 %, are among them.
var curveLoads = []float64{.1, .2, .3, .4, .5, .6, .7, .75, .8, .85, .9, .95, 1, 1.05}

// Span says how long each point of a study is simulated.
type Span struct{ Duration, Warmup clock.Duration }

// Curve is latency against load.
type Curve struct {
	Experiment sim.Experiment
	Span       Span
	Saturation float64 // requests per second of the experiment's mix
	Points     []CurvePoint
	Bound      bool // goodput is an upper bound
	Monotone   bool // TTFT P99, within simultaneous intervals
	Rule       []string
}

// CurvePoint is one load of a curve.
type CurvePoint struct {
	Load, Rate                            float64
	TTFTP50, TTFTP95, TTFTP99             stats.Estimate
	TPOTP50, TPOTP95, TPOTP99             stats.Estimate
	Goodput, Served                       stats.Estimate
	Busy, Budget, MFU, Bandwidth, QueueOf stats.Estimate
	Holds                                 bool
	Binding                               string
}

// DrawCurve simulates the experiment's mix at constant rates up to saturation.
func DrawCurve(ctx context.Context, e sim.Experiment, span Span, o Options) (*Curve, error) {
	if err := checkRates(&e); err != nil {
		return nil, err
	}
	l := newLab(o)
	factor, err := l.saturationFactor(ctx, e, span.Duration, span.Warmup)
	if err != nil {
		return nil, err
	}
	c := &Curve{Experiment: e, Span: span, Saturation: factor * totalRate(&e)}
	counted, exact := withGoodput(e)
	c.Bound = !exact
	var list []sim.Experiment
	for _, load := range curveLoads {
		list = append(list, steady(counted, factor*load, span.Duration, span.Warmup))
	}
	points, err := l.run(ctx, "curve", list)
	if err != nil {
		return nil, err
	}
	for i, p := range points {
		if p.Err != nil {
			return nil, p.Err
		}
		c.Points = append(c.Points, curvePoint(p, curveLoads[i], c.Saturation))
	}
	c.judge()
	return c, nil
}

func curvePoint(p *Point, load, saturation float64) CurvePoint {
	x := CurvePoint{Load: load, Rate: load * saturation}
	x.TTFTP50, x.TTFTP95, x.TTFTP99 = p.of(ttft(p50)), p.of(ttft(p95)), p.of(ttft(p99))
	x.TPOTP50, x.TPOTP95, x.TPOTP99 = p.of(tpot(p50)), p.of(tpot(p95)), p.of(tpot(p99))
	x.Goodput, x.Served = p.of(goodput), p.of(servedAll)
	x.Busy = p.of(func(r *sim.Result) float64 { return r.Pools[0].Busy.V })
	x.Budget = p.of(func(r *sim.Result) float64 { return useOf(r).budget })
	x.MFU = p.of(func(r *sim.Result) float64 { return useOf(r).mfu })
	x.Bandwidth = p.of(func(r *sim.Result) float64 { return useOf(r).bandwidth })
	x.QueueOf = p.of(queueShare)
	x.Holds, x.Binding = p.holds()
	return x
}

// judge tests the rule of 70 to 80 % and of 95 %.
func (c *Curve) judge() {
	c.Monotone = true
	for i := 1; i < len(c.Points); i++ {
		a, b := simultaneous(c.Points[i-1].TTFTP99, len(c.Points)), simultaneous(c.Points[i].TTFTP99, len(c.Points))
		if a.Lo > b.Hi {
			c.Monotone = false
		}
	}
	low, high, end := c.at(.7), c.at(.8), c.at(.95)
	calm := c.at(.1)
	ratio := func(a, b *CurvePoint) float64 { return a.TTFTP99.V / b.TTFTP99.V }
	if len(c.Experiment.SLOs) > 0 {
		c.Rule = append(c.Rule, fmt.Sprintf("70–80 %% is latency-friendly: %s. At 70 %% the SLOs %s, at 80 %% they %s.", right(low.Holds && high.Holds), held(low), held(high)))
	}
	c.Rule = append(c.Rule, fmt.Sprintf("At 80 %% TTFT P99 is %s, %s times that at 10 %% load.", report.Seconds(high.TTFTP99.V), report.Number(ratio(high, calm))))
	exploded := ratio(end, high) > 2 || math.IsInf(end.TTFTP99.V, 1)
	c.Rule = append(c.Rule, fmt.Sprintf("At 95 %% P99 has exploded: %s. TTFT P99 there is %s, %s times that at 80 %% (more than twice counts as exploded).", right(exploded), report.Seconds(end.TTFTP99.V), report.Number(ratio(end, high))))
	if k := c.knee(); k != nil {
		c.Rule = append(c.Rule, fmt.Sprintf("The knee, where TTFT P99 turns furthest from a straight line, is at %s load, %s requests/s.", report.Percent(k.Load), report.Number(k.Rate)))
	}
	last := ""
	for _, p := range c.Points {
		if !p.Holds {
			break
		}
		last = fmt.Sprintf("Every SLO holds up to %s load, %s requests/s.", report.Percent(p.Load), report.Number(p.Rate))
	}
	if last == "" && len(c.Experiment.SLOs) > 0 {
		last = fmt.Sprintf("No load holds every SLO: %s is missed at %s already.", c.Points[0].Binding, report.Percent(c.Points[0].Load))
	}
	if len(c.Experiment.SLOs) > 0 {
		c.Rule = append(c.Rule, last)
	}
}

func right(ok bool) string {
	if ok {
		return "true here"
	}
	return "false here"
}

func held(p *CurvePoint) string {
	if p.Holds {
		return "hold"
	}
	return "do not hold (" + p.Binding + ")"
}

func (c *Curve) at(load float64) *CurvePoint {
	for i := range c.Points {
		if c.Points[i].Load == load {
			return &c.Points[i]
		}
	}
	return &c.Points[0]
}

// knee is the point below saturation that lies furthest under the chord of TTFT P99
// against load (Satopää et al., "Finding a Kneedle in a Haystack", 2011).
func (c *Curve) knee() *CurvePoint {
	var x, y []float64
	for _, p := range c.Points {
		if p.Load > 1 || math.IsInf(p.TTFTP99.V, 0) || math.IsNaN(p.TTFTP99.V) {
			break
		}
		x, y = append(x, p.Load), append(y, p.TTFTP99.V)
	}
	if k := kneeOf(x, y); k >= 0 {
		return &c.Points[k]
	}
	return nil
}

func kneeOf(x, y []float64) int {
	n := len(x)
	if n < 3 || y[n-1] <= y[0] {
		return -1
	}
	best, at := 0.0, -1
	for i := 1; i < n-1; i++ {
		gap := (x[i]-x[0])/(x[n-1]-x[0]) - (y[i]-y[0])/(y[n-1]-y[0])
		if gap > best {
			best, at = gap, i
		}
	}
	return at
}

// Grids are the tables for the terminal.
func (c *Curve) Grids() []report.Grid {
	g := report.Grid{Caption: fmt.Sprintf("%s: latency against load; saturation is %s requests/s", c.Experiment.Name, report.Number(c.Saturation)),
		Head: []string{"load", "rate", "TTFT P99", "TPOT P95", "SLOs", "TTFT P50", c.goodputName("goodput", "goodput ≤"), "busy", "TTFT P95", "TPOT P50", "TPOT P99", "budget", "MFU", "bandwidth", "queue"}, Left: 0,
		Notes: append([]string{}, c.Rule...)}
	share := func(e stats.Estimate) string {
		if math.IsNaN(e.V) {
			return "–"
		}
		return report.Percent(e.V)
	}
	for _, p := range c.Points {
		slos := "met"
		if !p.Holds {
			slos = "missed: " + p.Binding
		}
		if len(c.Experiment.SLOs) == 0 {
			slos = "–"
		}
		g.Rows = append(g.Rows, []string{report.Percent(p.Load), report.Number(p.Rate) + "/s", interval(p.TTFTP99), interval(p.TPOTP95), slos, seconds(p.TTFTP50.V), report.Number(p.Goodput.V) + "/s", share(p.Busy),
			seconds(p.TTFTP95.V), seconds(p.TPOTP50.V), seconds(p.TPOTP99.V), share(p.Budget), share(p.MFU), share(p.Bandwidth), share(p.QueueOf)})
	}
	g.Notes = append(g.Notes, "Load is the rate over the saturation rate of the same mix; busy is the share of time that a step runs and is no utilisation. Budget: tokens over the token budget of the steps. "+
		"MFU: 2 × active parameters per token over peak FLOP/s. Bandwidth: weights once per step and the KV held over HBM bandwidth. All of one pool. "+c.goodputName("Goodput: requests that meet every threshold of their class.", "Goodput, an upper bound: some promises are to some requests only; counted are those that meet every other threshold of their class."))
	return []report.Grid{g}
}

func seconds(v float64) string {
	if math.IsInf(v, 1) {
		return "never"
	}
	if math.IsNaN(v) {
		return "–"
	}
	return report.Seconds(v)
}

// interval writes a time with its 95 % interval.
func interval(e stats.Estimate) string {
	if e.R < 2 || math.IsInf(e.V, 0) || math.IsNaN(e.V) {
		return seconds(e.V)
	}
	return fmt.Sprintf("%s [%s, %s]", seconds(e.V), seconds(math.Max(0, e.Lo)), seconds(e.Hi))
}

// Document is the curve as a page.
func (c *Curve) Document(command string) *report.Document {
	d := &report.Document{
		Title: "Load curve of " + c.Experiment.Name, Headline: c.headline(),
		Lead:    "The experiment's mix at constant rates, as the world is after its changes. The 70, 80 and 95 % lines are those of the utilisation rule.",
		Setting: fmt.Sprintf("%d seeds, each load %s after %s of warm-up", c.Experiment.Replications, report.Span(c.Span.Duration), report.Span(c.Span.Warmup)),
		Command: command,
	}
	for _, load := range []float64{.1, .7, .8, .95} {
		p := c.at(load)
		d.Facts = append(d.Facts, report.Fact{Label: fmt.Sprintf("TTFT P99 at %.0f %%", 100*load), Value: seconds(p.TTFTP99.V), Basis: held(p)})
	}
	var names, labels []string
	for _, p := range c.Points {
		names = append(names, fmt.Sprintf("load %s, %s/s", report.Percent(p.Load), report.Number(p.Rate)))
		label := fmt.Sprintf("%.0f %%", 100*p.Load)
		if p.Load == .7 || p.Load == .8 || p.Load == .95 {
			label = "▲ " + label
		}
		labels = append(labels, label)
	}
	column := func(f func(*CurvePoint) float64) []float64 {
		var out []float64
		for i := range c.Points {
			v := f(&c.Points[i])
			if math.IsInf(v, 0) {
				v = math.NaN()
			}
			out = append(out, v)
		}
		return out
	}
	plot := func(id, title, unit string, log bool, lines ...report.PlotLine) report.Plot {
		return report.Plot{ID: id, Title: title, Aid: "against load; ▲ marks the rule's 70, 80 and 95 %", Unit: unit, Log: log, Names: names, Labels: labels, Below: "load", Lines: lines}
	}
	line := func(label, colour, unit string, f func(*CurvePoint) float64) report.PlotLine {
		return report.PlotLine{Label: label, Unit: unit, Colour: colour, Values: column(f)}
	}
	figures := []report.Plot{
		plot("ttft", "TTFT", "s", true, line("P50", "--p50", "s", func(p *CurvePoint) float64 { return p.TTFTP50.V }), line("P95", "--p90", "s", func(p *CurvePoint) float64 { return p.TTFTP95.V }), line("P99", "--p99", "s", func(p *CurvePoint) float64 { return p.TTFTP99.V })),
		plot("tpot", "TPOT", "s", false, line("P50", "--p50", "s", func(p *CurvePoint) float64 { return p.TPOTP50.V }), line("P95", "--p90", "s", func(p *CurvePoint) float64 { return p.TPOTP95.V }), line("P99", "--p99", "s", func(p *CurvePoint) float64 { return p.TPOTP99.V })),
		plot("goodput", "Goodput", "requests/s", false, line("offered", "--muted", "/s", func(p *CurvePoint) float64 { return p.Rate }), line("completed", "--p50", "/s", func(p *CurvePoint) float64 { return p.Served.V }), line(c.goodputName("goodput", "goodput, at most"), "--good", "/s", func(p *CurvePoint) float64 { return p.Goodput.V })),
		plot("use", "Use of the GPUs", "%", false, line("busy", "--muted", "%", func(p *CurvePoint) float64 { return 100 * p.Busy.V }), line("token budget", "--p50", "%", func(p *CurvePoint) float64 { return 100 * p.Budget.V }), line("MFU", "--p90", "%", func(p *CurvePoint) float64 { return 100 * p.MFU.V }), line("bandwidth", "--p99", "%", func(p *CurvePoint) float64 { return 100 * p.Bandwidth.V })),
	}
	d.Sections = []report.Section{{ID: "curve", Title: "The hockey stick", Plots: figures}, {ID: "table", Title: "Every load", Grids: c.Grids()}}
	return d
}

func (c *Curve) headline() string {
	best := -1
	for i, p := range c.Points {
		if !p.Holds {
			break
		}
		best = i
	}
	switch {
	case len(c.Experiment.SLOs) == 0:
		return fmt.Sprintf("Saturation is %s requests/s", report.Number(c.Saturation))
	case best < 0:
		return "No load holds every SLO"
	}
	return fmt.Sprintf("Every SLO holds up to %s load: %s of %s requests/s", report.Percent(c.Points[best].Load), report.Number(c.Points[best].Rate), report.Number(c.Saturation))
}

// Markdown writes the table.
func (c *Curve) Markdown(w io.Writer) {
	fmt.Fprintf(w, "# Load curve of %s\n\n%s.\n\n", c.Experiment.Name, c.headline())
	for _, g := range c.Grids() {
		g.Markdown(w)
	}
}

// JSON writes the points.
func (c *Curve) JSON(w io.Writer) error {
	var rows []map[string]any
	for _, p := range c.Points {
		row := map[string]any{"load": p.Load, "rate": p.Rate, "holds": p.Holds, "binding": p.Binding}
		for name, e := range map[string]stats.Estimate{"ttft_p50": p.TTFTP50, "ttft_p95": p.TTFTP95, "ttft_p99": p.TTFTP99, "tpot_p50": p.TPOTP50, "tpot_p95": p.TPOTP95, "tpot_p99": p.TPOTP99,
			c.goodputName("goodput", "goodput_at_most"): p.Goodput, "completed": p.Served, "busy": p.Busy, "token_budget": p.Budget, "mfu": p.MFU, "bandwidth": p.Bandwidth, "queue_share": p.QueueOf} {
			row[name] = estimateJSON(e)
		}
		rows = append(rows, row)
	}
	return writeJSON(w, map[string]any{"experiment": c.Experiment.Name, "saturation": c.Saturation, "monotone": c.Monotone, "rule": c.Rule, "points": rows})
}

func estimateJSON(e stats.Estimate) map[string]any {
	return map[string]any{"value": finite(e.V), "lo": finite(e.Lo), "hi": finite(e.Hi), "seeds": e.R}
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(v)
}

// goodputName is one of two names: of what is counted, or of a bound.
func (c *Curve) goodputName(counted, bound string) string {
	if c.Bound {
		return bound
	}
	return counted
}
