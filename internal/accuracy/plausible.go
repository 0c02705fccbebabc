package accuracy

import (
	"fmt"

	"slosim/internal/measured"
	"slosim/models"
	"slosim/sim"
)

// Shares of the dense peak that no serving stack reaches over a whole run that
// prefills and decodes. MLPerf's offline records reach about 0.42 of the FP8 peak.
const (
	mostOfPeak    = 0.7
	mostOfFP8Peak = 0.5
)

// impossible says why a closed-loop row cannot be what it claims: the clients that
// its own latencies imply would need more FLOP/s than the GPUs have. Such runs
// repeat their prompts, so that a prefix cache answers most of them.
func impossible(run *measured.Run, e sim.Experiment) string {
	var ttft, tpot float64
	for _, f := range run.Figures {
		switch f.Metric {
		case measured.TTFTMean:
			ttft = f.Value
		case measured.TPOTMean:
			tpot = f.Value
		}
	}
	d := &e.Pools[0].Deployment
	if run.Load.InFlight == 0 || run.Load.Requests[0].Seen || ttft == 0 || tpot == 0 || isMoE(d.LLM) {
		return ""
	}
	var tokens, seconds float64
	for _, q := range run.Load.Requests {
		tokens += float64(q.Prompt + q.Output)
		seconds += ttft + float64(q.Output-1)*tpot
	}
	rate := float64(run.Load.InFlight) * tokens / seconds // tokens per second
	matrices := float64(d.LLM.Params() - 2*int64(d.LLM.Vocab)*int64(d.LLM.Hidden))
	peak, most := d.GPU.PeakBF16TFLOPS, mostOfPeak
	if d.WeightDtype != models.BF16 && d.GPU.PeakFP8TFLOPS > 0 {
		peak, most = d.GPU.PeakFP8TFLOPS, mostOfFP8Peak
	}
	if share := 2 * matrices * rate / 1e12 / (peak * float64(d.TP*e.Pools[0].Replicas)); share > most {
		return fmt.Sprintf("its own latencies imply %.0f %% of the GPUs' dense peak: the prompts must have come from a prefix cache", 100*share)
	}
	return ""
}

// isMoE tells whether a model has experts.
func isMoE(m models.LLM) bool { return m.MoE.Experts > 0 }

// moeName is isMoE for a name as a source writes it; false when it is unknown.
func moeName(name string) bool {
	known, err := modelOf(name)
	if err != nil {
		return false
	}
	m, err := models.FindLLM(known)
	return err == nil && isMoE(m)
}
