package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"slosim/internal/report"
	"slosim/sim/clock"
)

// Summary is what a comparison reads of a run's summary.json.
type Summary struct {
	Dir string `json:"-"`

	Schema     string `json:"schema"`
	Experiment struct {
		Name     string  `json:"name"`
		Title    string  `json:"title"`
		Hash     string  `json:"hash"`
		Start    float64 `json:"start_s"`
		Duration float64 `json:"duration_s"`
		Warmup   float64 `json:"warmup_s"`
	} `json:"experiment"`
	Seed         uint64 `json:"seed"`
	Replications int    `json:"replications"`
	Version      string `json:"version"`
	Partial      bool   `json:"partial"`
	Verdict      struct {
		Status string `json:"status"`
		Reason string `json:"reason"`
	} `json:"verdict"`
	Phases []struct {
		Name    string `json:"name"`
		Classes []struct {
			Class  string      `json:"class"`
			Cohort string      `json:"cohort"`
			N      int64       `json:"n"`
			TTFT   summaryDist `json:"ttft_s"`
			TPOT   summaryDist `json:"tpot_s"`
			E2E    summaryDist `json:"e2e_s"`
		} `json:"classes"`
	} `json:"phases"`
	SLOs []struct {
		Name     string   `json:"name"`
		Status   string   `json:"status"`
		Attained *summary `json:"attained"`
		Target   float64  `json:"target"`
		Budget   struct {
			Spent *summary `json:"spent"`
			Marks []struct {
				Pct  float64 `json:"pct"`
				When string  `json:"when"`
			} `json:"marks"`
		} `json:"budget"`
	} `json:"slos"`
	Pools []struct {
		Name        string   `json:"name"`
		GPUs        int      `json:"gpus"`
		PeakLoad    *float64 `json:"peak_load"`
		USDPerMonth *float64 `json:"per_month_usd"`
		EnergyKWh   *float64 `json:"energy_kwh"`
	} `json:"pools"`
	Assumptions []string `json:"assumptions"`
}

type summaryDist struct {
	P50 *summary `json:"p50"`
	P99 *summary `json:"p99"`
}

// summary is a figure with its interval; null where there is none.
type summary struct {
	V  *float64 `json:"v"`
	Lo *float64 `json:"lo"`
	Hi *float64 `json:"hi"`
}

func (s *summary) text(write func(float64) string) string {
	switch {
	case s == nil:
		return "–"
	case s.V == nil:
		return "never"
	case s.Lo == nil || s.Hi == nil:
		return write(*s.V)
	}
	return write(*s.V) + " [" + write(*s.Lo) + ", " + write(*s.Hi) + "]"
}

// ReadSummary reads the summary of a finished run: of its folder or of the file.
func ReadSummary(path string) (*Summary, error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		file = filepath.Join(path, "summary.json")
	}
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no summary.json\n  allowed: the folder of a finished run\n  for example: sim run prompt-growth, then its folder out/prompt-growth", path)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	s := &Summary{Dir: path}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s is no summary of a run: %w", file, err)
	}
	if !strings.HasPrefix(s.Schema, "slosim.summary/") {
		return nil, fmt.Errorf("%s is no summary of a run: its schema is %q\n  allowed: slosim.summary/1", file, s.Schema)
	}
	return s, nil
}

// differences are reasons not to take the runs' differences at face value.
func differences(runs []*Summary) []string {
	var out []string
	first := runs[0]
	for _, r := range runs[1:] {
		say := func(what string, a, b any) {
			out = append(out, fmt.Sprintf("%s and %s differ in %s: %v against %v.", first.Dir, r.Dir, what, a, b))
		}
		if r.Seed != first.Seed {
			say("their seed (no common random numbers: part of any difference is chance)", first.Seed, r.Seed)
		}
		if r.Replications != first.Replications {
			say("the number of replications", first.Replications, r.Replications)
		}
		if r.Version != first.Version {
			say("the version of sim", first.Version, r.Version)
		}
		if r.Schema != first.Schema {
			say("the layout of their summary", first.Schema, r.Schema)
		}
		if r.Experiment.Start != first.Experiment.Start || r.Experiment.Duration != first.Experiment.Duration || r.Experiment.Warmup != first.Experiment.Warmup {
			say("the span that they cover", span(first), span(r))
		}
		if strings.Join(r.Assumptions, "\n") != strings.Join(first.Assumptions, "\n") {
			say("what they assume (catalogue or settings)", len(first.Assumptions), len(r.Assumptions))
		}
		if r.Experiment.Hash == first.Experiment.Hash {
			out = append(out, fmt.Sprintf("%s and %s are the same experiment.", first.Dir, r.Dir))
		}
	}
	for _, r := range runs {
		if r.Partial {
			out = append(out, r.Dir+" was interrupted: it covers only a part of its span.")
		}
	}
	return out
}

