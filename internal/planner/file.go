package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"slosim/experiments"
	"slosim/internal/config"
	"slosim/sim/clock"
)

// Bounds of a file of formulas.
const (
	maxScenarios = 200
	maxReplicas  = 4096
)

// File is formulas and the grids of scenarios that they are tried on.
type File struct {
	Title        string
	Path, Dir    string
	Seed         uint64
	Replications int
	Duration     clock.Duration
	Warmup       clock.Duration
	Tolerance    float64 // relative error up to which a figure counts as right
	Grids        []Grid
	Formulas     []Formula
}

// Grid is a family of scenarios: the product of its lists.
type Grid struct {
	Name string

	// Of an LLM service.
	Models, GPUs  []string
	TP            []float64
	Prompt        []float64 // mean tokens
	Output        []float64
	Tail          float64 // P99 ÷ mean of both; 1 = all equal
	Rate          []float64
	Load          []float64 // instead of Rate: share of one replica's saturation
	Burstiness    []float64
	TTFT, TPOT    clock.Duration // objectives
	Objective     float64
	GPUHourUSD    float64
	MaxReplicas   int
	Engine        string // further settings of the engine, as TOML
	ClosedForm    bool   // a queue instead: Servers, Load, ArrivalCV2, ServiceCV2
	Servers       []float64
	ArrivalCV2    []float64
	ServiceCV2    []float64
	CustomersEach int
}

var fileSchema = config.Schema{
	"":        {"title", "seed", "replications", "duration", "warmup", "tolerance", "grid", "formula"},
	"grid":    {"name", "model", "gpu", "tensor_parallel", "prompt", "output", "tail", "rate", "load", "burstiness", "ttft", "tpot", "objective", "gpu_hour_usd", "max_replicas", "engine", "queue", "servers", "arrival_cv2", "service_cv2", "customers"},
	"formula": {"name", "title", "source", "note", "claims", "grids", "constants", "steps", "expression", "command", "timeout", "field", "given", "gives"},
}

var fileSynonyms = map[string]string{"grid.tp": "tensor_parallel", "formula.expr": "expression", "formula.inputs": "constants", "grid.qps": "rate", "formula.claim": "claims"}

// Load reads a file of formulas, or the shipped one by its name.
func Load(path string) (*File, error) {
	path, dir, text, err := experiments.Named(path, experiments.Formulas)
	if err != nil {
		return nil, err
	}
	return Parse(path, dir, text)
}

// Parse is Load for a text; commands are run in dir.
func Parse(path, dir, text string) (*File, error) {
	doc, err := config.Parse(path, text)
	if err != nil {
		return nil, err
	}
	doc.SetSchema(fileSchema, fileSynonyms)
	f := &File{Path: path, Dir: dir}
	root := doc.Root()
	f.Title = config.Read(root, "title", config.Text, config.Default("Planner formulas", ""))
	f.Seed = uint64(config.Read(root, "seed", config.Int, config.Default(1, ""), config.Between(0, 1<<53)))
	f.Replications = config.Read(root, "replications", config.Int, config.Default(3, ""), config.Between(2, 100))
	f.Duration = config.Read(root, "duration", config.Span, config.Default(10*clock.Minute, ""), config.Between(10*clock.Second, clock.Day))
	f.Warmup = config.Read(root, "warmup", config.Span, config.Default(5*clock.Minute, ""), config.Between(0, clock.Day))
	f.Tolerance = config.Read(root, "tolerance", config.Share, config.Default(.1, ""), config.Between(0, 1.))
	grids := root.Tables("grid", "name", "[[grid]]")
	for _, t := range grids {
		f.Grids = append(f.Grids, readGrid(t))
	}
	formulas := root.Tables("formula", "name", "[[formula]]")
	for _, t := range formulas {
		f.Formulas = append(f.Formulas, readFormula(t, f.Grids))
	}
	root.Done()
	f.check(doc, root, grids, formulas)
	return f, doc.Err()
}

