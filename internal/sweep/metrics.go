package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slosim/internal/config"
	"slosim/internal/report"
	"slosim/sim"
	"slosim/sim/stats"
)

// Metric is a figure of a simulation's last phase: the world as the last change
// leaves it.
type Metric struct {
	Name   string // as the sweep names it: "ttft_p99:chat"
	Column string // in Parquet and JSON, with its unit: "ttft_p99_s_chat"
	Title  string // in tables: "TTFT P99, chat"
	of     func(*sim.Result) float64
	kind   kind
	who    string
}

// kind is what a family of metrics has in common.
type kind struct {
	name, unit, title string
	of                string // what ":NAME" picks: "class", "slo", "pool" or ""
	show              func(float64) string
	high              bool // more is better
	read              func(r *sim.Result, i int) float64
}

func share(v float64) string { return report.Percent(v) }

// kinds are all metrics. Quantiles are those of one simulation; tables show their mean
// over seeds.
var kinds = append(latencies(), []kind{
	{"ok_share", "", "answered", "class", share, true, func(r *sim.Result, i int) float64 {
		c := classes(r)[i]
		return float64(c.Outcomes.OK) / float64(c.N)
	}},
	{"bad_share", "", "bad events", "slo", share, false, func(r *sim.Result, i int) float64 {
		p := r.SLOs[i].Phases[len(r.SLOs[i].Phases)-1]
		return float64(p.Bad) / float64(p.Good+p.Bad)
	}},
	{"budget_spent", "", "budget spent at the window's end", "slo", share, false, func(r *sim.Result, i int) float64 {
		if b := r.SLOs[i].Budget; b.Projected.R > 0 {
			return b.Projected.V
		}
		return r.SLOs[i].Budget.Spent.V
	}},
	{"busy", "", "busy", "pool", share, true, func(r *sim.Result, i int) float64 { return r.Pools[i].Busy.V }},
	{"load", "", "load", "pool", share, false, func(r *sim.Result, i int) float64 {
		l := r.Pools[i].Load
		return l[len(l)-1].MeanRate / l[len(l)-1].Saturation
	}},
	{"kv_peak", "", "KV cache at its fullest", "pool", share, false, func(r *sim.Result, i int) float64 { return r.Pools[i].KVPeak }},
	{"preemptions", "", "preemptions", "pool", report.Number, false, func(r *sim.Result, i int) float64 { return r.Pools[i].Preemptions.V }},
	{"prefix_hit", "", "prefix-cache hits", "pool", share, true, func(r *sim.Result, i int) float64 { return r.Pools[i].PrefixHit.V }},
	{"clock", "mhz", "SM clock", "pool", func(v float64) string { return report.Number(v) + " MHz" }, true, func(r *sim.Result, i int) float64 { return r.Pools[i].ClockMHz.V }},
	{"power", "w", "power per GPU", "pool", func(v float64) string { return report.Number(v) + " W" }, false, func(r *sim.Result, i int) float64 { return r.Pools[i].PowerW.V }},
	{"temp_max", "c", "hottest GPU", "pool", func(v float64) string { return report.Number(v) + " °C" }, false, func(r *sim.Result, i int) float64 { return r.Pools[i].TempMaxC }},
	{"gpus", "", "GPUs, mean", "", report.Number, false, func(r *sim.Result, _ int) float64 {
		return sum(r, func(p *sim.PoolResult) float64 { return p.GPUHours }) / hours(r)
	}},
	{"usd_per_hour", "usd", "dollars an hour", "", usd, false, func(r *sim.Result, _ int) float64 {
		return sum(r, func(p *sim.PoolResult) float64 { return p.USD }) / hours(r)
	}},
	{"usd_per_mtok", "usd", "dollars per million output tokens", "", usd, false, func(r *sim.Result, _ int) float64 {
		tokens := 0.0
		for k := range r.Phases {
			for _, c := range r.Phases[k].Classes {
				if c.Cohort == "all" {
					tokens += float64(c.Outcomes.OK) * c.Output.Mean.V
				}
			}
		}
		return sum(r, func(p *sim.PoolResult) float64 { return p.USD }) / tokens * 1e6
	}},
	{"energy", "kwh", "energy of the GPUs", "", func(v float64) string { return report.Number(v) + " kWh" }, false, func(r *sim.Result, _ int) float64 {
		return sum(r, func(p *sim.PoolResult) float64 { return p.EnergyKWh })
	}},
}...)

func usd(v float64) string { return "$" + report.Number(v) }

func hours(r *sim.Result) float64 { return r.End.Sub(0).Seconds() / 3600 }

func sum(r *sim.Result, f func(*sim.PoolResult) float64) float64 {
	total := 0.0
	for i := range r.Pools {
		total += f(&r.Pools[i])
	}
	return total
}

