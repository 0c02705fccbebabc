package report

import (
	"fmt"
	"math"
	"math/rand/v2"

	"slosim/internal/config"
	"slosim/models"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
	"slosim/workloads"
)

// The fixture is a plausible result of the prompt-growth experiment. Its numbers
// are made up in the shape of a real run, so that every part of a report has
// something to show; no test reads them as findings.

const (
	launch  = 32 * clock.Hour
	rampEnd = 33 * clock.Hour
	reps    = 5
)

func est(v, half float64, n int64) stats.Estimate {
	return stats.Estimate{V: v, Lo: v - half, Hi: v + half, N: n, R: reps}
}

func dist(n int64, mean, p50, p90, p95, p99, rel float64) sim.Distribution {
	return sim.Distribution{
		Mean: est(mean, mean*rel/2, n), P50: est(p50, p50*rel/3, n), P90: est(p90, p90*rel/2, n),
		P95: est(p95, p95*rel*.7, n), P99: est(p99, p99*rel, n), Max: p99 * 2.3, Exact: true,
	}
}

// promptGrowth is the whole fixture: three days, 720 windows, two objectives.
func promptGrowth() *sim.Result {
	e := promptGrowthExperiment()
	r := &sim.Result{
		Experiment: e,
		Seeds:      []uint64{1, 2, 3, 4, 5},
		End:        clock.Time(e.Duration),
		Verdict: sim.Verdict{Status: sim.Missed, SLO: "chat TTFT",
			Reason: "chat TTFT: 11.7 % of the requests miss TTFT 2s, only 1 % may; the budget of 30d is gone on day 4, 20:00"},
		Phases:   promptGrowthPhases(),
		Pools:    []sim.PoolResult{mainPool()},
		Series:   promptGrowthSeries(e),
		Warnings: []string{"The projection repeats day 3 until day 30: weekends and growth are not in it."},
		NotModelled: []string{
			"network between client and gateway (0 s)", "client retries after a time-out",
			"prefix cache: every prompt is computed in full", "GPU and host failures",
		},
		Requests: 7_214_532, Steps: 214_331_870,
	}
	r.SLOs = promptGrowthSLOs(e)
	r.Findings = []sim.Finding{
		{Title: "Long prompts hold up the short ones", Share: .41,
			Evidence: "41 % of the misses are existing prompts (median 1,530 tokens) whose TTFT is 83 % queue: they wait behind prefills of 20K tokens."},
		{Title: "A part of the new prompts is too long for any replica", Share: .18,
			Evidence: "Prompts from 17,920 tokens on take more than 2 s on an idle replica: 2.1 % of all requests after the launch."},
		{Title: "The load at the peak rises from 22 % to 83 % of what the pool can serve",
			Evidence: "8.25 requests/s against a saturation rate of 37.5/s before and 9.9/s after the launch."},
	}
	return r
}

func promptGrowthExperiment() sim.Experiment {
	long := workloads.Dist{Kind: "lognormal", Mean: 20000, P99: 60000}
	objective := slo.Objective{Name: "chat TTFT", Class: "chat", Metric: slo.TTFT,
		Threshold: 2 * clock.Second, Target: .99, Window: 30 * clock.Day}
	existing := objective
	existing.Name, existing.Exclude = "chat TTFT, existing prompts", []string{"feature"}
	return sim.Experiment{
		Name:     "prompt-growth",
		Title:    "Prompt growth: a feature takes 30 % of chat from 2K to 20K tokens",
		Question: "Does TTFT P99 hold, who is hurt, and on which day is the error budget gone?",
		Duration: 72 * clock.Hour, Warmup: 30 * clock.Minute, Seed: 1, Replications: reps,
		Pools: []sim.Pool{{Name: "main", Replicas: 4, Router: "least-outstanding", GPUHourUSD: 2.95,
			Deployment: models.Deployment{LLM: llama70(), GPU: h100(), TP: 8, WeightDtype: "bf16", KVDtype: "bf16", MemoryUtilization: .9},
			Engine:     sim.EngineSpec{Kind: "vllm", MaxBatchedTokens: 8192, MaxSeqs: 1024, MaxModelLen: 131072, BlockSize: 16, KVBlocks: 94321},
			Thermal:    sim.ThermalSpec{Enabled: true, AmbientC: 30}}},
		Traffic: []workloads.Class{{Name: "chat", Stream: "chat",
			Rate:   workloads.Rate{Mean: 5.5, Shape: "diurnal", Peak: 14 * clock.Hour, PeakToTrough: 3, Burstiness: 1},
			Prompt: workloads.Dist{Kind: "lognormal", Mean: 2000, P99: 8000},
			Output: workloads.Dist{Kind: "lognormal", Mean: 256, P99: 1024}}},
		Changes: []workloads.Change{{Name: "feature", Class: "chat", At: launch, Ramp: clock.Hour,
			Share: .3, RateFactor: 1, Prompt: &long}},
		SLOs: []slo.Objective{objective, existing},
		Assumptions: []string{
			"The clock falls with power and temperature as in docs/model.md; κ₀ = 0.96 is not calibrated on this fleet.",
			"Inlet air of 30 °C.",
		},
	}
}

