package report

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"

	"slosim/sim"
)

// column is one column of a CSV file: its name with the unit last, and its
// values, one per window.
type column[T any] struct {
	name string
	of   func(*T) []float64
}

// classColumns of timeseries.csv, after t_s, time, class and cohort. Values are
// means over replications; bad_share counts events that miss any TTFT objective
// of the class; ttft_p99_lo_s and _hi_s are the smallest and the largest
// replication. An empty field has no data; "inf" is a quantile among requests
// that were never answered.
var classColumns = []column[sim.ClassSeries]{
	{"arrivals_per_s", func(c *sim.ClassSeries) []float64 { return c.Arrivals }},
	{"completions_per_s", func(c *sim.ClassSeries) []float64 { return c.Completions }},
	{"bad_share", func(c *sim.ClassSeries) []float64 { return c.Bad }},
	{"ttft_p50_s", func(c *sim.ClassSeries) []float64 { return c.TTFTP50 }},
	{"ttft_p99_s", func(c *sim.ClassSeries) []float64 { return c.TTFTP99 }},
	{"ttft_p99_lo_s", func(c *sim.ClassSeries) []float64 { return c.TTFTP99Lo }},
	{"ttft_p99_hi_s", func(c *sim.ClassSeries) []float64 { return c.TTFTP99Hi }},
	{"tpot_p50_s", func(c *sim.ClassSeries) []float64 { return c.TPOTP50 }},
	{"tpot_p99_s", func(c *sim.ClassSeries) []float64 { return c.TPOTP99 }},
	{"network_s", func(c *sim.ClassSeries) []float64 { return c.Network }},
	{"queue_s", func(c *sim.ClassSeries) []float64 { return c.Queue }},
	{"prefill_s", func(c *sim.ClassSeries) []float64 { return c.Prefill }},
	{"publish_s", func(c *sim.ClassSeries) []float64 { return c.Publish }},
	{"prompt_p50_tokens", func(c *sim.ClassSeries) []float64 { return c.PromptP50 }},
	{"prompt_p90_tokens", func(c *sim.ClassSeries) []float64 { return c.PromptP90 }},
	{"prompt_p99_tokens", func(c *sim.ClassSeries) []float64 { return c.PromptP99 }},
}

// poolColumns of timeseries-pools.csv, after t_s, time and pool. Requests, KV
// shares, clock, power and temperature are per replica or GPU (mean, or the
// largest where the name says max); split_* are shares of the step time.
var poolColumns = []column[sim.PoolSeries]{
	{"running", func(p *sim.PoolSeries) []float64 { return p.Running }},
	{"waiting", func(p *sim.PoolSeries) []float64 { return p.Waiting }},
	{"kv_share", func(p *sim.PoolSeries) []float64 { return p.KVUse }},
	{"kv_max_share", func(p *sim.PoolSeries) []float64 { return p.KVMax }},
	{"preemptions_per_s", func(p *sim.PoolSeries) []float64 { return p.Preempt }},
	{"busy_share", func(p *sim.PoolSeries) []float64 { return p.Busy }},
	{"clock_mhz", func(p *sim.PoolSeries) []float64 { return p.ClockMHz }},
	{"power_w", func(p *sim.PoolSeries) []float64 { return p.PowerW }},
	{"temp_c", func(p *sim.PoolSeries) []float64 { return p.TempC }},
	{"temp_max_c", func(p *sim.PoolSeries) []float64 { return p.TempMaxC }},
	{"split_gemm", split(func(x sim.StepSplit) float64 { return x.Gemm })},
	{"split_attention", split(func(x sim.StepSplit) float64 { return x.Attn })},
	{"split_collectives", split(func(x sim.StepSplit) float64 { return x.Comm })},
	{"split_small_ops", split(func(x sim.StepSplit) float64 { return x.Small })},
	{"split_head", split(func(x sim.StepSplit) float64 { return x.Head })},
	{"split_host", split(func(x sim.StepSplit) float64 { return x.Host })},
	{"serving", func(p *sim.PoolSeries) []float64 { return p.Serving }},
	{"paid", func(p *sim.PoolSeries) []float64 { return p.Paid }},
}

func split(part func(sim.StepSplit) float64) func(*sim.PoolSeries) []float64 {
	return func(p *sim.PoolSeries) []float64 {
		out := make([]float64, len(p.Split))
		for i, x := range p.Split {
			out[i] = part(x)
		}
		return out
	}
}

// get returns v[i], or NaN where a series has no such window.
func get(v []float64, i int) float64 {
	if i >= len(v) {
		return math.NaN()
	}
	return v[i]
}

// classCSV writes one row per window, class and cohort. The share of prompts per
// length bucket follows the columns above, for the cohort "all" only.
func classCSV(s *story) ([]byte, error) {
	columns := slices.Clone(classColumns)
	for k := range len(sim.PromptEdges) + 1 {
		columns = append(columns, column[sim.ClassSeries]{mixName(k), func(c *sim.ClassSeries) []float64 { return mixOf(c, k) }})
	}
	return table(s, s.r.Series.Classes, []string{"class", "cohort"}, columns,
		func(c *sim.ClassSeries) []string { return []string{c.Class, c.Cohort} })
}

// poolCSV writes one row per window and pool.
func poolCSV(s *story) ([]byte, error) {
	return table(s, s.r.Series.Pools, []string{"pool"}, poolColumns,
		func(p *sim.PoolSeries) []string { return []string{p.Name} })
}

// table writes the rows of all series, window by window.
func table[T any](s *story, series []T, keys []string, columns []column[T], key func(*T) []string) ([]byte, error) {
	head := append([]string{"t_s", "time"}, keys...)
	for _, c := range columns {
		head = append(head, c.name)
	}
	values := make([][][]float64, len(series))
	for j := range series {
		for _, c := range columns {
			values[j] = append(values[j], c.of(&series[j]))
		}
	}
	rows := [][]string{head}
	for i, t := range s.r.Series.T {
		for j := range series {
			row := append([]string{csvNumber(t.Seconds()), s.label(t)}, key(&series[j])...)
			for _, v := range values[j] {
				row = append(row, csvNumber(get(v, i)))
			}
			rows = append(rows, row)
		}
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// mixOf is the share of prompts in bucket k over time.
func mixOf(c *sim.ClassSeries, k int) []float64 {
	out := make([]float64, len(c.PromptMix))
	for i, shares := range c.PromptMix {
		out[i] = get(shares, k)
	}
	return out
}

// mixName names a bucket by its upper edge: "prompt_le_2000_share".
func mixName(k int) string {
	if k == len(sim.PromptEdges) {
		return "prompt_longer_share"
	}
	return "prompt_le_" + strconv.FormatFloat(sim.PromptEdges[k], 'f', -1, 64) + "_share"
}

// csvNumber writes nine significant digits; NaN is an empty field.
func csvNumber(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	if math.IsInf(v, 1) {
		return "inf"
	}
	return strconv.FormatFloat(v, 'g', 9, 64)
}
