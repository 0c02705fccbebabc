package sim

import (
	"context"
	"testing"
)

// Another tool's definitions change what is reported, not what is judged: guidellm's
// TPOT has the TTFT in it, so it is larger.
func TestDefinitionsChangeReportsNotVerdicts(t *testing.T) {
	e := busyHour(t)
	own, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Definitions {
		e.Metrics = name
		r, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.SLOs {
			if r.SLOs[i].Bad != own.SLOs[i].Bad || r.SLOs[i].Good != own.SLOs[i].Good {
				t.Errorf("%s: %s is judged differently", name, r.SLOs[i].Name)
			}
		}
		a, b := r.Phases[0].Classes[0].TPOT.P50.V, own.Phases[0].Classes[0].TPOT.P50.V
		if larger := a > 1.02*b; larger != (name == GuideLLM) {
			t.Errorf("%s: TPOT P50 %g, ours %g", name, a, b)
		}
	}
}