// latencies are the distributions of classes.
func latencies() []kind {
	var out []kind
	for _, d := range []struct {
		name, title string
		of          func(*sim.ClassPhase) *sim.Distribution
	}{
		{"ttft", "TTFT", func(c *sim.ClassPhase) *sim.Distribution { return &c.TTFT }},
		{"tpot", "TPOT", func(c *sim.ClassPhase) *sim.Distribution { return &c.TPOT }},
		{"e2e", "E2E", func(c *sim.ClassPhase) *sim.Distribution { return &c.E2E }},
	} {
		for _, q := range []struct {
			name, title string
			of          func(*sim.Distribution) stats.Estimate
		}{
			{"mean", "mean", func(d *sim.Distribution) stats.Estimate { return d.Mean }},
			{"p50", "P50", func(d *sim.Distribution) stats.Estimate { return d.P50 }},
			{"p90", "P90", func(d *sim.Distribution) stats.Estimate { return d.P90 }},
			{"p95", "P95", func(d *sim.Distribution) stats.Estimate { return d.P95 }},
			{"p99", "P99", func(d *sim.Distribution) stats.Estimate { return d.P99 }},
		} {
			out = append(out, kind{d.name + "_" + q.name, "s", d.title + " " + q.title, "class", report.Seconds, false,
				func(r *sim.Result, i int) float64 { return q.of(d.of(classes(r)[i])).V }})
		}
	}
	return out
}

// classes are those of the last phase, without cohorts.
func classes(r *sim.Result) []*sim.ClassPhase {
	var out []*sim.ClassPhase
	last := &r.Phases[len(r.Phases)-1]
	for i := range last.Classes {
		if last.Classes[i].Cohort == "all" {
			out = append(out, &last.Classes[i])
		}
	}
	return out
}

func metricNames() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.name)
	}
	return out
}

// metricOf reads "NAME" or "NAME:WHO".
func metricOf(text string) (kind, error) {
	name, who, picks := strings.Cut(text, ":")
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == strings.TrimSpace(name) })
	switch {
	case i < 0:
		return kind{}, fmt.Errorf("there is no metric %q", name)
	case picks && kinds[i].of == "":
		return kind{}, fmt.Errorf("%s is of the whole cluster: it takes no %q", name, ":"+who)
	}
	return kinds[i], nil
}

func nearMetric(text string) string {
	name, _, _ := strings.Cut(text, ":")
	if near := config.Nearest(name, metricNames()); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// metrics returns those that the sweep reports about an experiment.
func (f *File) metrics(e *sim.Experiment) ([]Metric, error) {
	names := f.Metrics
	if names == nil {
		names = []string{"ttft_p99", "tpot_p99"}
		if len(e.SLOs) > 0 {
			names = append(names, "bad_share")
		}
		if slices.ContainsFunc(e.Pools, func(p sim.Pool) bool { return p.GPUHourUSD > 0 }) {
			names = append(names, "usd_per_hour")
		}
	}
	have := map[string][]string{"": {""}}
	for _, c := range e.Traffic {
		have["class"] = append(have["class"], c.Name)
	}
	for _, o := range e.SLOs {
		have["slo"] = append(have["slo"], o.Name)
	}
	for _, p := range e.Pools {
		have["pool"] = append(have["pool"], p.Name)
	}
	var out []Metric
	for _, text := range names {
		k, err := metricOf(text)
		if err != nil {
			return nil, err // Parse has told where
		}
		_, who, picks := strings.Cut(text, ":")
		list, at := have[k.of], 0
		if who = strings.TrimSpace(who); picks {
			at = slices.Index(list, who)
		}
		if at < 0 || len(list) == 0 {
			return nil, config.Errors{{File: f.Path, Key: "report.metrics", Msg: fmt.Sprintf("%s: the experiment has no %s %q", text, k.of, who), Allowed: strings.Join(list, ", ")}}
		}
		m := Metric{Name: k.name, Column: k.name, Title: k.title, kind: k, of: func(r *sim.Result) float64 { return k.read(r, at) }}
		if k.unit != "" && k.unit != "usd" {
			m.Column += "_" + k.unit
		}
		if k.of != "" {
			m.who = list[at]
		}
		if len(list) > 1 {
			m.Name, m.Title, m.Column = k.name+":"+m.who, k.title+", "+m.who, m.Column+"_"+plainName(m.who)
		}
		same := func(o Metric) bool { return o.kind.name == k.name && o.who == m.who }
		if slices.ContainsFunc(out, same) {
			return nil, config.Errors{{File: f.Path, Key: "report.metrics", Msg: fmt.Sprintf("metrics lists %s twice", text), Try: "leave one out"}}
		}
		for slices.ContainsFunc(out, func(o Metric) bool { return o.Column == m.Column }) {
			m.Column += "_" // of classes such as "a b" and "a-b"
		}
		out = append(out, m)
	}
	return out, nil
}

// plainName writes a name as the name of a column.
func plainName(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, text), "_")
}

// Show writes a value of the metric.
func (m *Metric) Show(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 1):
		return "never"
	}
	return m.kind.show(v)
}

// interval writes an estimate over seeds.
func (m *Metric) interval(e stats.Estimate) string {
	if e.R < 2 || math.IsInf(e.V, 0) || math.IsNaN(e.V) {
		return m.Show(e.V)
	}
	return fmt.Sprintf("%s [%s, %s]", m.Show(e.V), m.Show(math.Max(0, e.Lo)), m.Show(e.Hi))
}

// difference writes a difference of two levels, which may be below 0 on some seeds.
func (m *Metric) difference(e stats.Estimate) string {
	if e.R < 2 || math.IsInf(e.V, 0) || math.IsNaN(e.V) {
		return m.Show(e.V)
	}
	signed := func(v float64) string {
		if v < 0 {
			return "−" + m.Show(-v)
		}
		return m.Show(v)
	}
	return fmt.Sprintf("%s [%s, %s]", signed(e.V), signed(e.Lo), signed(e.Hi))
}
