package accuracy

import (
	"slices"
	"strings"

	"slosim/models"
)

// samplingFits are the runs at which the catalogue's times of the sampler's sort
// were chosen; they count for no goal.
var samplingFits = []string{
	"mlenergy/lm-arena-chat meta-llama/Llama-3.1-8B-Instruct bf16 1 GPU batch 128",
	"mlenergy/lm-arena-chat Qwen/Qwen3-8B bf16 1 GPU batch 128",
}

// fittedHere tells whether a constant of the catalogue was found on a run.
func fittedHere(source, run string) bool { return slices.Contains(samplingFits, source+"/"+run) }

// samplingOf returns how vLLM draws a model's tokens when the client leaves it to
// the checkpoint's generation_config.json.
func samplingOf(model string) string {
	if strings.HasPrefix(model, "qwen") { // top_k = 20 and top_p
		return models.SamplingTopK
	}
	return models.SamplingTopP
}
