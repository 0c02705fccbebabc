package experiments

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sort"
	"strings"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/workloads"
)

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
	before := t.Doc().Failures()
	r := distReader{t.Sub(key, key+` = { dist = "lognormal", mean = 2000, p99 = 8000 }`), u, least}
	d := r.read(true)
	if t.Doc().Failures() > before || d.Kind == "fixed" {
		return d
	}
	d, err := d.Prepared()
	if err != nil {
		t.Errorf(key, "", "", "%s: %s", key, err)
		return d
	}
	l, err := d.Compile()
	if err != nil {
		t.Errorf(key, "", "", "%s: %s", key, err)
		return d
	}
	if d.Kind != "uniform" {
		r.t.Doc().Note(r.t.Path("quantiles"), fmt.Sprintf("%q", quantiles(&l, u)), "derived", "with cut and tail")
	}
	return d
}

// quantiles writes a few quantiles of a length.
func quantiles(l *workloads.Lengths, u config.Unit[float64]) string {
	var parts []string
	for _, q := range []struct {
		name string
		p    float64
	}{{"P50", .5}, {"P90", .9}, {"P95", .95}, {"P99", .99}, {"P99.9", .999}} {
		x := fourDigits(l.Quantile(q.p))
		parts = append(parts, q.name+" "+strings.Trim(u.Format(x), `"`))
	}
	return strings.Join(parts, ", ")
}

// distReader reads the keys of one distribution.
type distReader struct {
	t     *config.Table
	u     config.Unit[float64]
	least float64
}

func (r distReader) length(key string, rules ...config.Rule[float64]) float64 {
	return config.Read(r.t, key, r.u, append(rules, config.Between(r.least, maxTokens))...)
}

var distKinds = []string{"lognormal", "exponential", "uniform", "fixed", "normal", "pareto", "empirical", "histogram"}

// read reads a distribution; only whole ones may be mixtures.
func (r distReader) read(whole bool) workloads.Dist {
	kinds := distKinds
	if whole {
		kinds = append(kinds[:len(kinds):len(kinds)], "mixture")
	}
	d := workloads.Dist{Kind: config.Read(r.t, "dist", config.OneOf(kinds...), config.Required)}
	switch d.Kind {
	case "fixed":
		d.Mean = r.length("mean", config.Required)
		return d
	case "uniform":
		d.Min, d.Max = r.length("min", config.Required), r.length("max", config.Required)
	case "lognormal":
		r.lognormal(&d)
	case "exponential":
		d.Mean = r.length("mean", config.Required)
	case "normal":
		d.Mean = r.length("mean", config.Required)
		d.SD = config.Read(r.t, "sd", r.u, config.Required, config.Above(0, maxTokens))
	case "pareto":
		d.Min = r.length("min", config.Required)
		d.Max = r.length("max")
		d.Alpha = config.Read(r.t, "alpha", config.Float, config.Required, config.Note[float64]("P(longer than x) = (min/x)^alpha"), config.Example[float64]("1.5"), config.Between(0.1, 100))
	case "empirical":
		d.Points = config.Read(r.t, "points", points, config.Required)
	case "histogram":
		r.histogram(&d)
	case "mixture":
		r.mixture(&d)
	default:
		r.t.Skip()
		return d
	}
	if d.Kind != "uniform" && d.Kind != "pareto" {
		d.Min, d.Max = r.length("min"), r.length("max")
	}
	if d.Max > 0 && d.Max < d.Min {
		r.t.Errorf("max", "at least min, "+r.u.Format(d.Min), "", "max = %s is less than min", r.u.Format(d.Max))
	}
	if r.t.Has("tail") {
		sub := r.t.Sub("tail", `tail = { from = "99%", alpha = 1.5 }`)
		d.Tail.From = config.Read(sub, "from", config.Share, config.Required, config.Note[float64]("of the requests are shorter than the tail"), config.Example[float64](`"99%"`), config.Between(0.01, 0.99999))
		d.Tail.Alpha = config.Read(sub, "alpha", config.Float, config.Required, config.Note[float64]("a Pareto tail: smaller is heavier"), config.Example[float64]("1.5"), config.Between(1.01, 100))
	} else {
		r.t.Know("tail")
	}
	return d
}

// percentiles are the keys that name one, in order.
var percentiles = []struct {
	key string
	p   float64
}{{"p50", .5}, {"p90", .9}, {"p95", .95}, {"p99", .99}, {"p999", .999}}

