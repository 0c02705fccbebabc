package accuracy

import (
	"fmt"

	"slosim/internal/measured"
	"slosim/models"
	"slosim/sim"
)

// Shares of the peaks that no serving stack reaches over a whole run.
const (
	// Of the dense peak alone, over a run that prefills and decodes. MLPerf's offline
	// records reach about 0.42 of the FP8 peak.
	mostOfPeak    = 0.7
	mostOfFP8Peak = 0.5
	// Of the time that arithmetic at the dense peak, weights and KV at the memory's
	// peak and all-reduces at the links' peak take one after the other.
	mostOfRoofline = 0.9
)

// fewRunning is the share of the clients from which on a closed loop whose KV pool
// holds them all must have been held back by a limit that its source does not tell.
const fewRunning = 0.5

// mostPrompt is up to how many times as long as the output a prompt may be for
// that: computing longer ones can hold requests back as well.
const mostPrompt = 10

// central returns the central TTFT and TPOT that a run reports, 0 if it does not.
func central(run *measured.Run) (ttft, tpot float64) {
	for _, f := range run.Figures {
		switch f.Metric {
		case measured.TTFTMean:
			ttft = f.Value
		case measured.TPOTMean:
			tpot = f.Value
		}
	}
	return ttft, tpot
}

// impossible says why a closed-loop row cannot be what it claims.
func impossible(run *measured.Run, e sim.Experiment) string {
	ttft, tpot := central(run)
	if run.Load.InFlight == 0 || run.Load.Requests[0].Seen || ttft == 0 || tpot == 0 {
		return ""
	}
	l := loopOf(run, ttft, tpot)
	if why := l.heldBack(run, e); why != "" {
		return why
	}
	if isMoE(e.Pools[0].Deployment.LLM) {
		return ""
	}
	return l.tooFast(&e.Pools[0].Deployment, e.Pools[0].Replicas)
}

// loop is what a closed-loop row's own latencies say of its load.
type loop struct {
	clients  float64
	requests float64 // per second
	prompt   float64 // tokens, mean
	output   float64
	tpot     float64 // seconds
	running  float64 // share of the time that a client's request has had its first token
}

func loopOf(run *measured.Run, ttft, tpot float64) loop {
	l := loop{clients: float64(run.Load.InFlight), tpot: tpot}
	n := float64(len(run.Load.Requests))
	for _, q := range run.Load.Requests {
		l.prompt += float64(q.Prompt) / n
		l.output += float64(q.Output) / n
	}
	decode := (l.output - 1) * tpot
	l.requests = l.clients / (ttft + decode)
	l.running = decode / (ttft + decode)
	return l
}

// heldBack finds rows in which most requests waited although there was memory for
// all of them.
func (l *loop) heldBack(run *measured.Run, e sim.Experiment) string {
	engine := &e.Pools[0].Engine
	blocks, err := poolBlocks(e)
	if err != nil || run.Setup.KVBlocks > 0 || l.prompt > mostPrompt*l.output {
		return ""
	}
	holds := blocks * float64(engine.BlockSize) / (l.prompt + l.output) * float64(e.Pools[0].Replicas)
	if l.running < fewRunning && holds > l.clients {
		return fmt.Sprintf("its own figures say that %.0f of %.0f requests ran at a time, though the KV pool holds %.0f: a limit that is not published held them back",
			l.clients*l.running, l.clients, holds)
	}
	return ""
}

// tooFast finds rows that need more than the GPUs can do. Such runs repeat their
// prompts, so that a prefix cache answers most of them.
func (l *loop) tooFast(d *models.Deployment, replicas int) string {
	m := d.LLM
	gpus := float64(d.TP * replicas)
	matrices := float64(m.Params() - 2*int64(m.Vocab)*int64(m.Hidden))
	bf16, most := d.GPU.PeakBF16TFLOPS*1e12, mostOfPeak
	peak := bf16
	if d.WeightDtype != models.BF16 && d.GPU.PeakFP8TFLOPS > 0 {
		peak, most = d.GPU.PeakFP8TFLOPS*1e12, mostOfFP8Peak
	}
	compute := 2 * matrices * l.requests * (l.prompt + l.output) / (peak * gpus)
	if compute > most {
		return fmt.Sprintf("its own latencies imply %.0f %% of the GPUs' dense peak: the prompts must have come from a prefix cache", 100*compute)
	}
	pairs := l.prompt * l.prompt / 2
	compute += l.requests * 4 * float64(m.Layers*m.Heads*m.HeadDim) * pairs / (bf16 * gpus)
	rows := l.clients * l.running / float64(replicas)
	perStep := float64(m.WeightBytes(d.WeightDtype))/float64(d.TP) + rows*(l.prompt+l.output/2)*float64(m.KVBytesPerTokenPerGPU(d.TP, d.KVDtype))
	memory := perStep / (d.GPU.BandwidthGBs * 1e9) / l.tpot
	if share := compute + memory + l.linkShare(d, replicas); share > mostOfRoofline {
		return fmt.Sprintf("its own latencies imply %.0f %% of what the GPUs can do at their peak rates: the prompts must have come from a prefix cache", 100*share)
	}
	return ""
}

// linkShare returns the share of the time that the all-reduces of all tokens take
// at the links' peak.
func (l *loop) linkShare(d *models.Deployment, replicas int) float64 {
	if d.TP == 1 || d.GPU.NVLinkGBs == 0 {
		return 0
	}
	tp := float64(d.TP)
	bytes := 2 * float64(d.LLM.Layers) * 2 * (tp - 1) / tp * float64(d.LLM.Hidden) * 2
	return l.requests / float64(replicas) * (l.prompt + l.output) * bytes / (d.GPU.NVLinkGBs * 1e9)
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