// check looks at what only shows with all of the file read.
func (f *File) check(doc *config.Doc, root *config.Table, grids, formulas []*config.Table) {
	if doc.Failures() > 0 {
		return
	}
	if len(grids) == 0 {
		root.Errorf("grid", "", "add a table [[grid]] with model, gpu, prompt, output and rate", "the file has no [[grid]]: there is nothing to compare with")
	}
	if len(formulas) == 0 {
		root.Errorf("formula", "", "add a table [[formula]] with name, claims and expression", "the file has no [[formula]]")
	}
	n := 0
	for i, g := range f.Grids {
		if slices.ContainsFunc(f.Grids[:i], func(o Grid) bool { return o.Name == g.Name }) {
			grids[i].Errorf("name", "", "give each a name of its own", "two grids are called %q", g.Name)
		}
		n += len(g.scenarios())
	}
	if n > maxScenarios {
		root.Errorf("grid", fmt.Sprintf("at most %d in all", maxScenarios), "shorten the lists", "the grids have %d scenarios", n)
	}
	for i := range f.Formulas {
		fm := &f.Formulas[i]
		if slices.ContainsFunc(f.Formulas[:i], func(o Formula) bool { return o.Name == fm.Name }) {
			formulas[i].Errorf("name", "", "give each a name of its own", "two formulas are called %q", fm.Name)
		}
		f.checkFormula(fm, formulas[i])
	}
}

func (f *File) checkFormula(fm *Formula, t *config.Table) {
	fits := false
	for _, g := range f.Grids {
		if !fm.on(g) {
			continue
		}
		if fm.Command != nil {
			fits = true
			break
		}
		_, err := fm.compile(inputNames(g.ClosedForm))
		var missing *missingError
		switch {
		case err == nil:
			fits = true
		case errors.As(err, &missing) && fm.Grids == nil: // perhaps it is of the other kind
		case errors.As(err, &missing):
			names := inputNames(g.ClosedForm)
			try := "see the inputs above"
			if near := config.Nearest(missing.name, names); near != "" {
				try = fmt.Sprintf("did you mean %q?", near)
			}
			t.Errorf("expression", strings.Join(names, ", "), try, "on grid %s: %s", g.Name, err)
			return
		default:
			t.Errorf("expression", "", "functions: "+strings.Join(sortedNames(functions), ", ")+", ceil, floor, round, int, max, min, abs", "%s", err)
			return
		}
	}
	if !fits {
		_, err := fm.compile(inputNames(false))
		t.Errorf("expression", strings.Join(inputNames(false), ", "), "for queues: "+strings.Join(inputNames(true), ", "), "the formula fits no grid: %s", orNone(err))
		return
	}
	if err := fm.CheckExample(); err != nil {
		t.Errorf("gives", "", "correct the example or the formula", "%s", err)
	}
}

func orNone(err error) string {
	if err == nil {
		return "none that it names claims " + "anything like it"
	}
	return err.Error()
}

// on tells whether a formula is to be tried on a grid.
func (fm *Formula) on(g Grid) bool {
	if c := claims[fm.Claims]; c.queue != g.ClosedForm && !c.both {
		return false
	}
	return fm.Grids == nil || slices.Contains(fm.Grids, g.Name)
}

func readGrid(t *config.Table) Grid {
	g := Grid{Name: config.Read(t, "name", config.Text, config.Required)}
	g.ClosedForm = config.Read(t, "queue", config.Bool, config.Default(false, ""))
	one := config.Default([]float64{1}, "")
	if g.ClosedForm {
		g.Servers = config.Read(t, "servers", numbers, one, each(1, 1000))
		g.Load = config.Read(t, "load", numbers, config.Required, each(.01, .99))
		g.ArrivalCV2 = config.Read(t, "arrival_cv2", numbers, one, each(0, 100))
		g.ServiceCV2 = config.Read(t, "service_cv2", numbers, one, each(0, 100))
		g.CustomersEach = config.Read(t, "customers", config.Int, config.Default(200_000, ""), config.Between(1000, 10_000_000))
		return g
	}
	g.Models = config.Read(t, "model", config.Texts, config.Required)
	g.GPUs = config.Read(t, "gpu", config.Texts, config.Required)
	g.TP = config.Read(t, "tensor_parallel", numbers, one, each(1, 64))
	g.Prompt = config.Read(t, "prompt", numbers, config.Required, each(1, 1e6))
	g.Output = config.Read(t, "output", numbers, config.Required, each(1, 1e6))
	g.Tail = config.Read(t, "tail", config.Float, config.Default(1., "all lengths equal"), config.Between(1, 20.))
	g.Rate = config.Read(t, "rate", numbers, each(1e-6, 1e5))
	g.Load = config.Read(t, "load", numbers, each(.01, 1.5))
	if (len(g.Rate) > 0) == (len(g.Load) > 0) {
		t.Errorf("rate", "", "rate sizes a fleet for requests per second; load drives one replica at a share of what it can serve", "a grid has either rate or load")
	}
	g.Burstiness = config.Read(t, "burstiness", numbers, one, each(.01, 1000))
	g.TTFT = config.Read(t, "ttft", config.Span, config.Default(2*clock.Second, ""), config.Between(clock.Millisecond, clock.Hour))
	g.TPOT = config.Read(t, "tpot", config.Span, config.Default(50*clock.Millisecond, ""), config.Between(clock.Millisecond/10, clock.Minute))
	g.Objective = config.Read(t, "objective", config.Share, config.Default(.99, ""), config.Between(.5, .9999))
	g.GPUHourUSD = config.Read(t, "gpu_hour_usd", config.Float, config.Default(2.95, ""), config.Between(0, 1000.))
	g.MaxReplicas = config.Read(t, "max_replicas", config.Int, config.Default(256, ""), config.Between(1, maxReplicas))
	g.Engine = config.Read(t, "engine", config.Text, config.Default("", ""))
	return g
}

