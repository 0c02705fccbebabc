package sweep

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slosim/experiments"
	"slosim/internal/config"
	"slosim/internal/design"
)

// Bounds of a sweep.
const (
	maxPoints      = 10_000
	maxSeeds       = 1_000
	maxSimulations = 100_000
)

// Kinds of designs.
const (
	Grid           = "grid"
	LatinHypercube = "latin-hypercube"
	Sobol          = "sobol"
)

// File is a sweep as it is written down.
type File struct {
	Name, Title string
	Path, Dir   string
	Experiment  string   // file or shipped name
	Sets        []string // for all points
	Kind        string
	Samples     int // points of LatinHypercube and Sobol
	Seeds       int // simulations of each point
	Seed        uint64
	Skip        bool // leave out points that are no valid experiment
	Factors     []design.Factor
	Metrics     []string // as metricOf reads them; nil = chosen by the experiment
	Heat        []string // names of two factors; nil = the two that matter most
}

var schema = config.Schema{
	"":       {"title", "experiment", "set", "design", "vary", "report"},
	"design": {"kind", "samples", "seeds", "seed", "invalid"},
	"vary":   {"set", "name", "values", "labels", "from", "to", "scale", "steps", "integer"},
	"report": {"metrics", "heat"},
}

var synonyms = map[string]string{
	"design.points": "samples", "design.n": "samples", "design.replications": "seeds", "design.type": "kind", "design.method": "kind",
	"vary.path": "set", "vary.key": "set", "vary.min": "from", "vary.max": "to", "vary.low": "from", "vary.high": "to", "vary.log": "scale", "vary.list": "values",
	"factor": "vary", "parameter": "vary", "sets": "set", "base": "experiment", "report.metric": "metrics",
}

// Load reads a sweep, or the shipped one.
func Load(path string) (*File, error) {
	path, dir, text, err := experiments.Named(path, experiments.Sweep)
	if err != nil {
		return nil, err
	}
	return Parse(path, dir, text)
}

// Parse is Load for a text; the experiment is looked for in dir.
func Parse(path, dir, text string) (*File, error) {
	doc, err := config.Parse(path, text)
	if err != nil {
		return nil, err
	}
	doc.SetSchema(schema, synonyms)
	doc.Call("the sweep")
	f := &File{Path: path, Dir: dir, Name: strings.TrimSuffix(filepath.Base(path), ".toml")}
	root := doc.Root()
	f.Title = config.Read(root, "title", config.Text, config.Default("", ""))
	f.Experiment = config.Read(root, "experiment", config.Text, config.Required, config.Example[string](`"prompt-growth.toml"`))
	f.Sets = config.Read(root, "set", config.Texts, config.Default([]string(nil), "nothing is overridden"), config.Example[[]string](`["duration=10m"]`))
	for _, s := range f.Sets {
		if !strings.Contains(s, "=") {
			root.Errorf("set", "path=value", `for example: set = ["duration=10m", "warmup=5m"]`, "set: %q has no value", s)
		}
	}
	f.design(root.Sub("design", `[design]`))
	tables := root.Tables("vary", "set", "[[vary]]")
	for _, t := range tables {
		f.Factors = append(f.Factors, f.factor(t))
	}
	f.reported(root.Sub("report", `[report]`))
	if root.Has("pool") || root.Has("traffic") {
		return nil, config.Errors{{File: path, Msg: "this is an experiment, not a sweep", Try: fmt.Sprintf("sim run %s simulates it; to vary it, write a sweep with experiment = %q", path, filepath.Base(path))}}
	}
	root.Done()
	f.check(doc, root, tables)
	return f, doc.Err()
}

func (f *File) design(t *config.Table) {
	kind := config.Read(t, "kind", config.OneOf(Grid, LatinHypercube, "lhs", Sobol), config.Default(Grid, "all combinations"))
	if f.Kind = kind; kind == "lhs" {
		f.Kind = LatinHypercube
	}
	if f.Kind == Grid {
		if t.Has("samples") {
			t.Errorf("samples", "", `choose kind = "latin-hypercube" or "sobol", or give each [[vary]] its steps`, "a grid has as many points as its lists make: samples has no meaning")
		}
		t.Know("samples")
	} else {
		f.Samples = config.Read(t, "samples", config.Int, config.Required, config.Example[int]("64"), config.Between(2, maxPoints))
	}
	f.Seeds = config.Read(t, "seeds", config.Int, config.Default(3, "simulations of each point, the same seeds for all"), config.Example[int]("3"), config.Between(1, maxSeeds))
	f.Seed = uint64(config.Read(t, "seed", config.Int, config.Default(1, "of the design; simulations take the experiment's"), config.Between(0, 1<<53)))
	f.Skip = config.Read(t, "invalid", config.OneOf("error", "skip"), config.Default("error", "a point that is no valid experiment")) == "skip"
}

