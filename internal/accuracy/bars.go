package accuracy

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"slosim/internal/measured"
)

// Bar is a goal of accuracy and what was reached.
type Bar struct {
	Name    string  `json:"name"`
	Limit   float64 `json:"limit"`   // of the absolute error; of rows for "take-off"
	Reached float64 `json:"reached"` // likewise
	N       int     `json:"n"`       // rows, or groups, it was judged on
	Met     bool    `json:"met"`
	Unit    string  `json:"unit,omitempty"` // "rows"; "" = a share
}

// goal is a bar before it is judged.
type goal struct {
	name  string
	limit float64
	pick  func(r *Row) bool
	judge func(rows []Row) (float64, int)
	unit  string
}

// goals are the bars of the project, in the order of its table.
func goals() []goal {
	residency := func(load, metric string) func(*Row) bool {
		return func(r *Row) bool {
			return r.Source == "residency" && r.load == load && !r.Saturated && r.Metric == metric
		}
	}
	replay := func(metric string) func(*Row) bool {
		return func(r *Row) bool {
			return r.Source == "replay16" && r.Phase != "" && !r.Saturated && r.Metric == metric
		}
	}
	closed := func(metric string, moe bool, engines ...string) func(*Row) bool {
		return func(r *Row) bool {
			return r.Source == "inferencex" && r.moe == moe && r.Metric == metric && slices.Contains(engines, r.Engine)
		}
	}
	nim := func(metric string, most int) func(*Row) bool {
		return func(r *Row) bool {
			return r.Source == "nim" && strings.Contains(strings.ToLower(r.Group), "8b") && r.Metric == metric && r.concurrency <= most
		}
	}
	return []goal{
		{"residency, even prompts, below saturation: TTFT mean, worst run", .03, residency("even", measured.TTFTMean), worst, ""},
		{"residency, even prompts: TTFT P50, worst run", .02, residency("even", measured.TTFTP50), worst, ""},
		{"residency, even prompts: TTFT P99, worst run", .08, residency("even", measured.TTFTP99), worst, ""},
		{"residency, even prompts: TPOT mean, worst run", .02, residency("even", measured.TPOTMean), worst, ""},
		{"residency, even prompts: E2E mean, worst run", .02, residency("even", measured.E2EMean), worst, ""},
		{"residency, mixed prompts: TTFT mean, worst run", .06, residency("mixed", measured.TTFTMean), worst, ""},
		{"residency, mixed prompts: TTFT P99, worst run", .11, residency("mixed", measured.TTFTP99), worst, ""},
		{"residency, mixed prompts: TPOT mean, worst run", .04, residency("mixed", measured.TPOTMean), worst, ""},
		{"residency, saturated: requests/s, worst run", .03, func(r *Row) bool { return r.Source == "residency" && r.Metric == measured.Served }, worst, ""},
		{"replay16, stages below saturation: TTFT P50, worst", .05, replay(measured.TTFTP50), worst, ""},
		{"replay16, stages below saturation: TPOT mean, worst", .04, replay(measured.TPOTMean), worst, ""},
		{"inferencex dense, vLLM: TPOT, median", .04, closed(measured.TPOTMean, false, "vllm"), median, ""},
		{"inferencex dense, vLLM: TPOT, worst group's median", .10, closed(measured.TPOTMean, false, "vllm"), worstGroup, ""},
		{"inferencex dense, vLLM: TTFT, median", .08, closed(measured.TTFTMean, false, "vllm"), median, ""},
		{"inferencex dense, TensorRT-LLM: TPOT, median", .08, closed(measured.TPOTMean, false, "trtllm"), median, ""},
		{"inferencex dense, SGLang: TPOT, median", .08, closed(measured.TPOTMean, false, "sglang"), median, ""},
		{"inferencex MoE: TPOT, median", .15, closed(measured.TPOTMean, true, "vllm", "trtllm", "sglang"), median, ""},
		{"nim 8B: ITL, median of rows with C <= 100", .06, nim(measured.TPOTMean, 100), median, ""},
		{"nim 8B: plateau of output tokens/s, median of workloads", .05, nim(measured.TokenRate, math.MaxInt), plateau, ""},
		{"nim 8B: row where TTFT takes off, worst workload", 1, nim(measured.TTFTMean, math.MaxInt), takeOff, "rows"},
		{"KV pools: blocks, worst", .03, func(r *Row) bool { return r.Metric == measured.PoolBlocks }, worst, ""},
		{"mlenergy dense: median ITL, median of rows", .08, func(r *Row) bool { return r.Source == "mlenergy" && !r.moe && r.Metric == measured.ITLP50 }, median, ""},
	}
}

