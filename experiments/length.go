package experiments

import (
	"errors"
	"fmt"
	"sort"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/workloads"
)

// maxP99Ratio is the largest p99/mean that a lognormal distribution can have:
// exp(z²/2) with z = 2.32635 is 14.97.
const maxP99Ratio = 14.9

// usualP99 is the p99/mean of examples.
const usualP99 = 4

// tokens are the lengths of prompts and outputs.
var tokens = config.Tokens

// seconds reads a duration as a float, for distributions of times.
var seconds = config.Unit[float64]{
	Name: config.Span.Name, Allowed: config.Span.Allowed, Example: `"5s"`,
	Parse:  func(v any) (float64, error) { d, err := config.Span.Parse(v); return d.Seconds(), err },
	Format: func(v float64) string { return config.Span.Format(clock.FromSeconds(v)) },
}

// dist reads a length or time: one value, or a table { dist = ..., ... }.
func dist(t *config.Table, key string, u config.Unit[float64], least float64) workloads.Dist {
	if !t.IsTable(key) {
		v := config.Read(t, key, u, config.Required, config.Note[float64]("the same for every request"), config.Between(least, maxTokens))
		return workloads.Dist{Kind: "fixed", Mean: v}
	}
	sub := t.Sub(key, key+` = { dist = "lognormal", mean = 2000, p99 = 8000 }`)
	d := workloads.Dist{Kind: config.Read(sub, "dist", config.OneOf("lognormal", "exponential", "uniform", "fixed", "empirical"), config.Required)}
	length := func(key string, rules ...config.Rule[float64]) float64 {
		return config.Read(sub, key, u, append(rules, config.Between(least, maxTokens))...)
	}
	switch d.Kind {
	case "fixed":
		d.Mean = length("mean", config.Required)
		return d
	case "uniform":
		d.Min, d.Max = length("min", config.Required), length("max", config.Required)
	case "lognormal":
		before := sub.Doc().Failures()
		d.Mean = length("mean", config.Required)
		example := config.Example[float64](u.Format(usualP99 * d.Mean))
		if d.Mean == 0 { // not given, or wrong
			example = config.Example[float64](u.Example)
		}
		d.P99 = length("p99", config.Required, example)
		if sub.Doc().Failures() == before {
			checkP99(sub, d, u)
		}
	case "exponential":
		d.Mean = length("mean", config.Required)
	case "empirical":
		d.Points = config.Read(sub, "points", points, config.Required)
	default:
		sub.Skip()
		return d
	}
	if d.Kind != "uniform" {
		d.Min, d.Max = length("min"), length("max")
	}
	if d.Max > 0 && d.Max < d.Min {
		sub.Errorf("max", "at least min, "+u.Format(d.Min), "", "max = %s is less than min", u.Format(d.Max))
	}
	return d
}

// checkP99 reports a p99 that no lognormal distribution of that mean has.
func checkP99(t *config.Table, d workloads.Dist, u config.Unit[float64]) {
	ratio := d.P99 / d.Mean
	if ratio > 1 && ratio < maxP99Ratio {
		return
	}
	t.Errorf("p99", fmt.Sprintf("more than 1 and less than %g times the mean: between %s and %s", maxP99Ratio, u.Format(d.Mean), u.Format(maxP99Ratio*d.Mean)),
		`for one and the same length write a plain number; for a heavier tail give { dist = "empirical", points = [...] }`,
		"p99 = %s is %.3g times the mean of %s, which no lognormal distribution can have", u.Format(d.P99), ratio, u.Format(d.Mean))
}

// points is a cumulative distribution: [[tokens, share], ...].
var points = config.Unit[[]workloads.Point]{
	Name: "a cumulative distribution", Allowed: "pairs [length, share of requests that are not longer], both rising, the last share 1",
	Example: "[[100, 0.1], [800, 0.5], [4000, 1.0]]", Parse: parsePoints, Format: formatPoints,
}

func parsePoints(v any) ([]workloads.Point, error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, errors.New("is not a list of pairs")
	}
	out := make([]workloads.Point, len(list))
	for i, e := range list {
		pair, ok := e.([]any)
		if !ok || len(pair) != 2 {
			return nil, fmt.Errorf("has no pair at position %d", i+1)
		}
		length, err1 := config.Tokens.Parse(pair[0])
		share, err2 := config.Share.Parse(pair[1])
		if err := errors.Join(err1, err2); err != nil || length < 1 || length > maxTokens || share < 0 || share > 1 {
			return nil, fmt.Errorf("has a pair out of range at position %d", i+1)
		}
		out[i] = workloads.Point{Tokens: length, P: share}
	}
	rising := sort.SliceIsSorted(out, func(i, j int) bool { return out[i].P < out[j].P || out[i].Tokens < out[j].Tokens })
	if !rising || out[len(out)-1].P != 1 {
		return nil, errors.New("does not rise to a share of 1")
	}
	return out, nil
}

func formatPoints(ps []workloads.Point) string {
	text := "["
	for i, p := range ps {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("[%s, %s]", config.Tokens.Format(p.Tokens), config.Float.Format(p.P))
	}
	return text + "]"
}
