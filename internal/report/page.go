package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io/fs"
	"slices"

	"slosim/sim"
	"slosim/sim/clock"
)

//go:embed assets
var assets embed.FS

// pageTemplates are parsed once; a broken template is a broken build.
var pageTemplates = template.Must(template.New("page.html").Funcs(template.FuncMap{"nb": unbroken}).ParseFS(assets, "assets/templates/*.html"))

// pageData is everything that the templates show, already in words.
type pageData struct {
	CSP     string
	CSS     template.CSS
	ECharts template.JS
	Script  template.JS

	Name, Title, Question string
	Setting               string // the run in one line: span, start, replications
	Status                sim.Status
	Headline, Reason      string
	Partial               string
	Command               string
	Warnings, More        []string // the first notes, and the rest
	Facts                 []fact

	Compared     bool // there is a phase before and one after
	Hero         *figure
	Zooms        []zoom
	Classes      []*figure
	SLOs         []sloCard
	SLAs         []slaCard
	Held         *tableView
	StageBudgets []stageView
	BurnDowns    bool // some objective has a burn-down
	Burn         *figure
	Why          whyView
	Phases       []phaseView
	Measured     []*figure // a measured result beside the simulated one
	Load         []*figure
	Pools        *tableView
	Engine       []poolView
	Cluster      clusterView
	MorePools    int // not drawn
	Source       sourceView
}

// mostNotes bounds the notes above the first chart.
const mostNotes = 3

// figure is a chart on its way into the page.
type figure struct {
	*chart
	JSON template.JS
}

// zoom is a preset of the time axis: one phase, or the whole run.
type zoom struct {
	Name     string
	From, To float64 // milliseconds of the time axis
}

// poolView holds the charts of one pool.
type poolView struct {
	Name             string
	Engine, Hardware []*figure
}

