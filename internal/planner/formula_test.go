package planner

import (
	"context"
	"math"
	"os/exec"
	"strings"
	"testing"

	"slosim/experiments"
)

func shipped(t *testing.T) *File {
	t.Helper()
	f, err := Load(experiments.Formulas)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func named(t *testing.T, f *File, name string) *Formula {
	t.Helper()
	for i := range f.Formulas {
		if f.Formulas[i].Name == name {
			return &f.Formulas[i]
		}
	}
	t.Fatalf("no formula %q", name)
	return nil
}

// The capacity function of the field gives the field's figures: 130.4 GiB of weights,
// 21 requests, 134 at once, 10 and 11 GPUs.
func TestCapacityFunctionHasTheFieldsArithmetic(t *testing.T) {
	fm := named(t, shipped(t), "capacity function")
	c, err := fm.compile(sortedNames(fm.Given))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.eval(fm.Constants, fm.Given)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got["weights"]-130.4) > .05 || got["max_seqs"] != 21 || math.Abs(got["concurrency"]-134) > 1e-9 || got["minimum"] != 10 || got[""] != 11 {
		t.Errorf("%v", got)
	}
}

// A planner of 25 lines of Python gives what the expression gives, scenario by
// scenario.
func TestExternalPlannerEqualsTheExpression(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	fm := named(t, shipped(t), "capacity function")
	c, err := fm.compile(sortedNames(fm.Given))
	if err != nil {
		t.Fatal(err)
	}
	other := *fm
	other.Expr, other.Command, other.Timeout, other.Field = "", []string{"python3", "capacity.py"}, 20, "gpus"
	for _, rate := range []float64{1, 20, 75.5} {
		in := Inputs{}
		for k, v := range fm.Given {
			in[k] = v
		}
		in["rate"] = rate
		want, err := c.eval(fm.Constants, in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := other.ask(context.Background(), "testdata", "test", in)
		if err != nil || got != want[""] {
			t.Errorf("rate %g: %v, %v; the expression gives %v", rate, got, err, want[""])
		}
	}
}

// What planners do wrong becomes a message about one scenario.
func TestBadPlannersGetAMessage(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"sleep 5", "no answer within"},
		{"echo oops >&2; exit 3", "exit status 3: oops"},
		{"echo hello", "no JSON object"},
		{`echo '{"replicas": 3}'`, `no "gpus"; it has replicas`},
		{`echo '{"gpus": "many"}'`, "is no number"},
		{"exec nothing-of-this-name", "exit status 127"},
	} {
		fm := Formula{Name: "bad", Claims: "gpus", Command: []string{"sh", "-c", c.script}, Timeout: .3, Field: "gpus"}
		if _, err := fm.ask(context.Background(), ".", "here", Inputs{"rate": 1, "odd": math.Inf(1)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.script, err)
		}
	}
	gpus := claims["gpus"]
	for _, v := range []float64{-1, math.NaN(), 1e9} {
		if sane(v, &gpus) == nil {
			t.Errorf("%v GPUs are taken", v)
		}
	}
}

// A planner that leaves a child behind has answered all the same.
func TestAnAnswerCountsAlthoughAChildLivesOn(t *testing.T) {
	fm := Formula{Name: "forks", Claims: "gpus", Command: []string{"sh", "-c", `sleep 3 & echo '{"gpus": 2}'`}, Timeout: 20, Field: "gpus"}
	if v, err := fm.ask(context.Background(), ".", "here", Inputs{"rate": 1}); v != 2 || err != nil {
		t.Errorf("%v, %v; want 2", v, err)
	}
}

// Erlang's C and the others have the values of ENGINE §10.
func TestQueueingFormulas(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"M/M/1", waitMMc(1, .8, 1), 4},
		{"M/M/2", waitMMc(2, 1.6, 1), 1.777778},
		{"M/M/16", waitMMc(16, 14.4, 1), .369590},
		{"C of M/M/4", erlangC(4, 3.2), .596432},
		{"M/D/1", waitMG1(.8, 1, 0), 2},
		{"M/G/1 of cs² 4", waitMG1(.8, 1, 4), 10},
		{"Kingman is exact for M/M/1", waitKingman(.8, 1, 1, 1), 4},
		{"a server of batches of one is M/M/1", batchNumber(.8, 1, 0, 1, 1, 0), 4},
		{"without slowing down it is M/M/∞", batchNumber(3, 1000, 0, 2, 1, 0), 6},
	} {
		if math.Abs(c.got/c.want-1) > 1e-5 {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
}

// Faults of a file come all at once, with place and what is allowed.
func TestFaultsOfAFileAreExplained(t *testing.T) {
	_, err := Parse("x.toml", ".", `
[[grid]]
name = "g"
queue = true
load = [0.5, 1.5]

[[formula]]
name = "f"
claims = "wait"
expression = "1"
`)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"x.toml:5:8", "0.01 to 0.99 each", `claims = "wait"`, "wait_mean", "2 errors"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	const grid = "[[grid]]\nname = \"g\"\nqueue = true\nload = [0.5]\n[[formula]]\nname = \"f\"\nclaims = \"wait_mean\"\n"
	for text, want := range map[string]string{
		`expression = "1 +"`: "1 +", `expression = "lode"`: `no input "lode"`,
		"expression = \"load\"\ngiven = { load = 2 }\ngives = { result = 3 }": "result is 2, not 3",
		`grids = ["h"]` + "\nexpression = \"load\"":                           `no grid "h"`,
	} {
		if _, err := Parse("x.toml", ".", grid+text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
