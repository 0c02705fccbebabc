package report

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"slosim/sim"
	"slosim/sim/clock"
)

// sourceView is the page's last section: what the numbers rest on.
type sourceView struct {
	Run         []pair
	Assumptions []string
	NotModelled []string
	Catalogue   *tableView // figures with their source
	Settings    *tableView // every setting with its origin
	Files       []pair
	Licences    []pair
}

type pair struct{ Name, Value string }

func (s *story) source() sourceView {
	v := sourceView{Run: s.runFacts(), Catalogue: s.catalogue(), Settings: s.settings(), Licences: licences(),
		Files: []pair{
			{"summary.json", "every number of this page with interval, n and replications; times in seconds"},
			{"summary.md", "the verdict for a pull request"},
			{"timeseries.csv", "one row per window, class and cohort; units are last in the column names; empty = no data, inf = never answered"},
			{"timeseries-pools.csv", "one row per window and pool: requests, KV cache, clock, power, temperature, step-time shares"},
		}}
	for _, a := range s.r.Experiment.Assumptions {
		v.Assumptions = append(v.Assumptions, clean(a))
	}
	for _, n := range s.r.NotModelled {
		v.NotModelled = append(v.NotModelled, clean(n))
	}
	return v
}

// runFacts say how the run was carried out.
func (s *story) runFacts() []pair {
	e := s.r.Experiment
	var seeds []string
	for _, seed := range s.r.Seeds[:min(20, len(s.r.Seeds))] {
		seeds = append(seeds, strconv.FormatUint(seed, 10))
	}
	if len(s.r.Seeds) > 20 {
		seeds = append(seeds, "…")
	}
	out := []pair{
		{"replay", clean(s.m.Command)}, {"version", clean(s.m.Version)}, {"experiment", s.experimentName()},
		{"seeds", fmt.Sprintf("%s (%s)", strings.Join(seeds, ", "), plural(len(s.r.Seeds), "replication"))},
		{"span", fmt.Sprintf("%s from %s; %s of warm-up before it are simulated and not counted", span(clock.Duration(s.r.End)), clock.Time(0).Label(e.Start), span(e.Warmup))},
		{"windows", fmt.Sprintf("%s of %s", count(len(s.r.Series.T)), span(s.r.Series.Width))},
		{"intervals", "95 % Student-t over replications with independent seeds"},
		{"simulated", fmt.Sprintf("%s requests, %s engine steps, all replications", count(s.r.Requests), count(s.r.Steps))},
	}
	if h := s.hash(); h != "" {
		out = append(out, pair{"hash", h})
	}
	if p := s.m.Provenance; p != nil && len(p.Sets) > 0 {
		out = append(out, pair{"--set", clean(strings.Join(p.Sets, "  "))})
	}
	return out
}

func (s *story) experimentName() string {
	if p := s.m.Provenance; p != nil && p.File != "" {
		return clean(p.File)
	}
	return clean(s.r.Experiment.Name)
}

// settings is the complete experiment with the origin of each value.
func (s *story) settings() *tableView {
	if s.m.Provenance == nil || len(s.m.Provenance.Entries) == 0 {
		return nil
	}
	t := &tableView{Head: []cell{text("setting"), text("value"), text("from"), text("note")}}
	for _, e := range s.m.Provenance.Entries {
		t.Rows = append(t.Rows, []cell{text(clean(e.Path)), text(clean(e.Value)), text(clean(e.Origin)), text(clean(e.Note))})
	}
	return t
}

// catalogue lists the models and GPUs of all pools with their figures' sources.
func (s *story) catalogue() *tableView {
	t := &tableView{Head: []cell{text("of"), text("figure"), text("value"), text("source")}}
	seen := map[string]bool{}
	for i := range s.r.Experiment.Pools {
		p := &s.r.Experiment.Pools[i]
		for _, rows := range [][][]cell{llmRows(p), gpuRows(p)} {
			if len(rows) > 0 && !seen[rows[0][0].Text] {
				seen[rows[0][0].Text] = true
				t.Rows = append(t.Rows, rows...)
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

func llmRows(p *sim.Pool) [][]cell {
	m := p.Deployment.LLM
	if m.Name == "" {
		return nil
	}
	shape := fmt.Sprintf("%d layers, hidden %s, %d heads (%d for KV) of %d, intermediate %s, vocabulary %s, context %s",
		m.Layers, count(m.Hidden), m.Heads, m.KVHeads, m.HeadDim, count(m.Intermediate), count(m.Vocab), count(m.MaxModelLen))
	return [][]cell{{text(clean(m.Name)), text("shape"), text(shape), text(clean(m.Source))}}
}

// gpuRows shows the data sheet's figures, then every other figure that has a
// source of its own.
func gpuRows(p *sim.Pool) [][]cell {
	g := p.Deployment.GPU
	if g.Name == "" {
		return nil
	}
	values := map[string]string{
		"memory_mib": count(g.MemoryMiB) + " MiB", "bandwidth_gbs": number(g.BandwidthGBs, 0) + " GB/s", "nvlink_gbs": number(g.NVLinkGBs, 0) + " GB/s",
		"tdp_w": number(g.TDPW, 0) + " W", "max_clock_mhz": count(g.MaxClockMHz) + " MHz", "max_temp_c": number(g.MaxTempC, 0) + " °C",
		"peak_bf16_tflops": number(g.PeakBF16TFLOPS, 0) + " TFLOP/s", "peak_fp8_tflops": number(g.PeakFP8TFLOPS, 0) + " TFLOP/s",
	}
	keys := slices.Sorted(maps.Keys(values))
	for _, k := range slices.Sorted(maps.Keys(g.Sources)) {
		if _, ok := values[k]; !ok {
			keys = append(keys, k)
		}
	}
	var rows [][]cell
	for _, k := range keys {
		rows = append(rows, []cell{text(clean(g.Name)), text(clean(k)), text(values[k]), text(clean(g.Sources[k]))})
	}
	return rows
}

// licences are the notices of what the page carries.
func licences() []pair {
	var out []pair
	for _, name := range []string{"VERSIONS", "NOTICE", "LICENSE", "LICENSE-d3", "LICENSE-zrender"} {
		data, err := fs.ReadFile(assets, "assets/echarts/"+name)
		if err == nil {
			out = append(out, pair{name, string(data)})
		}
	}
	return out
}