func (f *File) reported(t *config.Table) {
	f.Metrics = config.Read(t, "metrics", config.Texts, config.Default([]string(nil), "chosen by the experiment"), config.Example[[]string](`["ttft_p99", "usd_per_hour"]`))
	f.Heat = config.Read(t, "heat", config.Texts, config.Default([]string(nil), "the two settings that matter most"), config.Example[[]string](`["replicas", "rate"]`))
	for _, m := range f.Metrics {
		if _, err := metricOf(m); err != nil {
			t.Errorf("metrics", strings.Join(metricNames(), ", "), nearMetric(m), "%s", err)
		}
	}
}

// number is a number with its unit, as from and to take it.
type number struct {
	v    float64
	unit string
}

var numberUnit = config.Unit[number]{
	Name: "a number with its unit", Allowed: "a number, or a text such as \"8/s\" or \"20%\"", Example: "1",
	Parse: func(v any) (number, error) {
		switch x := v.(type) {
		case int64:
			return number{float64(x), ""}, nil
		case float64:
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				return number{x, ""}, nil
			}
		case string:
			if n, unit, ok := design.Split(x); ok {
				return number{n, unit}, nil
			}
		}
		return number{}, errors.New("is not a number with its unit")
	},
	Format: func(n number) string { return strconv.Quote(design.Number(n.v) + n.unit) },
}

var valuesUnit = config.Unit[[]string]{
	Name: "a list of values", Allowed: "a list of at least two values", Example: "[2, 3, 4]",
	Parse: func(v any) ([]string, error) {
		list, ok := v.([]any)
		if !ok || len(list) < 2 {
			return nil, errors.New("is not a list of at least two values")
		}
		var out []string
		for _, x := range list {
			out = append(out, setText(x, true))
		}
		return out, nil
	},
	Format: func(v []string) string { return "[" + strings.Join(v, ", ") + "]" },
}

