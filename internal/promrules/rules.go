package promrules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slosim/sim/clock"
	"slosim/sim/slo"
)

// File is a Prometheus rule file.
type File struct {
	Groups []Group `yaml:"groups"`
}

// Group is evaluated once per Interval.
type Group struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval,omitempty"`
	Rules    []Rule `yaml:"rules"`
}

// Rule records a series or raises an alert.
type Rule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// Watched is an objective with what a simulation found about it.
type Watched struct {
	slo.Objective
	// BreakLength is the prompt length, in tokens, from which on the objective
	// breaks; 0 = unknown. Why says how it is known.
	BreakLength int32
	Why         string
}

// recorded is the name of the series of bad shares.
const recorded = "slo:sli_error:ratio_rate"

// Of returns the rules of objectives, and notes on what they cannot do.
func Of(experiment, selector string, list []Watched) (File, []string) {
	var file File
	var notes []string
	for i := range list {
		o := &list[i]
		_, _, note, ok := Ratio(&o.Objective, selector, "5m")
		if !ok {
			notes = append(notes, fmt.Sprintf("%s: not exported: vLLM's metrics do not show %s", o.Name, missing(&o.Objective)))
			continue
		}
		if note != "" {
			notes = append(notes, o.Name+": "+note)
		}
		if len(o.Only)+len(o.Exclude) > 0 {
			notes = append(notes, o.Name+": vLLM's metrics do not know cohorts: all requests are counted")
		}
		if o.Adaptive != nil {
			notes = append(notes, fmt.Sprintf("%s: its threshold is adaptive: these rules watch %g s, where it begins", o.Name, o.Threshold.Seconds()))
		}
		file.Groups = append(file.Groups, o.record(experiment, selector), o.alerts(experiment, note))
	}
	if g := drift(experiment, selector, list); len(g.Rules) > 0 {
		file.Groups = append(file.Groups, g)
	}
	return file, notes
}

// missing says what keeps an objective from being watched.
func missing(o *slo.Objective) string {
	if o.Banded() {
		return "latencies by prompt length"
	}
	if h, ok := histograms[o.Metric]; ok {
		return fmt.Sprintf("%s below %g s, its first bucket", h.Name, h.Buckets[0])
	}
	return "which requests meet several thresholds at once"
}

// slug is a name for rule groups and labels.
func slug(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name), "-")
}

// Span writes a duration as Prometheus reads it: "1h", "5m", "3d".
func Span(d clock.Duration) string {
	for _, u := range []struct {
		unit clock.Duration
		name string
	}{{clock.Day, "d"}, {clock.Hour, "h"}, {clock.Minute, "m"}, {clock.Second, "s"}} {
		if d%u.unit == 0 {
			return fmt.Sprintf("%d%s", d/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%dms", d/clock.Millisecond)
}

// windows are those of the alerts, ascending.
func (o *Watched) windows() []clock.Duration {
	var out []clock.Duration
	for _, p := range o.Pairs() {
		out = append(out, p.Short, p.Long)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (o *Watched) labels(experiment string) map[string]string {
	return map[string]string{"slo": slug(o.Name), "class": o.Class, "experiment": experiment}
}

func (o *Watched) record(experiment, selector string) Group {
	g := Group{Name: "slo-" + slug(o.Name) + "-record", Interval: "1m"}
	for _, w := range o.windows() {
		good, all, _, _ := Ratio(&o.Objective, selector, Span(w))
		g.Rules = append(g.Rules, Rule{Record: recorded + Span(w), Expr: fmt.Sprintf("1 - (%s) / (%s)", good, all), Labels: o.labels(experiment)})
	}
	events := "5m"
	_, all, _, _ := Ratio(&o.Objective, selector, events)
	g.Rules = append(g.Rules, Rule{Record: "slo:events:rate" + events, Expr: all, Labels: o.labels(experiment)})
	return g
}

// alerts fire as those of the simulation do: both windows over the factor, with
// enough events in the short one, evaluated each minute.
func (o *Watched) alerts(experiment, note string) Group {
	g := Group{Name: "slo-" + slug(o.Name) + "-alerts", Interval: "1m"}
	at := fmt.Sprintf("{slo=%q,experiment=%q}", slug(o.Name), experiment)
	guard := cmp.Or(float64(o.MinEvents), slo.MinEvents)
	for _, p := range o.Pairs() {
		limit := fmt.Sprintf("%.6g", p.Factor*(1-o.Target))
		text := fmt.Sprintf("The error budget of %s burns %g times as fast as its window allows, over %s and %s.", o.Name, p.Factor, Span(p.Long), Span(p.Short))
		if note != "" {
			text += " Note: " + note + "."
		}
		labels := o.labels(experiment)
		labels["severity"], labels["windows"] = p.Severity, Span(p.Long)+"/"+Span(p.Short)
		g.Rules = append(g.Rules, Rule{
			Alert: "SLOBurnRate",
			Expr: fmt.Sprintf("%[1]s%[2]s%[4]s >= %[5]s and %[1]s%[3]s%[4]s >= %[5]s and slo:events:rate5m%[4]s * %[6]g >= %[7]g",
				recorded, Span(p.Long), Span(p.Short), at, limit, p.Short.Seconds(), guard),
			Labels:      labels,
			Annotations: map[string]string{"summary": fmt.Sprintf("%s: burn rate %g", o.Name, p.Factor), "description": text},
		})
	}
	return g
}

// drift raises an alarm when more prompts than an objective allows are longer than
// what it can bear.
func drift(experiment, selector string, list []Watched) Group {
	g := Group{Name: "prompt-length-drift", Interval: "1m"}
	for i := range list {
		o := &list[i]
		if o.BreakLength <= 0 {
			continue
		}
		edge := promptBucket(float64(o.BreakLength))
		labels := o.labels(experiment)
		labels["severity"] = "ticket"
		g.Rules = append(g.Rules, Rule{
			Alert: "PromptLengthDrift",
			Expr: fmt.Sprintf("1 - sum(rate(%s_bucket%s[1h])) / sum(rate(%s_count%s[1h])) > %.6g",
				prompts, labels2(selector, edge), prompts, labels2(selector, 0), 1-o.Target),
			For: "5m", Labels: labels,
			Annotations: map[string]string{
				"summary":     fmt.Sprintf("%s: prompts grow longer than it can bear", o.Name),
				"description": fmt.Sprintf("More than %.4g %% of the prompts are longer than %g tokens, the nearest bucket below %d: %s.", 100*(1-o.Target), edge, o.BreakLength, o.Why),
			},
		})
	}
	return g
}

func labels2(selector string, edge float64) string {
	if edge == 0 {
		return labels(selector, "")
	}
	return labels(selector, le(edge))
}
