package accuracy

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slosim/internal/measured"
)

// even is a run of 300 equal requests, one every half second, on one H100.
func even() measured.Run {
	r := measured.Run{Source: "user", Name: "even", Setup: measured.Setup{Model: "Qwen/Qwen3-14B", GPU: "H100-80GB", Engine: "vllm", Version: "0.23.0", TP: 1, Weights: "bf16", KV: "bf16", MaxSeqs: 256, MaxBatchedTokens: 8192}}
	for i := range 300 {
		r.Load.Requests = append(r.Load.Requests, measured.Request{At: float64(i) / 2, Prompt: 500, Output: 50, Seen: true, TTFT: .05, E2E: .7})
	}
	return r
}

// A comparison with the simulator's own prediction has no error, and the same run
// gives the same rows.
func TestAPredictionComparedWithItselfHasNoError(t *testing.T) {
	run := even()
	e, err := Experiment(&run, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Predict(context.Background(), &run, e)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{measured.TTFTMean, measured.TTFTP99, measured.TPOTMean, measured.E2EP50} {
		run.Figures = append(run.Figures, measured.Figure{Metric: m, Value: p.Of(m, 0)})
	}
	rows, err := Compare(context.Background(), []measured.Run{run}, Options{})
	if err != nil || len(rows) != 4 {
		t.Fatal(rows, err)
	}
	for _, r := range rows {
		if r.Error == nil || math.Abs(*r.Error) > 1e-12 {
			t.Errorf("%s: %v", r.Metric, r.Error)
		}
	}
}

// What cannot be simulated is a row with a reason, never a crash.
func TestUnknownRunsAreRowsWithAReason(t *testing.T) {
	for what, change := range map[string]func(*measured.Run){
		"model":        func(r *measured.Run) { r.Setup.Model = "acme/Unheard-7B" },
		"GPU":          func(r *measured.Run) { r.Setup.GPU = "Z9" },
		"engine":       func(r *measured.Run) { r.Setup.Engine = "lmdeploy" },
		"weight_dtype": func(r *measured.Run) { r.Setup.Weights = "int3" },
		"requests":     func(r *measured.Run) { r.Load.Requests = nil },
		"fit":          func(r *measured.Run) { r.Setup.Model = "llama-3.1-405b" },
		"published":    func(r *measured.Run) { r.Reject = "not published" },
	} {
		run := even()
		run.Figures = []measured.Figure{{Metric: measured.TTFTMean, Value: .05}}
		change(&run)
		rows, err := Compare(context.Background(), []measured.Run{run}, Options{})
		if err != nil || len(rows) != 1 || rows[0].Error != nil || !strings.Contains(rows[0].Reason, what) {
			t.Errorf("%s: %+v %v", what, rows, err)
		}
	}
}

func TestNamesOfSourcesLeadToTheCatalogue(t *testing.T) {
	for name, want := range map[string]string{
		"meta-llama/Llama-2-7b-hf": "llama-2-7b", "nvidia/Llama-3.1-8B-Instruct-FP8": "llama-3.1-8b", "Qwen/Qwen3-235B-A22B-Thinking-2507-FP8": "qwen3-235b-a22b",
		"mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b", "nvidia/DeepSeek-V3.1-NVFP4": "deepseek-v3", "llama-3.3-70b-instruct": "llama-3.3-70b",
	} {
		if got, err := modelOf(name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"h100_sxm": "h100-sxm-80gb", "H100-SXM-80GB": "h100-sxm-80gb", "H100": "h100-sxm-80gb", "NVIDIA L40S": "l40s-48gb", "b200_sxm": "b200-sxm-180gb"} {
		if got, err := gpuOf(name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// The run at 2 requests/s, on which the host constants were fitted, and the one at
// 6, on which nothing was.
func TestResidencyRunsAreNearTheMeasured(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "data", "residency")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("needs the measured runs in ../shared/data, which only the developers have")
	}
	folder, err := measured.ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Compare(context.Background(), folder.Runs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]float64{measured.TTFTMean: .03, measured.TTFTP50: .02, measured.TPOTMean: .02, measured.E2EMean: .02, measured.Served: .03}
	n := 0
	for _, r := range rows {
		limit, judged := limits[r.Metric]
		if !judged || r.load == "mixed" || r.Saturated != (r.Metric == measured.Served) {
			continue
		}
		if n++; r.Error == nil || math.Abs(*r.Error) > limit {
			t.Errorf("%s %s: %v", r.Run, r.Metric, r.Error)
		}
	}
	if n < 17 {
		t.Errorf("only %d figures judged", n)
	}
}
