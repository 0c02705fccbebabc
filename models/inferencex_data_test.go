package models

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
)

// inferenceXModels maps checkpoints of InferenceX to the catalogue.
var inferenceXModels = map[string]string{
	"deepseek-ai/DeepSeek-R1": "deepseek-r1", "deepseek-ai/DeepSeek-V3": "deepseek-v3",
	"openai/gpt-oss-120b": "gpt-oss-120b", "Qwen/Qwen3-235B-A22B-FP8": "qwen3-235b-a22b",
}

// inferenceXTPOT returns the mean gap between tokens of a closed loop of
// concurrency C: a decode step of C rows, in which as many prompts are prefilled
// as requests end. It leaves out queues and KV limits.
func inferenceXTPOT(t *testing.T, r record) (predicted, measured float64, ok bool) {
	name, known := inferenceXModels[r["model_path"]]
	gpu := map[string]string{"h100_sxm": "h100", "h200_sxm": "h200", "b200_sxm": "b200"}[r["system"]]
	tp, dp := r["tp_size"], r["attention_dp_size"]
	if !known || gpu == "" || r["mode"] != "agg" || dp != "" && dp != "1" || r["pp_size"] != "1" && r["pp_size"] != "" || r["silicon_tpot_ms"] == "" || tp == "1" && r["gpus"] != "1" {
		return 0, 0, false
	}
	n := int(r.num(t, "tp_size"))
	if n > 8 {
		return 0, 0, false
	}
	d := deployment(t, name, gpu, n)
	d.WeightDtype = FP8
	if r["precision"] == "fp4" {
		d.WeightDtype = NVFP4
	}
	if name == "gpt-oss-120b" {
		d.WeightDtype = MXFP4
	}
	if ep := r["moe_ep_size"]; ep == tp && n > 1 {
		d.EP, d.ExpertImbalance = n, 1
	}
	if d.Validate() != nil {
		return 0, 0, false
	}
	isl, osl, c := 0.9*r.num(t, "isl"), 0.9*r.num(t, "osl"), r.num(t, "concurrency")
	tokens := c / osl * isl
	b := decodeBatch(int32(c), int64(isl+osl/2))
	whole := math.Floor(tokens / isl)
	share := tokens/isl - whole
	s := stepper(t, d)
	step := func(prompts float64) float64 {
		x := b
		x.PrefillTokens = int32(prompts * isl)
		x.PrefillArea = int64(prompts * isl * isl / 2)
		x.Tokens += x.PrefillTokens
		x.Seqs += int32(prompts)
		if x.Tokens > d.MaxBatchedTokens {
			return math.NaN()
		}
		return float64(s.Step(x, 0).Total()) / 1e9
	}
	predicted = (1-share)*step(whole) + share*step(whole+1)
	return predicted, r.num(t, "silicon_tpot_ms"), !math.IsNaN(predicted)
}

// spread returns the factor that centres log ratios of predicted to measured, and
// the absolute errors in per cent once it is taken out, sorted.
func spread(logs []float64) (factor float64, errorsPct []float64) {
	e := slices.Sorted(slices.Values(logs))
	middle := e[len(e)/2]
	for _, x := range e {
		errorsPct = append(errorsPct, 100*math.Abs(math.Exp(x-middle)-1))
	}
	slices.Sort(errorsPct)
	return math.Exp(-middle), errorsPct
}

// TestExpertModelsStandNearInferenceX: no constant of this model was fitted on
// these runs. One factor per engine is taken out; the bar is for the median.
func TestExpertModelsStandNearInferenceX(t *testing.T) {
	engines, groups := map[string][]float64{}, map[string][]float64{}
	for _, r := range sharedData(t, "inferencex/serving.csv") {
		if predicted, measured, ok := inferenceXTPOT(t, r); ok {
			x := math.Log(predicted / measured)
			group := fmt.Sprintf("%s %s %s", r["backend"], r["system"], inferenceXModels[r["model_path"]])
			engines[r["backend"]] = append(engines[r["backend"]], x)
			groups[group] = append(groups[group], x)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		factor, e := spread(groups[k])
		t.Logf("%-35s %3d runs: factor %.2f, median error after it %.1f %%", k, len(e), factor, e[len(e)/2])
	}
	var all []float64
	for _, k := range slices.Sorted(maps.Keys(engines)) {
		factor, e := spread(engines[k])
		t.Logf("%-35s %3d runs: factor %.2f, median error after it %.1f %%", k, len(e), factor, e[len(e)/2])
		all = append(all, e...)
	}
	slices.Sort(all)
	got := all[len(all)/2]
	t.Logf("one factor per engine: median error over %d runs %.1f %%", len(all), got)
	if got > 20 {
		t.Errorf("median error %.1f %%", got)
	}
}