// Judge compares rows with the bars. Rows that constants were fitted on, and rows
// that were not simulated, do not count; bars without any row are left out.
func Judge(rows []Row) []Bar {
	var bars []Bar
	for _, g := range goals() {
		var mine []Row
		for i := range rows {
			if r := &rows[i]; r.Error != nil && !r.Fitted && g.pick(r) {
				mine = append(mine, *r)
			}
		}
		if len(mine) == 0 {
			continue
		}
		v, n := g.judge(mine)
		bars = append(bars, Bar{Name: g.name, Limit: g.limit, Reached: v, N: n, Met: v <= g.limit, Unit: g.unit})
	}
	return bars
}

// absErrors returns the sorted absolute errors.
func absErrors(rows []Row) []float64 {
	var list []float64
	for i := range rows {
		if rows[i].Error != nil {
			list = append(list, math.Abs(*rows[i].Error))
		}
	}
	slices.Sort(list)
	return list
}

func worst(rows []Row) (float64, int) {
	list := absErrors(rows)
	return list[len(list)-1], len(list)
}

func median(rows []Row) (float64, int) {
	list := absErrors(rows)
	return measured.Quantile(list, .5), len(list)
}

// worstGroup returns the largest of the groups' medians.
func worstGroup(rows []Row) (float64, int) {
	most := 0.0
	groups := byGroup(rows)
	for _, g := range groups {
		m, _ := median(g)
		most = max(most, m)
	}
	return most, len(groups)
}

// byGroup splits rows by group, in order of appearance.
func byGroup(rows []Row) [][]Row { return splitBy(rows, func(r *Row) string { return r.Group }) }

func splitBy(rows []Row, key func(*Row) string) [][]Row {
	at := map[string]int{}
	var out [][]Row
	for i := range rows {
		k := key(&rows[i])
		if _, ok := at[k]; !ok {
			at[k] = len(out)
			out = append(out, nil)
		}
		out[at[k]] = append(out[at[k]], rows[i])
	}
	return out
}

// sweeps splits the rows of a closed-loop sweep by what is before the
// concurrency in their names, each in order of concurrency.
func sweeps(rows []Row) [][]Row {
	out := splitBy(rows, func(r *Row) string { return r.Run[:strings.LastIndex(r.Run, " ")+1] })
	for _, w := range out {
		slices.SortStableFunc(w, func(a, b Row) int { return cmp.Compare(a.concurrency, b.concurrency) })
	}
	return out
}

// plateau returns the median error of the workloads' highest throughputs.
func plateau(rows []Row) (float64, int) {
	var errs []float64
	for _, w := range sweeps(rows) {
		var m, p float64
		for _, r := range w {
			m, p = max(m, r.Measured), max(p, *r.Predicted)
		}
		errs = append(errs, math.Abs(p/m-1))
	}
	slices.Sort(errs)
	return measured.Quantile(errs, .5), len(errs)
}

// jump is the growth of TTFT from one row of a sweep to the next from which on it
// has taken off: queueing, not prefill.
const jump = 2.5

// takeOff returns by how many rows the predicted take-off of TTFT lies apart from
// the measured one, for the worst workload that has one.
func takeOff(rows []Row) (float64, int) {
	most, n := 0, 0
	for _, w := range sweeps(rows) {
		m := firstJump(w, func(r *Row) float64 { return r.Measured })
		if m == len(w) {
			continue
		}
		n++
		p := firstJump(w, func(r *Row) float64 { return *r.Predicted })
		most = max(most, max(m-p, p-m))
	}
	return float64(most), n
}

// loaded is the concurrency from which on a sweep can take off: below it TTFT
// grows by the burst of the clients alone.
const loaded = 25

// firstJump returns the first row of the sweep at which TTFT jumps.
func firstJump(w []Row, of func(*Row) float64) int {
	for i := 1; i < len(w); i++ {
		if w[i-1].concurrency >= loaded && of(&w[i]) > jump*of(&w[i-1]) {
			return i
		}
	}
	return len(w)
}
