package calibrate

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slosim/experiments"
	"slosim/internal/accuracy"
	"slosim/internal/measured"
	"slosim/sim"
)

// truth is a run whose figures the simulator made itself with known constants.
func truth(t *testing.T) Case {
	t.Helper()
	r := measured.Run{Source: "user", Name: "truth", Setup: measured.Setup{Model: "llama-3.1-8b", GPU: "h100", Engine: "vllm", TP: 1, Weights: "bf16", KV: "bf16"}}
	at := 0.0
	for i := range 240 {
		at += .1 + .4*float64(i*i%7)/7
		r.Load.Requests = append(r.Load.Requests, measured.Request{At: at, Prompt: 100 + 1500*(i%3), Output: 40})
	}
	e, err := accuracy.Experiment(&r, "")
	if err != nil {
		t.Fatal(err)
	}
	real := e
	real.Pools = append(real.Pools[:0:0], e.Pools...)
	real.Pools[0].Deployment.Host.FrontFixedPs = 9e9
	real.Pools[0].Deployment.Host.StepFixedPs = 0.6e9
	_, err = sim.Run(context.Background(), real, sim.Options{Workers: 1, Served: func(s sim.Served) {
		q := &r.Load.Requests[s.Index]
		q.Seen, q.TTFT, q.E2E = true, s.First.Sub(s.Send).Seconds(), s.Last.Sub(s.Send).Seconds()
	}})
	if err != nil {
		t.Fatal(err)
	}
	return Case{Run: r, Experiment: e}
}

// Constants that made the data are found again, a constant that they say nothing
// about stays where it began, and the file that is written loads.
func TestKnownConstantsAreFoundAgain(t *testing.T) {
	c := truth(t)
	params, err := Find([]string{"front_fixed", "step_fixed", "sync_per_seq"})
	if err != nil {
		t.Fatal(err)
	}
	fit, err := Run(context.Background(), []Case{c}, Options{Params: params, FromCatalogue: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{9, 0.6, 20} {
		if p := fit.Params[i]; math.Abs(p.Value-want) > .05*want || p.Identified != (i < 2) {
			t.Errorf("%s = %.3f, want %.3f; identified: %v", p.Name, p.Value, want, p.Identified)
		}
	}
	if fit.Within > fit.Before/5 {
		t.Errorf("error %.4f before, %.4f fitted", fit.Before, fit.Within)
	}
	var text bytes.Buffer
	fit.Write(&text, Header{Engine: "vllm", Since: "0.19", GPU: "h100-sxm-80gb", Command: "sim calibrate", FittedOn: []string{"user/truth"}})
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if engine, err := experiments.CalibrationEngine(path); err != nil || engine != "vllm" {
		t.Errorf("%v in\n%s", err, text.String())
	}
	if !strings.Contains(text.String(), "not identified") {
		t.Error(text.String())
	}
}

func TestTooFewFiguresAreRefused(t *testing.T) {
	c := truth(t)
	for i := range c.Run.Load.Requests {
		c.Run.Load.Requests[i].Seen = false
	}
	c.Run.Figures = []measured.Figure{{Metric: measured.TTFTMean, Value: .1}}
	params, _ := Find([]string{"front_fixed", "step_fixed"})
	if _, err := Run(context.Background(), []Case{c}, Options{Params: params}); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Error(err)
	}
	if _, err := Find([]string{"speed_of_light"}); err == nil {
		t.Error("an unknown constant was found")
	}
}