func llama70() models.LLM {
	return models.LLM{Name: "llama-3.3-70b", Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, HeadDim: 128,
		Intermediate: 28672, Vocab: 128256, MaxModelLen: 131072, Source: "config.json of Llama-3.3-70B-Instruct"}
}

func h100() models.GPU {
	return models.GPU{Name: "h100-sxm-80gb", MemoryMiB: 81559, PeakBF16TFLOPS: 989, PeakFP8TFLOPS: 1979,
		BandwidthGBs: 3352, NVLinkGBs: 450, TDPW: 700, MaxClockMHz: 1980, MaxTempC: 87,
		Sources: map[string]string{
			"memory_mib":  "torch.cuda.get_device_properties on the data's host",
			"peak_tflops": "NVIDIA H100 data sheet, dense BF16", "bandwidth_gbs": "NVIDIA H100 data sheet", "tdp_w": "NVIDIA H100 data sheet"}}
}

// metaFixture is what the command adds to the result.
func metaFixture() Meta {
	return Meta{Version: "0.1.0", Command: "sim run experiments/prompt-growth.toml", Provenance: &config.Provenance{
		File: "experiments/prompt-growth.toml", SHA256: "3f1c9a0b7d5e4c2a8f6b1d0e9c7a5b3f2e1d0c9b8a7f6e5d4c3b2a190807f6e5",
		Entries: []config.Entry{
			{Path: "title", Value: "Prompt growth: a feature takes 30 % of chat from 2K to 20K tokens", Origin: "prompt-growth.toml:1"},
			{Path: "duration", Value: "72h", Origin: "prompt-growth.toml:4"},
			{Path: "replications", Value: "5", Origin: "default"},
			{Path: "warmup", Value: "30m", Origin: "default"},
			{Path: "pool.main.model", Value: "llama-3.3-70b", Origin: "prompt-growth.toml:9"},
			{Path: "pool.main.replicas", Value: "4", Origin: "--set"},
			{Path: "pool.main.gpu.bandwidth_gbs", Value: "3352", Origin: "catalogue: h100-sxm-80gb", Note: "NVIDIA H100 data sheet"},
			{Path: "pool.main.gpu.peak_bf16_tflops", Value: "989", Origin: "catalogue: h100-sxm-80gb", Note: "NVIDIA H100 data sheet, dense"},
			{Path: "pool.main.thermal.ambient_c", Value: "30", Origin: "default", Note: "assumption"},
			{Path: "traffic.chat.rate.mean", Value: "5.5/s", Origin: "prompt-growth.toml:17"},
			{Path: "change.feature.share", Value: "30%", Origin: "prompt-growth.toml:25"},
		},
	}}
}