// page renders report.html.
func page(s *story) ([]byte, error) {
	d := &pageData{
		Name: clean(s.r.Experiment.Name), Title: s.title(), Question: clean(s.r.Experiment.Question), Setting: s.setting(),
		Status: s.r.Verdict.Status, Headline: s.headline(), Reason: clean(s.r.Verdict.Reason), Command: clean(s.m.Command), Facts: s.facts(),
		Why: s.why(), Phases: s.phaseViews(), Pools: s.poolTable(), Source: s.source(), Zooms: s.zooms(), Compared: s.first != nil, Cluster: s.cluster(),
	}
	d.Warnings = s.notes()
	if len(d.Warnings) > mostNotes {
		d.Warnings, d.More = d.Warnings[:mostNotes-1], d.Warnings[mostNotes-1:]
	}
	if s.r.Partial {
		d.Partial = fmt.Sprintf("Interrupted: this covers %s, until %s.", s.covered(), s.moment(s.r.End))
	}
	for i := range s.r.SLOs {
		d.SLOs = append(d.SLOs, s.sloCard(&s.r.SLOs[i]))
	}
	d.StageBudgets = s.stageViews()
	d.SLAs, d.Held = s.slaCards(), s.heldTable()
	if err := s.figures(d); err != nil {
		return nil, err
	}
	if err := d.embed(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := pageTemplates.Execute(&b, d); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// drawer turns charts into figures and keeps the first error.
type drawer struct {
	start clock.Duration
	err   error
}

// one draws a chart; nil, for a chart without data, stays nil.
func (d *drawer) one(c *chart) *figure {
	if c == nil {
		return nil
	}
	data, err := c.JSON(d.start)
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("chart %s: %w", c.ID, err)
	}
	return &figure{c, data}
}

func (d *drawer) many(charts ...*chart) (out []*figure) {
	for _, c := range charts {
		if f := d.one(c); f != nil {
			out = append(out, f)
		}
	}
	return out
}

// figures draws the page's charts.
func (s *story) figures(d *pageData) error {
	draw := &drawer{start: s.r.Experiment.Start}
	d.Hero, d.Burn = draw.one(s.heroChart()), draw.one(s.burnChart())
	d.Why.Stages, d.Why.Cohorts = draw.one(s.stageChart()), draw.one(s.cohortChart())
	d.Measured = draw.many(s.measuredCharts()...)
	d.Classes = draw.many(s.classCharts()...)
	if len(s.r.Series.T) > 0 {
		d.Load = draw.many(s.arrivalChart(), s.mixChart(), s.lengthChart())
	}
	d.Load = append(d.Load, draw.many(s.promptChart())...)
	for i := range s.r.SLOs {
		d.SLOs[i].BurnDown = draw.one(s.burnDownChart(i))
		d.BurnDowns = d.BurnDowns || d.SLOs[i].BurnDown != nil
	}
	for i := range s.r.Series.Pools[:min(maxPoolCharts, len(s.r.Series.Pools))] {
		p := &s.r.Series.Pools[i]
		d.Cluster.Replicas = append(d.Cluster.Replicas, draw.many(s.replicaChart(i, p))...)
		d.Engine = append(d.Engine, poolView{
			Name:     clean(p.Name),
			Engine:   draw.many(s.queueChart(i, p), s.cacheChart(i, p)),
			Hardware: draw.many(s.splitChart(i, p), s.clockChart(i, p), s.heatChart(i, p), s.powerChart(i, p)),
		})
	}
	d.MorePools = max(0, len(s.r.Series.Pools)-maxPoolCharts)
	return draw.err
}

// Nav lists the page's sections as they exist.
func (d *pageData) Nav() []pair {
	hardware := slices.ContainsFunc(d.Engine, func(p poolView) bool { return len(p.Hardware) > 0 })
	var out []pair
	for _, section := range []struct {
		id, name string
		shown    bool
	}{
		{"budget", "Budget", len(d.SLOs)+len(d.StageBudgets) > 0}, {"why", "Why", d.Why.any()}, {"phases", "Numbers", len(d.Phases) > 0},
		{"measured", "Measured", len(d.Measured) > 0},
		{"load", "Load", len(d.Load) > 0 || d.Pools != nil || len(d.Engine) > 0}, {"cluster", "Cluster", d.Cluster.any()}, {"hardware", "Hardware", hardware}, {"source", "Provenance", true},
	} {
		if section.shown {
			out = append(out, pair{section.id, section.name})
		}
	}
	return out
}

// setting writes the run in one line.
func (s *story) setting() string {
	e := s.r.Experiment
	replications := plural(len(s.r.Seeds), "replication")
	if n := e.Replications; len(s.r.Seeds) < n {
		replications = fmt.Sprintf("%d of %s", len(s.r.Seeds), plural(n, "replication"))
	}
	return fmt.Sprintf("%s from %s · %s", span(e.Duration), clock.Time(0).Label(e.Start), replications)
}

// zooms are the presets of the time axis.
func (s *story) zooms() []zoom {
	start := s.r.Experiment.Start
	out := []zoom{{"whole run", axisMs(0, start), axisMs(s.r.End, start)}}
	if len(s.r.Phases) < 2 {
		return out
	}
	for _, p := range s.r.Phases[:min(8, len(s.r.Phases))] {
		if p.From < s.r.End {
			out = append(out, zoom{short(p.Name, 30), axisMs(p.From, start), axisMs(min(p.To, s.r.End), start)})
		}
	}
	return out
}

// embed adds style and scripts, and the policy that allows nothing else.
func (d *pageData) embed() error {
	read := func(name string) (string, string, error) {
		data, err := fs.ReadFile(assets, "assets/"+name)
		sum := sha256.Sum256(data)
		return string(data), "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'", err
	}
	css, cssHash, err := read("page.css")
	if err != nil {
		return err
	}
	library, libraryHash, err := read("echarts/echarts.common.min.js")
	if err != nil {
		return err
	}
	script, scriptHash, err := read("page.js")
	if err != nil {
		return err
	}
	d.CSS, d.ECharts, d.Script = template.CSS(css), template.JS(library), template.JS(script)
	d.CSP = fmt.Sprintf("default-src 'none'; script-src %s %s; style-src-elem %s; style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none'",
		libraryHash, scriptHash, cssHash)
	return nil
}