// setText writes a TOML value as --set takes it: bare text needs no quotes at the top.
func setText(v any, top bool) string {
	switch x := v.(type) {
	case string:
		if top && x != "" && !strings.ContainsRune("\"'[{", rune(x[0])) {
			return x
		}
		return strconv.Quote(x)
	case []any:
		var parts []string
		for _, y := range x {
			parts = append(parts, setText(y, false))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var keys, parts []string
		for k := range x {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			parts = append(parts, strconv.Quote(k)+" = "+setText(x[k], false))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return fmt.Sprint(v)
}

// fixed are the settings that are the sweep's own, or mean nothing to a simulation, and
// what to do instead.
var fixed = map[string]string{
	"seed":             "all points have the same seeds; for more of them: [design] seeds = 5",
	"replications":     "simulations of each point: [design] seeds = 5",
	"max_replications": "simulations of each point: [design] seeds = 5",
	"precision":        "simulations of each point: [design] seeds = 5",
	"title":            "it is prose",
	"question":         "it is prose",
}

// twice returns a text that a list has twice; "" = none.
func twice(list []string) string {
	for i, x := range list {
		if slices.Contains(list[:i], x) {
			return x
		}
	}
	return ""
}

// factor reads a [[vary]].
func (f *File) factor(t *config.Table) design.Factor {
	var x design.Factor
	x.Set = config.Read(t, "set", config.Text, config.Required, config.Example[string](`"pool.main.replicas"`))
	if what := fixed[x.Set]; what != "" {
		t.Errorf("set", "settings that change what is simulated", what, "%s cannot be varied", x.Set)
	}
	x.Name = config.Read(t, "name", config.Text, config.Default(lastPart(x.Set), "the end of its path"), config.Example[string](`"replicas"`))
	if t.Has("values") {
		x.Values = config.Read(t, "values", valuesUnit, config.Required)
		for _, key := range []string{"from", "to", "scale", "steps", "integer"} {
			if t.Has(key) {
				t.Errorf(key, "", "leave out values, or "+key, "%s is about a range; %s lists its values", key, x.Set)
			}
			t.Know(key)
		}
		if x.Labels = config.Read(t, "labels", config.Texts, config.Default([]string(nil), "the values themselves"), config.Example[[]string](`["short", "long"]`)); x.Labels != nil && len(x.Labels) != len(x.Values) {
			t.Errorf("labels", "as many as values", "", "%d labels for %d values", len(x.Labels), len(x.Values))
		}
		if v := twice(x.Values); v != "" {
			t.Errorf("values", "each value once", "", "%s is listed twice", v)
		}
		if v := twice(x.Labels); v != "" {
			t.Errorf("labels", "a label of its own for each value", "", "%q labels two values", v)
		}
		return x
	}
	if t.Has("labels") {
		t.Errorf("labels", "", "list the values, or leave labels out", "labels belong to values")
	}
	t.Know("labels", "values")
	if !t.Has("from") && !t.Has("to") {
		t.Errorf("values", "values = [2, 3, 4], or from and to", `for example: values = [2, 3, 4]`, "%s has neither values nor a range", x.Set)
		t.Know("from", "to", "scale", "steps", "integer")
		return x
	}
	before := t.Doc().Failures()
	from := config.Read(t, "from", numberUnit, config.Required, config.Example[number](`"2/s"`))
	to := config.Read(t, "to", numberUnit, config.Required, config.Example[number](`"8/s"`))
	x.From, x.To, x.Unit = from.v, to.v, from.unit
	x.Log = config.Read(t, "scale", config.OneOf("linear", "log"), config.Default("linear", "log: equal steps are equal factors")) == "log"
	x.Integer = config.Read(t, "integer", config.Bool, config.Default(false, "any number of the range"), config.Example[bool]("true"))
	if f.Kind == Grid {
		x.Steps = config.Read(t, "steps", config.Int, config.Required, config.Example[int]("4"), config.Between(2, 1000))
	} else {
		if t.Has("steps") {
			t.Errorf("steps", "", "leave it out", "steps belong to a grid; this design takes samples from the whole range")
		}
		t.Know("steps")
	}
	switch {
	case t.Doc().Failures() > before:
	case from.unit != to.unit:
		t.Errorf("to", "the unit of from: "+strconv.Quote(from.unit), "write both ends in one unit", "from is in %q, to in %q", from.unit, to.unit)
	case from.v >= to.v:
		t.Errorf("to", "more than from", "", "to = %s is not above from = %s", design.Number(to.v), design.Number(from.v))
	case x.Log && from.v <= 0:
		t.Errorf("from", "more than 0", `or scale = "linear"`, "a log scale has no 0 and nothing below it")
	case x.Integer && (from.v != math.Trunc(from.v) || to.v != math.Trunc(to.v)):
		t.Errorf("integer", "whole numbers at both ends", "", "%s to %s are not both whole", design.Number(from.v), design.Number(to.v))
	}
	return x
}

// lastPart is the end of a path, for a name: "main.replicas" of pool.main.replicas.
func lastPart(path string) string {
	parts := strings.Split(path, ".")
	if len(parts) > 2 {
		parts = parts[1:]
	}
	return strings.Join(parts, ".")
}

// check looks at what only shows with all of the file read.
func (f *File) check(doc *config.Doc, root *config.Table, tables []*config.Table) {
	if doc.Failures() > 0 {
		return
	}
	switch {
	case len(tables) == 0:
		root.Errorf("vary", "", "add a table [[vary]] with set and values, or from and to", "the sweep has no [[vary]]: there is nothing to vary")
		return
	case len(tables) > design.MaxDimensions:
		root.Errorf("vary", fmt.Sprintf("at most %d", design.MaxDimensions), "", "%d settings vary", len(tables))
		return
	}
	names := map[string]bool{}
	for i, x := range f.Factors {
		if names[x.Name] || slices.ContainsFunc(f.Factors[:i], func(o design.Factor) bool { return o.Set == x.Set }) {
			tables[i].Errorf("set", "", "give each a setting and a name of its own", "%s is varied twice, or two settings are called %q", x.Set, x.Name)
		}
		names[x.Name] = true
	}
	if len(f.Heat) > 0 && (len(f.Heat) != 2 || f.Heat[0] == f.Heat[1] || !names[f.Heat[0]] || !names[f.Heat[1]]) {
		var list []string
		for _, x := range f.Factors {
			list = append(list, x.Name)
		}
		root.Sub("report", "").Errorf("heat", "two of: "+strings.Join(list, ", "), "", "heat does not name two settings that vary")
	}
	if n := f.count(); n > maxPoints || n*f.Seeds > maxSimulations {
		root.Sub("design", "").Errorf("seeds", fmt.Sprintf("at most %d points and %d simulations", maxPoints, maxSimulations), `shorten the lists, or take samples: kind = "sobol"`, "the sweep has %d points on %d seeds each", n, f.Seeds)
	}
}

// count is the number of points.
func (f *File) count() int {
	if f.Kind != Grid {
		return f.Samples
	}
	n := 1
	for i := range f.Factors {
		if n *= len(f.Factors[i].Levels()); n > maxPoints {
			return n
		}
	}
	return n
}