func promptGrowthPhases() []sim.Phase {
	stage := func(net, queue, prefill, decode, publish float64) sim.Stages {
		return sim.Stages{Network: est(net, net*.01, 1), Queue: est(queue, queue*.04, 1), Prefill: est(prefill, prefill*.01, 1),
			Decode: est(decode, decode*.02, 1), Publish: est(publish, publish*.02, 1)}
	}
	row := func(cohort string, n int64, ttft sim.Distribution, s sim.Stages, prompt float64, bad int64) sim.ClassPhase {
		tpot := dist(n, .021, .0196, .027, .031, .041, .02)
		e2e := dist(n, 6.2, 4.9, 11.8, 15.4, 27.3, .02)
		return sim.ClassPhase{Class: "chat", Cohort: cohort, N: n, TTFT: ttft, Answered: ttft, TPOT: tpot, E2E: e2e, Stages: s,
			Outcomes: sim.Outcomes{OK: n - bad, Rejected: bad}, ByLength: lengthBands(n-bad, cohort, s.Queue.V),
			Prompt: dist(n, prompt, prompt*.77, prompt*2.1, prompt*2.6, prompt*4, .01), Output: dist(n, 256, 198, 512, 660, 1024, .01)}
	}
	phases := []sim.Phase{
		{Name: "before", From: 0, To: clock.Time(launch)},
		{Name: "ramp", From: clock.Time(launch), To: clock.Time(rampEnd)},
		{Name: "after", From: clock.Time(rampEnd), To: clock.Time(72 * clock.Hour)},
	}
	before := row("all", 2_961_204, dist(2_961_204, .174, .152, .262, .312, .42, .02), stage(.004, .028, .139, 5.4, .001), 2000, 0)
	phases[0].Classes = []sim.ClassPhase{before}
	for i, n := range []int64{123_377, 3_862_931} {
		phases[i+1].Classes = []sim.ClassPhase{
			row("all", n, dist(n, .94, .448, 2.17, 3.02, 4.9, .045), stage(.009, .42, .51, 5.9, .002), 7400, 212),
			row("existing", n*7/10, dist(n*7/10, .66, .341, 1.58, 2.35, 4.1, .05), stage(.004, .41, .245, 5.9, .001), 2000, 0),
			row("feature", n*3/10, dist(n*3/10, 1.59, 1.32, 3.24, 4.08, 6.4, .04), stage(.022, .45, 1.13, 6.1, .002), 19400, 212),
		}
	}
	return phases
}

// lengthBands spreads n answered requests over the ranges of prompt lengths; the
// long ones take their prefill, and all of them the queue.
func lengthBands(n int64, cohort string, queue float64) []sim.LengthBand {
	long := map[string]float64{"all": .3 * min(1, queue/.3), "feature": 1}[cohort]
	var out []sim.LengthBand
	for k, share := range mix(long) {
		b := sim.LengthBand{UpTo: math.Inf(1), N: int64(share * float64(n))}
		tokens := 2 * sim.PromptEdges[len(sim.PromptEdges)-1]
		if k < len(sim.PromptEdges) {
			b.UpTo, tokens = sim.PromptEdges[k], sim.PromptEdges[k]
		}
		if b.N > 0 {
			p50, p99 := .02+tokens*4e-5+.2*queue, .1+tokens*5e-5+7*queue
			b.P50, b.P99 = est(p50, p50*.01, b.N), est(p99, p99*(.01+8/math.Sqrt(float64(b.N))), b.N)
		} else {
			b.P50 = stats.Estimate{V: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
			b.P99 = b.P50
		}
		out = append(out, b)
	}
	return out
}

func mainPool() sim.PoolResult {
	return sim.PoolResult{
		Name: "main", Replicas: 4, GPUs: 32, KVBlocks: 94321, KVTokens: 1_509_120, KVPeak: .61,
		Preemptions: est(3.4, 2.1, 17), LostTokens: est(41200, 26000, 17), Busy: est(.973, .002, reps),
		Load: []sim.PhaseLoad{{Phase: "before", MeanRate: 5.1, PeakRate: 8.25, Saturation: 37.5},
			{Phase: "ramp", MeanRate: 5.9, PeakRate: 6.2, Saturation: 15.1}, {Phase: "after", MeanRate: 5.5, PeakRate: 8.25, Saturation: 9.9}},
		SaturationRate: 9.9, PeakLoad: .833, ClockMHz: est(1843, 6, reps), ClockMinMHz: 1665, PowerW: est(472, 4, reps),
		TempC: est(58.1, .4, reps), TempMaxC: 73.6, GPUHours: 2304, USD: 6796.8, USDPerMonth: 67968, EnergyKWh: 1087,
		Split: sim.StepSplit{Gemm: .58, Attn: .09, Comm: .17, Small: .08, Head: .03, Host: .05},
	}
}

// promptGrowthSeries draws 720 windows of 6 minutes.
func promptGrowthSeries(e sim.Experiment) sim.Series {
	const n = 720
	rng := rand.New(rand.NewPCG(7, 11))
	noise := func(rel float64) float64 { return 1 + rel*rng.NormFloat64() }
	s := sim.Series{Width: 6 * clock.Minute, T: make([]clock.Time, n)}
	all, existing, feature := sim.ClassSeries{Class: "chat", Cohort: "all"}, sim.ClassSeries{Class: "chat", Cohort: "existing"}, sim.ClassSeries{Class: "chat", Cohort: "feature"}
	pool := sim.PoolSeries{Name: "main"}
	temp := 42.0
	for i := range n {
		s.T[i] = clock.Time(i) * clock.Time(s.Width)
		h := s.T[i].Seconds() / 3600
		rate := 5.5 * (1 + .5*math.Cos(2*math.Pi*(h-14)/24))
		ramp := min(1, max(0, h-32))
		load := rate / (37.5 + ramp*(9.9-37.5))
		queue := .012 + .35*load*load*load/(1-min(load, .93))*noise(.12)
		p50 := (.14 + .25*ramp*.7 + queue*.35) * noise(.02)
		p99 := (.3 + .2*load + ramp*(3.6+.8*load) + queue*1.4) * noise(.05)
		addClass(&all, rate*noise(.03), p50, p99, queue, .135+.375*ramp, 1+2.7*ramp, rng)
		if ramp > 0 {
			addClass(&existing, rate*(1-.3*ramp), p50*.82, p99*.78, queue*.95, .24, 1, rng)
			addClass(&feature, rate*.3*ramp, p50*2.9, p99*1.27, queue*1.1, 1.12, 9.7, rng)
		} else {
			addClass(&existing, rate, p50, p99, queue, .135, 1, rng)
			addClass(&feature, 0, math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), rng)
		}
		all.PromptMix = append(all.PromptMix, mix(.3*ramp))
		temp += (36 + 42*min(1, load*1.1+.1) - temp) * .12
		addPool(&pool, load, temp, ramp, noise)
	}
	s.Classes, s.Pools = []sim.ClassSeries{all, existing, feature}, []sim.PoolSeries{pool}
	return s
}