// lognormal reads a mean and a percentile, or two percentiles.
func (r distReader) lognormal(d *workloads.Dist) {
	before := r.t.Doc().Failures()
	type given struct {
		key  string
		p, x float64
	}
	var list []given
	for _, q := range percentiles {
		if r.t.Has(q.key) {
			list = append(list, given{q.key, q.p, r.length(q.key)})
		} else {
			r.t.Know(q.key)
		}
	}
	if r.t.Has("mean") || len(list) < 2 {
		d.Mean = r.length("mean", config.Required)
		if len(list) == 0 {
			example := config.Example[float64](r.u.Format(usualP99 * d.Mean))
			if d.Mean == 0 { // not given, or wrong
				example = config.Example[float64](r.u.Example)
			}
			r.length("p99", config.Required, example)
			return
		}
	}
	n := len(list)
	if d.Mean > 0 {
		n++
	}
	switch fine := r.t.Doc().Failures() == before; {
	case !fine:
	case n != 2:
		r.t.Errorf(list[2-min(1, n-len(list))].key, "mean and one of p50, p90, p95, p99, p999, or two of these", "remove what is too much", "a lognormal distribution has two parameters, and %d are given", n)
	case d.Mean > 0:
		q := list[0]
		by, ok := workloads.LogNormalMean(d.Mean, q.p, q.x)
		if !ok {
			r.noLognormal(d.Mean, q.key, q.p, q.x)
			return
		}
		if q.key == "p99" { // the plain form
			d.P99 = q.x
			return
		}
		*d = by
	case list[0].x >= list[1].x:
		r.t.Errorf(list[1].key, "more than "+list[0].key+", "+r.u.Format(list[0].x), "", "%s = %s is not more than %s", list[1].key, r.u.Format(list[1].x), list[0].key)
	default:
		*d = workloads.LogNormal(list[0].p, list[0].x, list[1].p, list[1].x)
	}
}

// noLognormal reports a percentile that no lognormal distribution of that mean
// has.
func (r distReader) noLognormal(mean float64, key string, p, x float64) {
	z := rng.Normal(p)
	most := math.Exp(z * z / 2)
	allowed := fmt.Sprintf("less than the mean, %s", r.u.Format(mean))
	if p > .5 {
		allowed = fmt.Sprintf("less than %.3g times the mean, %s", most, r.u.Format(math.Floor(most*mean)))
		if p >= .99 {
			allowed = fmt.Sprintf("more than 1 and less than %.3g times the mean: between %s and %s", math.Floor(10*most)/10, r.u.Format(mean), r.u.Format(math.Floor(10*most)/10*mean))
		}
	}
	r.t.Errorf(key, allowed,
		`for one and the same length write a plain number; for a heavier tail add tail = { from = "99%", alpha = 1.5 }, or give { dist = "empirical", points = [...] }`,
		"%s = %s is %.3g times the mean of %s, which no lognormal distribution can have", key, r.u.Format(x), x/mean, r.u.Format(mean))
}

// histogram reads a file of bins.
func (r distReader) histogram(d *workloads.Dist) {
	file := config.Read(r.t, "file", config.Text, config.Required, config.Example[string](`"prompt_lengths.csv"`))
	if file == "" {
		return
	}
	if !filepath.IsAbs(file) && !r.t.FromSet("file") {
		file = filepath.Join(filepath.Dir(r.t.Doc().File()), file)
	}
	list, err := workloads.ReadHistogram(file)
	if err != nil {
		r.t.Errorf("file", "", "expected is a CSV with two columns: the lower edge of a bin, and its share or count", "%s", unread(file, err))
		return
	}
	d.Kind, d.Points = "empirical", list
}

// mixture reads the parts of a mixture.
func (r distReader) mixture(d *workloads.Dist) {
	total := 0.0
	for _, part := range r.t.List("parts", `parts = [{ share = "70%", dist = "lognormal", mean = 500, p99 = 2000 }, { share = "30%", dist = "fixed", mean = 8000 }]`) {
		share := config.Read(part, "share", config.Share, config.Required, config.Between(0.0, 1))
		total += share
		d.Parts = append(d.Parts, workloads.Part{Share: share, Dist: distReader{part, r.u, r.least}.read(false)})
	}
	switch {
	case len(d.Parts) == 0:
		r.t.Errorf("parts", "", `for example: parts = [{ share = "70%", dist = "exponential", mean = 500 }, { share = "30%", dist = "fixed", mean = 8000 }]`, "a mixture needs parts")
	case math.Abs(total-1) > 1e-9:
		r.t.Errorf("parts", "shares that add up to 100%", "", "the shares of the parts add up to %s", strings.Trim(config.Share.Format(math.Round(total*1e9)/1e9), `"`))
	}
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