func span(s *Summary) string {
	text := func(s float64) string { return report.Span(clock.FromSeconds(s)) }
	return fmt.Sprintf("%s from %s on, pre-roll %s", text(s.Experiment.Duration), text(s.Experiment.Start), text(s.Experiment.Warmup))
}

// Compare prints finished runs side by side.
func Compare(w io.Writer, runs []*Summary) {
	head := []string{"figure"}
	for _, r := range runs {
		head = append(head, r.Dir)
	}
	grid := func(caption string) *report.Grid { return &report.Grid{Caption: caption, Left: 1, Head: head} }
	row := func(g *report.Grid, name string, of func(*Summary) string) {
		cells := []string{name}
		some := false
		for _, r := range runs {
			x := of(r)
			some = some || x != "–"
			cells = append(cells, x)
		}
		if some {
			g.Rows = append(g.Rows, cells)
		}
	}
	g := grid("Runs")
	row(g, "experiment", func(s *Summary) string { return s.Experiment.Name })
	row(g, "verdict", func(s *Summary) string { return s.Verdict.Status })
	g.Print(w)

	g = grid("SLOs, last phase")
	for _, name := range names(runs, func(s *Summary) (out []string) {
		for _, o := range s.SLOs {
			out = append(out, o.Name)
		}
		return out
	}) {
		row(g, name, func(s *Summary) string {
			for _, o := range s.SLOs {
				if o.Name == name {
					return o.Status + " " + o.Attained.text(percent)
				}
			}
			return "–"
		})
		row(g, "  budget spent", func(s *Summary) string {
			for _, o := range s.SLOs {
				if o.Name == name {
					return o.Budget.Spent.text(percent)
				}
			}
			return "–"
		})
		row(g, "  all of it gone", func(s *Summary) string {
			for _, o := range s.SLOs {
				for _, m := range o.Budget.Marks {
					if o.Name == name && m.Pct == 100 && m.When != "" {
						return m.When
					}
				}
			}
			return "–"
		})
	}
	g.Print(w)

	g = grid("Latency, last phase")
	for _, name := range names(runs, func(s *Summary) (out []string) {
		for _, c := range s.Phases[len(s.Phases)-1].Classes {
			out = append(out, c.Class+"\x00"+c.Cohort)
		}
		return out
	}) {
		class, cohort, _ := strings.Cut(name, "\x00")
		for _, m := range []string{"TTFT P50", "TTFT P99", "TPOT P50", "E2E P99"} {
			row(g, strings.Join([]string{class, cohort, m}, " "), func(s *Summary) string {
				for _, c := range s.Phases[len(s.Phases)-1].Classes {
					if c.Class == class && c.Cohort == cohort {
						return map[string]*summary{"TTFT P50": c.TTFT.P50, "TTFT P99": c.TTFT.P99, "TPOT P50": c.TPOT.P50, "E2E P99": c.E2E.P99}[m].text(seconds)
					}
				}
				return "–"
			})
		}
	}
	g.Print(w)

	g = grid("Pools")
	row(g, "GPUs", func(s *Summary) string {
		n := 0
		for _, p := range s.Pools {
			n += p.GPUs
		}
		return report.Whole(int64(n))
	})
	row(g, "cost per month", func(s *Summary) string {
		sum := 0.0
		for _, p := range s.Pools {
			if p.USDPerMonth == nil {
				return "–"
			}
			sum += *p.USDPerMonth
		}
		return money(sum)
	})
	row(g, "highest peak load", func(s *Summary) string {
		most := math.NaN()
		for _, p := range s.Pools {
			if p.PeakLoad != nil && !(*p.PeakLoad < most) {
				most = *p.PeakLoad
			}
		}
		return percent(most)
	})
	row(g, "GPU energy, kWh", func(s *Summary) string {
		sum := 0.0
		for _, p := range s.Pools {
			if p.EnergyKWh == nil {
				return "–"
			}
			sum += *p.EnergyKWh
		}
		return report.Number(sum)
	})
	g.Print(w)
	for _, d := range differences(runs) {
		fmt.Fprintln(w, "warning: "+d)
	}
}

// names collects names of all runs in order of their first appearance.
func names(runs []*Summary, of func(*Summary) []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, r := range runs {
		if len(r.Phases) == 0 {
			continue
		}
		for _, n := range of(r) {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
	}
	return out
}