func addClass(c *sim.ClassSeries, rate, p50, p99, queue, prefill, length float64, rng *rand.Rand) {
	wobble := .04 + .05*rng.Float64()
	for dst, v := range map[*[]float64]float64{
		&c.Arrivals: rate, &c.Completions: rate * .998, &c.Bad: min(1, max(0, (p99-1.9)/26)), &c.TTFTP50: p50, &c.TTFTP99: p99,
		&c.TTFTP99Lo: p99 * (1 - wobble), &c.TTFTP99Hi: p99 * (1 + wobble*1.4), &c.TPOTP50: .019 + .002*p50, &c.TPOTP99: .035 + .004*p50,
		&c.Network: .004 * math.Sqrt(length), &c.Queue: queue, &c.Prefill: prefill, &c.Publish: .0012,
		&c.PromptP50: 1540 * math.Pow(length, .4), &c.PromptP90: 4200 * math.Pow(length, 1.2), &c.PromptP99: 8000 * math.Pow(length, 1.4),
	} {
		*dst = append(*dst, v)
	}
}

func addPool(p *sim.PoolSeries, load, temp, ramp float64, noise func(float64) float64) {
	clockMHz := 1980 - 260*max(0, load-.2)
	for dst, v := range map[*[]float64]float64{
		&p.Running: 42 * load * noise(.04), &p.Waiting: max(0, 9*(load-.55)*noise(.3)), &p.KVUse: .5 * load, &p.KVMax: min(1, .62*load*noise(.05)),
		&p.Preempt: max(0, (load-.8)*.02*noise(.5)), &p.ClockMHz: clockMHz, &p.PowerW: 210 + 470*load*noise(.02), &p.TempC: temp, &p.TempMaxC: temp + 6*noise(.1),
		&p.Busy: min(1, .9+.12*load),
	} {
		*dst = append(*dst, v)
	}
	prefill := .1 + .2*ramp
	p.Split = append(p.Split, sim.StepSplit{Gemm: .48 + prefill*.5, Attn: .09, Comm: .17, Small: .12 - prefill*.2, Head: .04, Host: .1 - prefill*.3})
}

// mix is the share of prompts per length bucket when long is the new share.
func mix(long float64) []float64 {
	short := []float64{.01, .05, .17, .36, .3, .09, .018, .002, 0, 0}
	grown := []float64{0, 0, 0, 0, .02, .12, .33, .36, .155, .015}
	out := make([]float64, len(short))
	for i := range out {
		out[i] = (1-long)*short[i] + long*grown[i]
	}
	return out
}

