package planner

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Inputs are what a formula may ask of a scenario, by name, in SI units: seconds,
// requests per second, bytes, tokens, GPUs.
type Inputs map[string]float64

// Formula is a planner's formula: an expression, steps that lead to one, or a
// command of its own, and what the result claims.
type Formula struct {
	Name, Title string
	Source      string // where it is from
	Note        string // what is known against it
	Claims      string // one of Claims
	Grids       []string
	Constants   Inputs // its own numbers, such as a safety factor

	Steps   []string // "name = expression", in order
	Expr    string
	Command []string // instead of Expr
	Timeout float64  // seconds, of the command
	Field   string   // of the command's answer

	Given, Gives Inputs // its worked example, if it has one
}

// units and functions that expressions have.
var units = Inputs{"s": 1, "ms": 1e-3, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// expression functions beside those of expr itself (ceil, floor, round, int, max,
// min, abs).
var functions = map[string]struct {
	args int
	help string
	call func(a []float64) float64
}{
	"sqrt":          {1, "square root", func(a []float64) float64 { return math.Sqrt(a[0]) }},
	"exp":           {1, "e to the power", func(a []float64) float64 { return math.Exp(a[0]) }},
	"log":           {1, "natural logarithm", func(a []float64) float64 { return math.Log(a[0]) }},
	"erlang_b":      {2, "servers, erlangs: share lost", func(a []float64) float64 { return erlangB(whole(a[0]), a[1]) }},
	"erlang_c":      {2, "servers, erlangs: share that waits", func(a []float64) float64 { return erlangC(whole(a[0]), a[1]) }},
	"wait_mmc":      {3, "servers, rate, mu: mean wait of M/M/c", func(a []float64) float64 { return waitMMc(whole(a[0]), a[1], a[2]) }},
	"wait_mg1":      {3, "rate, mu, cs2: Pollaczek–Khinchine", func(a []float64) float64 { return waitMG1(a[0], a[1], a[2]) }},
	"kingman":       {4, "rate, mu, ca2, cs2: Kingman's wait of G/G/1", func(a []float64) float64 { return waitKingman(a[0], a[1], a[2], a[3]) }},
	"allen_cunneen": {5, "servers, rate, mu, ca2, cs2: wait of G/G/c", func(a []float64) float64 { return waitAllenCunneen(whole(a[0]), a[1], a[2], a[3], a[4]) }},
	"batch_concurrency": {6, "rate, most, prefill, output, step_base, step_per_seq: number in a server of batches", func(a []float64) float64 {
		return batchNumber(a[0], whole(a[1]), a[2], a[3], a[4], a[5])
	}},
}

// whole turns a count of servers into an int that bounds the work of a function.
func whole(x float64) int {
	if math.IsNaN(x) {
		return 0
	}
	return int(math.Max(0, math.Min(x, 1e6)))
}

// step is a compiled line of a formula.
type step struct {
	name    string
	program *vm.Program
}

// compiled is a formula ready for one kind of scenario.
type compiled struct{ steps []step }

// missingError names an input that a kind of scenario does not have.
type missingError struct{ name string }

func (e *missingError) Error() string { return fmt.Sprintf("there is no input %q", e.name) }

// compile prepares the expression for scenarios that have the inputs.
func (f *Formula) compile(have []string) (*compiled, error) {
	env := map[string]any{}
	for _, name := range have {
		env[name] = 0.0
	}
	for name := range units {
		env[name] = 0.0
	}
	for name := range f.Constants {
		env[name] = 0.0
	}
	c := &compiled{}
	add := func(name, text string) error {
		p, err := compileOne(text, env)
		if err != nil {
			return err
		}
		c.steps = append(c.steps, step{name, p})
		return nil
	}
	for _, line := range f.Steps {
		name, text, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if !ok || !isName(name) {
			return nil, fmt.Errorf("the step %q is no line of the form name = expression", line)
		}
		if _, taken := functions[name]; taken {
			return nil, fmt.Errorf("the step %q has the name of a function", line)
		}
		if err := add(name, text); err != nil {
			return nil, fmt.Errorf("step %s: %w", name, err)
		}
		env[name] = 0.0
	}
	return c, add("", f.Expr)
}

func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func compileOne(text string, env map[string]any) (*vm.Program, error) {
	options := []expr.Option{expr.Env(env)}
	for name, f := range functions {
		options = append(options, expr.Function(name, func(args ...any) (any, error) {
			if len(args) != f.args {
				return nil, fmt.Errorf("%s takes %d arguments (%s), not %d", name, f.args, f.help, len(args))
			}
			numbers := make([]float64, len(args))
			for i, a := range args {
				n, err := number(a)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				numbers[i] = n
			}
			return f.call(numbers), nil
		}))
	}
	p, err := expr.Compile(strings.TrimSpace(text), options...)
	if err == nil {
		return p, nil
	}
	var at *file.Error
	if errors.As(err, &at) {
		if name, ok := strings.CutPrefix(at.Message, "unknown name "); ok {
			return nil, &missingError{name}
		}
		return nil, fmt.Errorf("%q at character %d: %s", text, at.Column+1, at.Message)
	}
	return nil, err
}

// number turns what an expression gives into a float64.
func number(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int:
		return float64(v), nil
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	}
	return 0, fmt.Errorf("%v is no number", v)
}

// eval computes the steps; the result has the name "".
func (c *compiled) eval(inputs ...Inputs) (Inputs, error) {
	env := map[string]any{}
	for name, v := range units {
		env[name] = v
	}
	for _, in := range inputs {
		for name, v := range in {
			env[name] = v
		}
	}
	out := Inputs{}
	for _, s := range c.steps {
		v, err := expr.Run(s.program, env)
		if err != nil {
			return out, err
		}
		n, err := number(v)
		if err != nil {
			return out, err
		}
		env[s.name], out[s.name] = n, n
	}
	return out, nil
}

// CheckExample computes the formula's worked example; the error names what differs.
// Figures count to the digits that they are written with, at most one part in 2,000.
func (f *Formula) CheckExample() error {
	if len(f.Gives) == 0 || f.Expr == "" {
		return nil
	}
	c, err := f.compile(sortedNames(f.Given))
	if err != nil {
		return err
	}
	got, err := c.eval(f.Constants, f.Given)
	if err != nil {
		return err
	}
	var wrong []string
	for _, name := range sortedNames(f.Gives) {
		key := name
		if name == "result" {
			key = ""
		}
		v, ok := got[key]
		if want := f.Gives[name]; !ok || math.Abs(v-want) > math.Abs(want)/2000 {
			wrong = append(wrong, fmt.Sprintf("%s is %.6g, not %.6g", name, v, want))
		}
	}
	if wrong != nil {
		return fmt.Errorf("its example gives other figures: %s", strings.Join(wrong, ", "))
	}
	return nil
}

func sortedNames[V any](m map[string]V) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
