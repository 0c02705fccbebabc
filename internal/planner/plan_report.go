package planner

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"slosim/internal/report"
)

// money writes what a fleet costs.
func (p *Plan) money(v float64) string {
	if p.Spec.ByGPUs {
		return report.Number(v) + " GPUs"
	}
	return "$" + report.Number(v) + "/h"
}

func (p *Plan) headline() string {
	b := p.Best
	if b == nil {
		return "No candidate holds every SLO"
	}
	return fmt.Sprintf("%s: %s on %s, $%s an hour", b.Name, several(b.Replicas, "replica", "replicas"), several(b.GPUs, "GPU", "GPUs"), report.Number(b.Cost))
}

// reasons say how sure the answer is and what binds.
func (p *Plan) reasons() []string {
	b := p.Best
	if b == nil {
		return nil
	}
	out := []string{fmt.Sprintf("%s every SLO with %s confidence over %d seeds; TTFT P99 %s.", several(b.Needs, "replica holds", "replicas hold"), report.Percent(p.Spec.Confidence), p.Experiment.Replications, interval(b.P99))}
	if b.Replicas > b.Needs {
		out = append(out, fmt.Sprintf("%d more for redundancy (factor %s) and failures (%d).", b.Replicas-b.Needs, report.Number(math.Max(1, p.Spec.Redundancy)), p.Spec.Spare))
	}
	if b.Binding != "" {
		out = append(out, fmt.Sprintf("With a replica fewer, %s is missed: it is what binds.", b.Binding))
	} else if b.Needs > 1 {
		out = append(out, "One replica fewer is overloaded: the work itself binds.")
	}
	for _, f := range p.Fresh {
		held := several(f.Replicas, "replica holds", "replicas hold")
		if !f.Holds {
			held = several(f.Replicas, "replica", "replicas") + " did not hold"
		}
		out = append(out, fmt.Sprintf("On fresh seeds %s: %s attained %s.", held, f.Binding, report.Percent(f.Attained)))
	}
	if p.Spec.Spike > 1 {
		out = append(out, fmt.Sprintf("All of it at %s times the traffic.", report.Number(p.Spec.Spike)))
	}
	return out
}

// tables are the candidates, the prices and the front.
func (p *Plan) tables() []report.Grid {
	c := report.Grid{Caption: p.Experiment.Name + ": " + p.headline(), Head: []string{"candidate", "status", "needs", "replicas", "GPUs", "$ an hour", "TTFT P99", "why"}, Left: 2, Notes: p.reasons()}
	for _, x := range p.Candidates {
		row := []string{x.Name, x.Status, "–", "–", "–", "–", "–", x.Why}
		if x.Needs > 0 {
			row = []string{x.Name, x.Status, fmt.Sprint(x.Needs), fmt.Sprint(x.Replicas), fmt.Sprint(x.GPUs), report.Number(x.Cost), interval(x.P99), ""}
			if x.Binding != "" {
				row[7] = "binds: " + x.Binding
			}
		}
		c.Rows = append(c.Rows, row)
	}
	return []report.Grid{c, p.priceGrid(), p.frontGrid()}
}

func several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Grids are the tables for the terminal: none without a row, and in words what a narrow
// terminal has no column for: why a candidate is out.
func (p *Plan) Grids() []report.Grid {
	grids := p.tables()
	for _, x := range p.Candidates {
		if x.Needs == 0 && x.Why != "" {
			grids[0].Notes = append(grids[0].Notes, fmt.Sprintf("%s: %s: %s.", x.Name, x.Status, x.Why))
		}
	}
	return slices.DeleteFunc(grids, func(g report.Grid) bool { return len(g.Rows) == 0 })
}

