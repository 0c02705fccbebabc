package accuracy

import (
	"slices"
	"strings"

	"slosim/models"
)

// vLLM draws tokens as the checkpoint's generation_config.json says unless the
// client says otherwise. With top-p it sorts the whole vocabulary of every row,
// with top-k besides it also masks by rank: time per logit, in nanoseconds.
// Both were chosen from a grid over ML.ENERGY's chat rows and NVIDIA's Qwen3-32B rows:
// those rows are no blind predictions. Greedy clients do not pay it.
const (
	topPNs     = 0.1
	topKTopPNs = 0.2
)

// samplingFits are the runs at which the choice was made; they count for no goal.
var samplingFits = []string{
	"mlenergy/lm-arena-chat meta-llama/Llama-3.1-8B-Instruct bf16 1 GPU batch 128",
	"mlenergy/lm-arena-chat Qwen/Qwen3-8B bf16 1 GPU batch 128",
}

// fittedHere tells whether a constant of this package was found on a run.
func fittedHere(source, run string) bool { return slices.Contains(samplingFits, source+"/"+run) }

// sampledUs returns the host time per request and step with the sampler's sort.
func sampledUs(model string, tp int) float64 {
	ns := topPNs
	if strings.HasPrefix(model, "qwen") { // top_k = 20 and top_p in its generation_config.json
		ns = topKTopPNs
	}
	plain := float64(models.DefaultHost(tp).StepPerSeqPs) / 1e6
	m, err := models.FindLLM(model)
	if err != nil {
		return plain
	}
	return plain + ns*float64(m.Vocab)/1000
}