func promptGrowthSLOs(e sim.Experiment) []sim.SLO {
	chat := sim.SLO{
		Objective: e.SLOs[0], Status: sim.Missed, Judged: "after", Attained: est(.8834, .0019, 3_862_931), Good: 6_487_597, Bad: 459_915,
		Reason:    "bad 11.7 % [11.5, 11.8] in phase after, 1 % allowed",
		IdleFloor: est(.0207, 0, 1), IdleLength: 17920,
		Phases: []sim.SLOPhase{{Good: 2_961_100, Bad: 104, BadShare: est(.000035, .000008, 2_961_204)},
			{Good: 113_900, Bad: 9477, BadShare: est(.0768, .004, 123_377)}, {Good: 3_412_597, Bad: 450_334, BadShare: est(.1166, .0019, 3_862_931)}},
		Blame: []sim.Blame{{Cohort: "feature", Stage: "prefill", Share: .44, Count: 202_363}, {Cohort: "existing", Stage: "queue", Share: .36, Count: 165_569},
			{Cohort: "feature", Stage: "queue", Share: .15, Count: 68_987}, {Cohort: "existing", Stage: "prefill", Share: .0495, Count: 22_784}, {Cohort: "feature", Stage: "", Share: .0005, Count: 212}},
		BlameText: "59 % of the misses are the new long prompts; 41 % are existing prompts, most of which waited behind them.",
		Budget:    burnDown(0, .1166, 142_560),
		Alerts: []sim.Alert{
			{Name: "page 14.4x 1h/5m", Severity: "page", Fired: at(33.2), Resolved: at(34.9)}, {Name: "page 6x 6h/30m", Severity: "page", Fired: at(33.9), Resolved: clock.Never},
			{Name: "ticket 3x 1d/2h", Severity: "ticket", Fired: at(36.4), Resolved: clock.Never}, {Name: "ticket 1x 3d/6h", Severity: "ticket", Fired: at(36.4), Resolved: clock.Never}},
	}
	existing := chat
	existing.Objective = e.SLOs[1]
	existing.Attained, existing.Good, existing.Bad = est(.9315, .0016, 2_704_051), 5_600_010, 188_590
	existing.Reason, existing.IdleFloor, existing.IdleLength = "bad 6.9 % [6.7, 7.0] in phase after, 1 % allowed", est(0, 0, 1), 17920
	existing.Blame = chat.Blame[1:2]
	existing.BlameText = "100 % of the misses are existing prompts, most of which waited in the queue."
	existing.Phases = []sim.SLOPhase{chat.Phases[0], {Good: 83_000, Bad: 3400, BadShare: est(.039, .003, 86_400)}, {Good: 2_518_800, Bad: 185_250, BadShare: est(.0685, .0016, 2_704_051)}}
	existing.Budget, existing.Alerts = burnDown(0, .0685, 106_900), chat.Alerts[1:]
	for i := range 73 {
		burn := .004
		if i > 33 {
			burn = 11.6 + 3.4*math.Cos(2*math.Pi*float64(i-14)/24)
		}
		chat.Burn = append(chat.Burn, sim.BurnPoint{T: at(float64(i)), Rate: burn})
		existing.Burn = append(existing.Burn, sim.BurnPoint{T: at(float64(i)), Rate: burn * .58})
	}
	return []sim.SLO{chat, existing}
}

func at(h float64) clock.Time { return clock.Time(h * 3600e9) }

// burnDown spends bad of each hour's requests from the launch on, after a share
// that is gone before the run.
func burnDown(before, bad, total float64) sim.Budget {
	b := sim.Budget{Total: total, WindowN: total * 100, AllowedMinutes: 432, BadMinutes: est(2331, 6, reps), WeekAlarm: true}
	marks := []sim.Mark{{Percent: 50}, {Percent: 80}, {Percent: 100}}
	spent := before
	for h := 0; h <= 30*24; h++ {
		t := at(float64(h))
		b.Curve = append(b.Curve, sim.BudgetPoint{T: t, Spent: spent, Lo: spent * .97, Hi: spent * 1.03, Projected: h > 72})
		if h == 72 {
			b.Spent = est(spent-before, (spent-before)*.03, reps)
		}
		for i := range marks {
			if m := &marks[i]; !m.Reached && spent*100 >= m.Percent {
				*m = sim.Mark{Percent: m.Percent, Reached: true, At: t, Lo: t.Add(-80 * clock.Minute), Hi: t.Add(95 * clock.Minute), InSpan: h <= 72}
			}
		}
		if last := marks[2]; last.Reached && t > last.At.Add(clock.Day) {
			break
		}
		if h >= 33 {
			rate := 5.5 * 3600 * (1 + .5*math.Cos(2*math.Pi*float64(h-14)/24))
			spent += rate * bad / total
		}
	}
	b.Marks, b.Projected = marks, est(10.9, .3, reps)
	return b
}

// seriesName numbers a class of the fixture with many of them.
func seriesName(i int) string { return fmt.Sprintf("class-%02d", i) }
