package sim

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// besideLongPrompt is one replica of llama-3.3-70b on H100 TP8 with short chat
// requests for two minutes, and one prompt of 128K less 1K that comes after one. A
// trace begins with its first row: that one is a token long.
func besideLongPrompt(t *testing.T) Experiment {
	file := filepath.Join(t.TempDir(), "long.csv")
	if err := os.WriteFile(file, []byte("at,prompt,output\n0,1,1\n60,130048,64\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := referenceDay(t, 1, 2*clock.Minute)
	e.Pools[0].Thermal.Enabled = false
	e.Traffic[0].Name, e.Traffic[0].Rate.Mean = "short", 6
	e.Traffic[0].Prompt, e.Traffic[0].Output = workloads.Dist{Kind: "lognormal", Mean: 500, P99: 1600}, fixed(100)
	e.Traffic = append(e.Traffic, workloads.Class{
		Name: "long", Stream: "long",
		Trace: &workloads.Trace{File: file, Format: "csv", Arrival: "at", Prompt: "prompt", Output: "output", Unit: clock.Second},
	})
	e.SLOs = []slo.Objective{{Name: "TTFT", Class: "short", Metric: slo.TTFT, Threshold: 2 * clock.Second, Target: .99, Window: 30 * clock.Day}}
	return e
}

// One long prompt takes what is left of every step's token budget, chunk by chunk,
// until it is done: short requests that come meanwhile get nothing, because running
// requests go first. long_prefill_token_threshold caps its chunks and leaves them
// the rest of the budget: their TTFT falls to a few steps, and the long one's grows.
// A smaller budget instead makes decoding smoother and does not let them in. A pool of
// its own for long prompts is what isolates them altogether.
func TestChunkLimitLetsShortRequestsPastALongPrompt(t *testing.T) {
	type outcome struct{ p50, p99, most, tpot, long float64 }
	run := func(name string, change func(e *Experiment)) (o outcome) {
		e := besideLongPrompt(t)
		change(&e)
		r, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Phases[0].Classes {
			switch {
			case c.Cohort != "all":
			case c.Class == "short":
				o.p50, o.p99, o.most, o.tpot = c.TTFT.P50.V, c.TTFT.P99.V, c.TTFT.Max, c.TPOT.P99.V
			case c.Class == "long":
				o.long = c.TTFT.Max
			}
		}
		t.Logf("%-28s short TTFT P50 %6.3f s, P99 %7.3f s, longest %7.3f s, TPOT P99 %5.1f ms; long TTFT %7.3f s", name, o.p50, o.p99, o.most, 1e3*o.tpot, o.long)
		return o
	}
	none := run("without the long prompt", func(e *Experiment) { e.Traffic = e.Traffic[:1] })
	plain := run("no limit", func(e *Experiment) {})
	limited := run("threshold 2048", func(e *Experiment) { e.Pools[0].Engine.LongPrefillTokens = 2048 })
	tighter := run("threshold 512", func(e *Experiment) { e.Pools[0].Engine.LongPrefillTokens = 512 })
	smaller := run("budget 2048, no limit", func(e *Experiment) { e.Pools[0].Engine.MaxBatchedTokens = 2048 })
	apart := run("a replica of its own", func(e *Experiment) {
		own := e.Pools[0]
		own.Name, own.Classes = "long", []string{"long"}
		e.Pools[0].Classes = []string{"short"}
		e.Pools = append(e.Pools, own)
	})

	if plain.most < .8*plain.long || plain.p99 < 4*none.p99 {
		t.Errorf("no limit: short TTFT P99 %.3f s, longest %.3f s, beside a prefill of %.3f s", plain.p99, plain.most, plain.long)
	}
	if limited.most > plain.most/5 || limited.p99 > plain.p99/5 || limited.long < plain.long {
		t.Errorf("threshold 2048: %+v, no limit: %+v", limited, plain)
	}
	if tighter.most > limited.most || tighter.tpot > limited.tpot || tighter.long < limited.long {
		t.Errorf("threshold 512: %+v, 2048: %+v", tighter, limited)
	}
	if smaller.most < plain.most {
		t.Errorf("budget 2048: short TTFT up to %.3f s, with 8192 up to %.3f s", smaller.most, plain.most)
	}
	if apart.p99 != none.p99 || apart.most != none.most {
		t.Errorf("apart: %+v, without: %+v", apart, none)
	}
}
