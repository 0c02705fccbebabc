package planner

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// On queues with closed forms Erlang's C and Pollaczek–Khinchine are found exact,
// Kingman's bound is too high by what is known, and a formula that is wrong by a
// fifth is found wrong everywhere.
func TestClosedFormsAreExactAndWrongOnesAreFound(t *testing.T) {
	f := shipped(t)
	queues := f.Grids[:0:0]
	for _, g := range f.Grids {
		if g.ClosedForm {
			if testing.Short() {
				g.CustomersEach /= 4
			}
			queues = append(queues, g)
		}
	}
	f.Grids = queues
	r, err := Validate(context.Background(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]Verdict{}
	for _, v := range r.Formulas {
		by[v.Formula] = v
	}
	for _, name := range []string{"Erlang C", "Pollaczek–Khinchine"} {
		if v := by[name]; !v.Exact || v.Grade != "safe" || v.Answered < 9 {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := by["Erlang C, 20 % short"]; v.Exact || v.Optimistic != v.Answered || v.Answered != 9 || v.MedianErr > -.15 || v.MedianErr < -.25 {
		t.Errorf("%+v", v)
	}
	// With ca² = ¼ Kingman overestimates (it is a bound of G/G/1): most of all at low
	// load and fixed service.
	for _, row := range r.Rows {
		if s := row.op.scenario; row.Formula == "Kingman" && s.servers == 1 && s.arrival == .25 && row.Error < -.02 {
			t.Errorf("%s: Kingman is below the simulated wait by %.1f %%", row.Scenario, -100*row.Error)
		}
	}
}

const small = `
replications = 2
duration = "60s"
warmup = "20s"
[[grid]]
name = "g"
model = ["llama-3.1-8b"]
gpu = ["h100"]
prompt = [1000, 3000]
output = [100]
rate = [2, 40]
objective = "95%"
`

// A fleet is the fewest replicas that hold the objectives: one fewer does not. A
// planner that fails in one scenario has answers in the others, and every report can
// be written.
func TestFleetsAreTheFewestAndFaultsStayInTheirScenario(t *testing.T) {
	f, err := Parse("small.toml", t.TempDir(), small+`
[[formula]]
name = "one"
claims = "gpus"
expression = "1"
[[formula]]
name = "many"
claims = "replicas"
expression = "50"
[[formula]]
name = "mean"
claims = "concurrency"
expression = "rate * e2e_mean"
[[formula]]
name = "moody"
claims = "gpus"
command = ["sh", "-c", "if grep -q '\"prompt\":3000'; then echo nonsense; else echo '{\"gpus\": 2}'; fi"]
[[formula]]
name = "hangs"
claims = "gpus"
command = ["sleep", "9"]
timeout = "50ms"
`)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Validate(context.Background(), f, Options{Store: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range r.Operating {
		if op.fault != nil || op.fewest < 1 {
			t.Fatalf("%s: %v, %d replicas, %s", op.scenario.Name, op.fault, op.fewest, op.why)
		}
		if op.fewest > 1 {
			if p := op.answers[op.fewest-1]; p != nil {
				if ok, _ := p.holds(); ok {
					t.Errorf("%s: %d replicas hold the objectives too", op.scenario.Name, op.fewest-1)
				}
			}
		}
	}
	by := map[string]Verdict{}
	for _, v := range r.Formulas {
		by[v.Formula] = v
	}
	if v := by["many"]; v.Wasteful != 4 || v.ExtraGPUs == 0 || v.ExtraUSD <= 0 {
		t.Errorf("%+v", v)
	}
	if v := by["mean"]; v.Safe != 4 {
		t.Errorf("Little's law with means: %+v", v)
	}
	if v := by["moody"]; v.Faults != 2 || v.Answered != 2 {
		t.Errorf("%+v", v)
	}
	if v := by["hangs"]; v.Faults != 4 {
		t.Errorf("%+v", v)
	}
	var text, data bytes.Buffer
	r.Markdown(&text)
	if err := r.JSON(&data); err != nil {
		t.Fatal(err)
	}
	page, err := r.Document("sim validate").HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"moody", "no JSON object", "timed out"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(string(page), want) || !strings.Contains(data.String(), want) {
			t.Errorf("%q is missing in a report", want)
		}
	}
}

// The shipped grid stays within its bound.
func TestShippedGridIsSmall(t *testing.T) {
	f, n := shipped(t), 0
	for i := range f.Grids {
		n += len(f.Grids[i].scenarios())
	}
	if n > maxScenarios || n < 100 {
		t.Errorf("%d scenarios", n)
	}
}