func (p *Plan) priceGrid() report.Grid {
	g := report.Grid{Caption: "The price of each second: " + p.PriceOf, Head: []string{"threshold", "replicas", "$ an hour", "$ a month"}, Left: 0}
	for _, x := range p.Prices {
		row := []string{report.Seconds(x.Threshold), "none holds", "–", "–"}
		if x.Replicas > 0 {
			row = []string{report.Seconds(x.Threshold), fmt.Sprint(x.Replicas), report.Number(x.Cost), report.Number(x.Cost * 720)}
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

func (p *Plan) frontGrid() report.Grid {
	g := report.Grid{Caption: "Pareto front of cost against TTFT P99 (as simulated, without spares)", Head: []string{"candidate", "replicas", "cost", "TTFT P99", "SLOs"}, Left: 1}
	for _, t := range p.front() {
		g.Rows = append(g.Rows, []string{t.Candidate, fmt.Sprint(t.Replicas), p.money(t.Cost), interval(t.P99), met(t)})
	}
	return g
}

func met(t Trial) string {
	if t.Holds {
		return "met"
	}
	return "missed: " + t.Binding
}

func (p *Plan) front() []Trial {
	var out []Trial
	for _, t := range p.Trials {
		if t.Front {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b Trial) int { return less(a.Cost, b.Cost) })
	return out
}

func (p *Plan) ledgerGrid() report.Grid {
	g := report.Grid{Caption: "Every fleet that was simulated", Head: []string{"candidate", "replicas", "cost", "TTFT P99", "tightest attained", "SLOs"}, Left: 1}
	for _, t := range p.Trials {
		g.Rows = append(g.Rows, []string{t.Candidate, fmt.Sprint(t.Replicas), p.money(t.Cost), interval(t.P99), report.Percent(t.Attained), met(t)})
	}
	return g
}

// Document is the plan as a page.
func (p *Plan) Document(command string) *report.Document {
	d := &report.Document{Title: "Plan for " + p.Experiment.Name, Headline: p.headline(), Lead: strings.Join(p.reasons(), " "),
		Setting: fmt.Sprintf("%s, %s", several(len(p.Candidates), "candidate", "candidates"), several(p.Sims, "simulation", "simulations")), Command: command}
	if b := p.Best; b != nil {
		d.Facts = []report.Fact{{Label: "replicas", Value: fmt.Sprint(b.Replicas), Basis: fmt.Sprintf("%d needed", b.Needs)}, {Label: "GPUs", Value: fmt.Sprint(b.GPUs)},
			{Label: "a month", Value: "$" + report.Number(b.Cost*720), Basis: "30 days"}, {Label: "TTFT P99", Value: seconds(b.P99.V), Basis: interval(b.P99)}}
	}
	var names, labels []string
	var values []float64
	for _, t := range p.front() {
		names, labels, values = append(names, fmt.Sprintf("%s, %d replicas, %s", t.Candidate, t.Replicas, p.money(t.Cost))), append(labels, p.money(t.Cost)), append(values, t.P99.V)
	}
	grids := p.tables()
	d.Sections = []report.Section{{ID: "candidates", Title: "Candidates", Grids: grids[:1]}}
	if len(p.Prices) > 0 {
		d.Sections = append(d.Sections, report.Section{ID: "price", Title: "The price of each second", Grids: grids[1:2]})
	}
	front := report.Section{ID: "front", Title: "Cost against P99", Grids: grids[2:]}
	if len(values) > 1 {
		front.Plots = []report.Plot{{ID: "pareto", Title: "Pareto front", Aid: "TTFT P99 by cost", Unit: "s", Log: true, Names: names, Labels: labels, Below: "cost", Lines: []report.PlotLine{{Label: "TTFT P99", Unit: "s", Values: values, Colour: "--p99"}}}}
	}
	d.Sections = append(d.Sections, front, report.Section{ID: "ledger", Title: "Ledger", Grids: []report.Grid{p.ledgerGrid()}})
	return d
}

// Markdown writes the tables.
func (p *Plan) Markdown(w io.Writer) {
	fmt.Fprintf(w, "# Plan for %s\n\n", p.Experiment.Name)
	for _, g := range append(p.tables(), p.ledgerGrid()) {
		g.Markdown(w)
	}
}

// JSON writes everything.
func (p *Plan) JSON(w io.Writer) error {
	var candidates, trials, prices []map[string]any
	for _, c := range p.Candidates {
		candidates = append(candidates, map[string]any{"name": c.Name, "set": c.Sets, "status": c.Status, "why": c.Why, "needs": c.Needs, "replicas": c.Replicas, "gpus": c.GPUs, "usd_per_hour": c.Cost, "ttft_p99": estimateJSON(c.P99), "binding": c.Binding, "bound": c.bound})
	}
	for i, t := range append(slices.Clone(p.Trials), p.Fresh...) {
		trials = append(trials, map[string]any{"candidate": t.Candidate, "replicas": t.Replicas, "cost": t.Cost, "holds": t.Holds, "tightest": t.Binding, "attained": finite(t.Attained), "ttft_p99": estimateJSON(t.P99), "front": t.Front, "fresh_seeds": i >= len(p.Trials)})
	}
	for _, x := range p.Prices {
		prices = append(prices, map[string]any{"threshold_s": x.Threshold, "replicas": x.Replicas, "usd_per_hour": x.Cost})
	}
	out := map[string]any{"experiment": p.Experiment.Name, "answer": p.headline(), "confidence": p.Spec.Confidence, "candidates": candidates, "trials": trials, "price_of": p.PriceOf, "prices": prices, "reasons": p.reasons()}
	return writeJSON(w, out)
}

// Files are a runnable experiment per candidate that holds; text is that of the
// experiment, trace files that it names are relative to dir, and given are overrides
// of all candidates.
func (p *Plan) Files(text, dir string, given []string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for i, c := range p.Candidates {
		if c.Needs == 0 {
			continue
		}
		sets := append(append(slices.Clone(given), c.Sets...), fmt.Sprintf("pool.%s.replicas=%d", c.base.Pools[c.pool].Name, c.Replicas))
		body, err := withSets(text, dir, sets)
		if err != nil {
			return nil, err
		}
		out[fmt.Sprintf("candidate-%d.toml", i+1)] = append([]byte(fmt.Sprintf("# %s: %s\n", c.Status, strings.Join(sets, " "))), body...)
	}
	return out, nil
}

// withSets writes an experiment's text with overrides of named tables in place.
func withSets(text, dir string, sets []string) ([]byte, error) {
	var doc map[string]any
	if _, err := toml.Decode(text, &doc); err != nil {
		return nil, err
	}
	for _, s := range sets {
		path, value, _ := strings.Cut(s, "=")
		parts := strings.Split(path, ".")
		var at map[string]any = doc
		for len(parts) > 1 {
			next, used := descend(at, parts)
			if next == nil {
				return nil, fmt.Errorf("%s: the experiment has no such table", path)
			}
			at, parts = next, parts[used:]
		}
		at[parts[0]] = literal(value)
	}
	if list, ok := doc["traffic"].([]map[string]any); ok {
		for _, t := range list {
			trace, _ := t["trace"].(map[string]any)
			if file, ok := trace["file"].(string); ok && !filepath.IsAbs(file) {
				if abs, err := filepath.Abs(filepath.Join(dir, file)); err == nil {
					if _, err := os.Stat(abs); err == nil {
						trace["file"] = abs
					}
				}
			}
		}
	}
	var b bytes.Buffer
	e := toml.NewEncoder(&b)
	e.Indent = ""
	err := e.Encode(doc)
	return b.Bytes(), err
}

// descend follows one table of a path: a list's by name, or a sub-table, made if it is
// not there.
func descend(at map[string]any, parts []string) (map[string]any, int) {
	switch x := at[parts[0]].(type) {
	case []map[string]any:
		for _, t := range x {
			for _, key := range []string{"name", "class"} {
				if name, ok := t[key].(string); ok && name == parts[1] && len(parts) > 2 {
					return t, 2
				}
			}
		}
		return nil, 0
	case map[string]any:
		return x, 1
	case nil:
		sub := map[string]any{}
		at[parts[0]] = sub
		return sub, 1
	}
	return nil, 0
}

// literal reads a value of --set as TOML, or as text.
func literal(value string) any {
	var x map[string]any
	if _, err := toml.Decode("v = "+value, &x); err == nil {
		return x["v"]
	}
	return value
}
