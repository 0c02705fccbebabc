package accuracy

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"slosim/internal/measured"
)

// The text of a comparison: for the terminal and for docs/validation.md. Both are
// Markdown tables; errors are signed, in percent of the measured figure.

// percent writes a signed error.
func percent(v float64) string {
	switch {
	case math.Abs(v) >= 9.995:
		return fmt.Sprintf("%+.0f×", v+1)
	case math.Abs(v) >= .1:
		return fmt.Sprintf("%+.0f %%", 100*v)
	}
	return fmt.Sprintf("%+.1f %%", 100*v)
}

func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// writeBars writes the table of goals.
func writeBars(w io.Writer, bars []Bar) {
	fmt.Fprintln(w, "| goal | limit | reached | of | |\n|---|---|---|---|---|")
	for _, b := range bars {
		limit, reached := share(b.Limit), share(b.Reached)
		if b.Unit != "" {
			limit, reached = fmt.Sprintf("%.0f %s", b.Limit, b.Unit), fmt.Sprintf("%.0f %s", b.Reached, b.Unit)
			if b.Reached > 9 {
				reached = "never"
			}
		}
		mark := "met"
		if !b.Met {
			mark = "**missed**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %d | %s |\n", b.Name, limit, reached, b.N, mark)
	}
}

// detailed are the sources whose runs are shown one by one, with their columns.
var detailed = []struct {
	source, title string
	metrics       []string
}{
	{"residency", "residency: Qwen3-14B on one H100, vLLM 0.23, ten minutes each", []string{measured.TTFTMean, measured.TTFTP50, measured.TTFTP99, measured.TPOTMean, measured.TPOTP99, measured.E2EMean, measured.Served}},
	{"replay16", "replay16: prefix cache, vLLM 0.15.1, ten minutes per stage", []string{measured.TTFTMean, measured.TTFTP50, measured.TTFTP90, measured.TTFTP99, measured.TPOTMean, measured.TPOTP99, measured.E2EMean}},
	{"nim", "nim: NVIDIA NIM 1.8 (TensorRT-LLM), closed loop", []string{measured.TTFTMean, measured.TPOTMean, measured.TokenRate}},
	{"trtllm", "trtllm: saturation throughput", []string{measured.TokenRate}},
	{"mlenergy", "mlenergy: steady batches, vLLM 0.11.1", []string{measured.ITLP50, measured.ITLP99}},
	{"user", "runs", []string{measured.TTFTMean, measured.TTFTP50, measured.TTFTP99, measured.TPOTMean, measured.TPOTP99, measured.E2EMean, measured.Served}},
}

// writeRuns writes one source's runs, a line each: signed errors, with the noise
// of the measured figure where it is known.
func writeRuns(w io.Writer, rows []Row, metrics []string) {
	metrics = slices.DeleteFunc(slices.Clone(metrics), func(m string) bool {
		return !slices.ContainsFunc(rows, func(r Row) bool { return r.Metric == m && r.Error != nil })
	})
	fmt.Fprintf(w, "| run | %s |\n|---|%s\n", strings.Join(metrics, " | "), strings.Repeat("---|", len(metrics)))
	for _, run := range splitBy(rows, func(r *Row) string { return r.Run + "\x00" + r.Phase }) {
		cells := make([]string, len(metrics))
		any := false
		for _, r := range run {
			k := slices.Index(metrics, r.Metric)
			if k < 0 || r.Error == nil {
				continue
			}
			any = true
			cells[k] = percent(*r.Error)
			if r.NoiseLo != nil {
				cells[k] += fmt.Sprintf(" (%+.1f/%+.1f)", 100**r.NoiseLo, 100**r.NoiseHi)
			}
		}
		if !any {
			continue
		}
		name := run[0].Run
		if run[0].Phase != "" {
			name += ", " + run[0].Phase
		}
		if run[0].Fitted {
			name += " *(fitted)*"
		}
		if run[0].Saturated {
			name += " *(saturated)*"
		}
		fmt.Fprintf(w, "| %s | %s |\n", name, strings.Join(cells, " | "))
	}
}

// summary is a group's errors in one metric.
type summary struct {
	group               string
	n                   int
	median, bias, worst float64
	worstRun            string
}

// summaries of all groups of a source, by metric.
func summaries(rows []Row, metric string) []summary {
	var out []summary
	for _, g := range byGroup(rows) {
		s := summary{group: g[0].Group}
		var signed []float64
		var mine []Row
		for _, r := range g {
			if r.Metric != metric || r.Error == nil {
				continue
			}
			mine = append(mine, r)
			signed = append(signed, *r.Error)
			if math.Abs(*r.Error) >= math.Abs(s.worst) {
				s.worst, s.worstRun = *r.Error, r.Run
			}
		}
		if len(mine) == 0 {
			continue
		}
		slices.Sort(signed)
		s.n, s.bias = len(mine), measured.Quantile(signed, .5)
		s.median, _ = median(mine)
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b summary) int { return cmp.Compare(a.group, b.group) })
	return out
}

func writeGroups(w io.Writer, rows []Row, metrics ...string) {
	fmt.Fprintln(w, "| group | metric | runs | median of the absolute error | median error | worst |\n|---|---|---|---|---|---|")
	for _, m := range metrics {
		for _, s := range summaries(rows, m) {
			fmt.Fprintf(w, "| %s | %s | %d | %s | %s | %s |\n", s.group, m, s.n, share(s.median), percent(s.bias), percent(s.worst))
		}
	}
}

// writeReasons counts what was not simulated, and why.
func writeReasons(w io.Writer, rows []Row) {
	type reason struct{ source, text string }
	counts := map[reason]int{}
	var order []reason
	seen := map[string]bool{}
	for _, r := range rows {
		if r.Error != nil || seen[r.Source+r.Run] {
			continue
		}
		seen[r.Source+r.Run] = true
		k := reason{r.Source, r.Reason}
		if counts[k] == 0 {
			order = append(order, k)
		}
		counts[k]++
	}
	if len(order) == 0 {
		fmt.Fprintln(w, "Every run was simulated.")
		return
	}
	slices.SortStableFunc(order, func(a, b reason) int { return cmp.Compare(counts[b], counts[a]) })
	fmt.Fprintln(w, "| source | runs | not simulated because |\n|---|---|---|")
	for _, k := range order {
		fmt.Fprintf(w, "| %s | %d | %s |\n", k.source, counts[k], k.text)
	}
}

// worstRows are the rows with the largest absolute errors, fitted ones left out.
func worstRows(rows []Row, n int) []Row {
	var list []Row
	for _, r := range rows {
		if r.Error != nil && !r.Fitted && !r.Saturated {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b Row) int { return cmp.Compare(math.Abs(*b.Error), math.Abs(*a.Error)) })
	return list[:min(n, len(list))]
}

func writeWorst(w io.Writer, rows []Row, n int) {
	fmt.Fprintln(w, "| source | run | metric | error |\n|---|---|---|---|")
	for _, r := range worstRows(rows, n) {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.Source, strings.TrimSpace(r.Run+" "+r.Phase), r.Metric, percent(*r.Error))
	}
}

// of returns the rows of a source.
func of(rows []Row, source string) []Row {
	var out []Row
	for _, r := range rows {
		if r.Source == source {
			out = append(out, r)
		}
	}
	return out
}