func readFormula(t *config.Table, grids []Grid) Formula {
	var names []string
	for _, g := range grids {
		names = append(names, g.Name)
	}
	f := Formula{
		Name:      config.Read(t, "name", config.Text, config.Required),
		Title:     config.Read(t, "title", config.Text, config.Default("", "")),
		Source:    config.Read(t, "source", config.Text, config.Default("", "")),
		Note:      config.Read(t, "note", config.Text, config.Default("", "")),
		Claims:    config.Read(t, "claims", config.OneOf(sortedNames(claims)...), config.Required),
		Constants: config.Read(t, "constants", numberTable),
		Steps:     config.Read(t, "steps", config.Texts),
		Expr:      config.Read(t, "expression", config.Text, config.Default("", "")),
		Command:   config.Read(t, "command", config.Texts),
		Given:     config.Read(t, "given", numberTable),
		Gives:     config.Read(t, "gives", numberTable),
	}
	if t.Has("grids") {
		f.Grids = config.Read(t, "grids", config.Texts)
		for _, g := range f.Grids {
			if !slices.Contains(names, g) {
				t.Errorf("grids", strings.Join(names, ", "), "", "there is no grid %q", g)
			}
		}
	} else {
		t.Know("grids")
	}
	timeout := config.Read(t, "timeout", config.Span, config.Default(5*clock.Second, ""), config.Between(10*clock.Millisecond, 10*clock.Minute))
	f.Timeout = timeout.Seconds()
	f.Field = config.Read(t, "field", config.Text, config.Default(f.Claims, ""))
	if (f.Expr == "") == (len(f.Command) == 0) {
		t.Errorf("expression", "", `for example: expression = "ceil(rate / saturation)"`, "a formula has either an expression or a command")
	}
	return f
}

// numbers is a list of numbers, or one.
var numbers = config.Unit[[]float64]{Name: "a list of numbers", Allowed: "a number or a list of numbers", Example: "[1, 2]",
	Parse: func(v any) ([]float64, error) {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		var out []float64
		for _, x := range list {
			n, err := config.Float.Parse(x)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
		if out == nil {
			return nil, errors.New("is empty")
		}
		return out, nil
	},
	Format: func(v []float64) string { return strings.ReplaceAll(fmt.Sprint(v), " ", ", ") },
}

func each(lo, hi float64) config.Rule[[]float64] {
	return config.Where(func(list []float64) bool {
		return !slices.ContainsFunc(list, func(x float64) bool { return !(x >= lo && x <= hi) })
	}, "is out of range", fmt.Sprintf("%g to %g each", lo, hi), "")
}

// numberTable is names with numbers: plain, or with a unit of time or size.
var numberTable = config.Unit[Inputs]{Name: "names with numbers", Allowed: `{ name = number }`, Example: "{ safety = 0.7 }",
	Parse: func(v any) (Inputs, error) {
		table, ok := v.(map[string]any)
		if !ok {
			return nil, errors.New("is no table of numbers")
		}
		out := Inputs{}
		for _, name := range sortedNames(table) {
			n, err := quantity(table[name])
			if err != nil || !isName(name) {
				return nil, fmt.Errorf("has %q, which is no name with a number", name)
			}
			out[name] = n
		}
		return out, nil
	},
	Format: func(v Inputs) string { return fmt.Sprint(map[string]float64(v)) },
}

// quantity reads 0.7, "30%", "25ms" or "80GB" in SI units.
func quantity(v any) (float64, error) {
	n, err := config.Float.Parse(v)
	if err == nil {
		return n, nil
	}
	if n, err := config.Share.Parse(v); err == nil {
		return n, nil
	}
	if d, err := config.Span.Parse(v); err == nil {
		return d.Seconds(), nil
	}
	if n, err := config.Bytes.Parse(v); err == nil {
		return n, nil
	}
	if n, err := config.Rate.Parse(v); err == nil {
		return n, nil
	}
	return 0, err
}
