package models

import (
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"testing"

	"slosim/sim/clock"
)

// mlEnergyModels maps the model names of ML.ENERGY to the catalogue's.
var mlEnergyModels = map[string]string{
	"Llama 3.1 8B Instruct": "llama-3.1-8b", "Llama 3.1 70B Instruct": "llama-3.1-70b", "Llama 3.3 70B Instruct": "llama-3.3-70b",
	"Qwen 3 8B": "qwen3-8b", "Qwen 3 14B": "qwen3-14b", "Qwen 3 32B": "qwen3-32b", "Llama 3.1 405B Instruct FP8": "llama-3.1-405b",
	"GPT OSS 20B": "gpt-oss-20b", "GPT OSS 120B": "gpt-oss-120b", "Qwen 3 30B A3B Instruct": "qwen3-30b-a3b", "Qwen 3 30B A3B Thinking": "qwen3-30b-a3b",
	"Qwen 3 235B A22B Instruct": "qwen3-235b-a22b", "Qwen 3 235B A22B Instruct FP8": "qwen3-235b-a22b",
	"Qwen 3 235B A22B Thinking": "qwen3-235b-a22b", "Qwen 3 235B A22B Thinking FP8": "qwen3-235b-a22b",
}

// energyRun is one steady batch of ML.ENERGY: its decode step, and the work of an
// average step, in which as many prompts are prefilled as requests end.
type energyRun struct {
	name            string
	d               Deployment
	rows, output    float64
	itlMs, periodMs float64 // measured: median gap, and batch ÷ throughput
	watts           float64 // per GPU
	decode, work    Cost
}

// Prompts are not published; 200 tokens are assumed. The rows that run at a time
// are the long ones: with outputs of coefficient of variation c, a row has made
// (1 + c²)/2 mean outputs on average. The runs that their KV pool limits hold 654
// tokens per row at a mean output of 397 (Llama 8B), 841 at 620 (Qwen3 8B) and 664
// at 413 (Llama 70B), which is 200 + 1.1 mean outputs.
const (
	energyPrompt = 200
	energyHeld   = 1.1
)

func energyRuns(t *testing.T, keep func(r record) bool) []energyRun {
	var runs []energyRun
	for _, r := range sharedData(t, "mlenergy/steady_state_h100.csv") {
		name, ok := mlEnergyModels[r["nickname"]]
		// Attention beside experts dealt out runs on each GPU's own requests.
		if !ok || r["task"] == "sourcegraph-fim" || !keep(r) {
			continue
		}
		tp, ep := int(r.num(t, "tensor_parallel")), int(r.num(t, "expert_parallel"))
		d := deployment(t, name, "h100-sxm-80gb", tp)
		d.WeightDtype = map[string]string{"bfloat16": BF16, "fp8": FP8, "mxfp4": MXFP4}[r["weight_precision"]]
		d.Host.Async = false // vLLM 0.11.1
		d.EP, d.ExpertImbalance = ep, 1
		e := energyRun{
			name: r["nickname"], d: d, rows: r.num(t, "avg_batch_size") * float64(tp) / r.num(t, "num_gpus"), output: r.num(t, "avg_output_len"),
			itlMs: r.num(t, "median_itl_ms"), periodMs: 1e3 * r.num(t, "avg_batch_size") / r.num(t, "output_throughput_tokens_per_sec"),
			watts: r.num(t, "avg_power_watts") / r.num(t, "num_gpus"),
		}
		s := stepper(t, d)
		rows, ctx := int32(math.Round(max(1, e.rows))), int64(energyPrompt+energyHeld*e.output)
		e.decode = s.Step(decodeBatch(rows, ctx), 0)
		e.work = e.decode
		prefilled := e.rows / e.output * energyPrompt // tokens per step
		p := s.Step(prefillBatch(4096), 0)
		e.work.Compute += int64(float64(p.Compute) * prefilled / 4096)
		runs = append(runs, e)
	}
	return runs
}

func dense(r record) bool {
	return r["architecture"] == "Dense Transformer" && r["task"] == "lm-arena-chat" && r["weight_precision"] == "bfloat16"
}

// powerOf returns the model's power of a run, under the GPU's limit.
func (e energyRun) powerOf(p Power) float64 {
	d := e.d
	d.GPU.Common.Power = p
	h := NewHeat(d, 30)
	s := h.Start()
	h.Tick(&s, e.work.Compute, e.work.Memory, clock.FromSeconds(e.periodMs/1e3))
	return min(s.PowerW, h.CapW)
}

func powerSamples(runs []energyRun) []sample {
	var samples []sample
	for i, e := range runs {
		samples = append(samples, sample{seconds: e.watts, use: true, held: i%5 == 4, predicted: func(c any) float64 { return e.powerOf(c.(Power)) }})
	}
	return samples
}

func TestPowerFit(t *testing.T) {
	if !*fit {
		t.Skip("fits only with -fit")
	}
	samples := powerSamples(energyRuns(t, dense))
	common := mustGPU(t, "h100").Common.Power
	free := Power{MemoryW: 400, ComputeW: 800}
	fixed := func(c Power) Power {
		p := common
		p.MemoryW, p.ComputeW = c.MemoryW, c.ComputeW
		return p
	}
	for i := range samples {
		predicted := samples[i].predicted
		samples[i].predicted = func(c any) float64 { return predicted(fixed(c.(Power))) }
	}
	c := fixed(fitted(samples, free))
	held, all := errorsOf(samples, c)
	t.Logf("power: left out %.1f %%, all %.1f %%: %+v", held.mapePct(), all.mapePct(), c)
	text, err := os.ReadFile("gpus.toml")
	if err != nil {
		t.Fatal(err)
	}
	for key, v := range map[string]float64{"memory_w": c.MemoryW, "compute_w": c.ComputeW} {
		text = regexp.MustCompile(`(?m)^`+key+` = .*$`).ReplaceAll(text, []byte(fmt.Sprintf("%s = %.0f.0", key, v)))
	}
	if err := os.WriteFile("gpus.toml", text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPowerIsNearMLEnergys(t *testing.T) {
	p := mustGPU(t, "h100").Common.Power
	for _, c := range []struct {
		name string
		keep func(record) bool
		bar  float64
	}{
		{"dense bf16, chat (fitted, but for every fifth)", dense, 8},
		{"the rest: other tasks, FP8, experts", func(r record) bool { return !dense(r) }, 30},
	} {
		held, all := errorsOf(powerSamples(energyRuns(t, c.keep)), p)
		t.Logf("%s: mean error %.1f %% (left out %.1f %%), median %+.1f %% over %d runs", c.name, all.mapePct(), held.mapePct(), all.medianPct(), len(all))
		if all.mapePct() > c.bar {
			t.Errorf("%s: mean error %.1f %%, bar %.0f %%", c.name, all.mapePct(), c.bar)
		}
	}
}

// syncHost finds the two host constants of vLLM 0.11.1 on two runs of one model,
// the smallest batch and 64 rows of Llama 3.1 8B: everything else is predicted.
func syncHost(t *testing.T, runs []energyRun) (fixedMs, perRowUs float64) {
	t.Helper()
	gap := map[float64]float64{}
	for _, e := range runs {
		if e.name == "Llama 3.1 8B Instruct" {
			host := e.d.Host
			own := float64(host.SyncFixedPs) + float64(host.SyncPerSeqPs)*math.Round(e.rows)
			gap[math.Round(e.rows)] = e.itlMs - (float64(e.decode.Total())-own)/1e9
		}
	}
	perRow := (gap[64] - gap[8]) / (64 - 8)
	return gap[8] - 8*perRow, 1e3 * perRow
}

// TestITLIsNearMLEnergys: median gaps between tokens by batch, of the dense BF16
// models in chat.
func TestITLIsNearMLEnergys(t *testing.T) {
	runs := energyRuns(t, dense)
	fixedMs, perRowUs := syncHost(t, runs)
	t.Logf("host of vLLM 0.11.1, from two runs: %.2f ms per step and %.0f us per row", fixedMs, perRowUs)
	var all fitErrors
	byModel := map[string]*fitErrors{}
	for _, e := range runs {
		rows := math.Round(e.rows)
		host := e.d.Host
		own := float64(host.SyncFixedPs) + float64(host.SyncPerSeqPs)*rows
		ms := (float64(e.decode.Total())-own)/1e9 + fixedMs + perRowUs*rows/1e3
		if byModel[e.name] == nil {
			byModel[e.name] = &fitErrors{}
		}
		byModel[e.name].add(ms, e.itlMs)
		all.add(ms, e.itlMs)
		if testing.Verbose() {
			t.Logf("%-24s TP%d rows %4.0f: %6.2f ms, model %6.2f: %+.1f %%", e.name, e.d.TP, rows, e.itlMs, ms, 100*(ms/e.itlMs-1))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byModel)) {
		t.Logf("%s: mean error %.1f %%, median %+.1f %%", name, byModel[name].mapePct(), byModel[name].medianPct())
	}
	t.Logf("all %d: mean error %.1f %%", len(all), all.mapePct())
	if all.mapePct() > 8 {
		t.Errorf("mean error %.1f %%, the bar is 8 %%", all.mapePct())
	}
}

// offlineRate returns the tokens per second of a saturated Llama 2 70B in FP8 on
// H200s at a power limit, once the clock has settled: MLPerf's offline scenario,
// whose prompts and outputs are about 290 tokens each.
func offlineRate(t *testing.T, capW float64) (rate, mhz, watts float64) {
	t.Helper()
	d := deployment(t, "llama-2-70b", "h200", 1)
	d.WeightDtype, d.KVDtype, d.StaticScales = FP8, FP8, true
	s := stepper(t, d)
	h := NewHeat(d, 30)
	h.CapW = capW
	const rows, mean = 768, 290
	b := decodeBatch(rows, 2*mean)
	b.PrefillTokens, b.PrefillArea = rows, rows/mean*mean*mean/2
	b.Tokens += rows
	b.Seqs += rows / mean
	state := h.Start()
	for range 2000 {
		c := s.Step(b, state.Bin)
		h.Tick(&state, c.Compute, c.Memory, clock.Duration(c.Total()/1000))
		rate = rows * 1e12 / float64(c.Total())
	}
	return rate, float64(state.Bin * ClockStepMHz), state.PowerW
}

// MLPerf's H200 results at 500, 700 and 1000 W per GPU: -19, 0 and +11 % of offline
// throughput.
func TestPowerLimitsCostThroughputAsInMLPerf(t *testing.T) {
	base, _, _ := offlineRate(t, 700)
	for _, c := range []struct{ capW, wantPct float64 }{{500, -19}, {700, 0}, {1000, 11}} {
		rate, mhz, watts := offlineRate(t, c.capW)
		got := 100 * (rate/base - 1)
		t.Logf("%4.0f W: %.0f tokens/s at %.0f MHz and %.0f W: %+.1f %%, measured %+.0f %%", c.capW, rate, mhz, watts, got, c.wantPct)
		if math.Abs(got-c.wantPct) > 8 {
			t.Errorf("%4.0f W: %+.1f %%, measured %+.0f %%", c.capW, got, c.wantPct)
		}
	}
}

// TestSteadyPrefillUnderHeatRunsAsFastAsWithout: kappa is 0.96 of the clock with
// heat and 0.90 without. Steady prefill on one GPU is over its power limit at the
// highest clock, so the clock settles where both agree.
func TestSteadyPrefillUnderHeatRunsAsFastAsWithout(t *testing.T) {
	for _, name := range []string{"llama-3.1-8b", "qwen3-14b"} {
		d := deployment(t, name, "h100", 1)
		s := stepper(t, d)
		h := NewHeat(d, 30)
		state := h.Start()
		b := prefillBatch(8192)
		for range 1000 {
			c := s.Step(b, state.Bin)
			h.Tick(&state, c.Compute, c.Memory, clock.Duration(c.Total()/1000))
		}
		hot, fixed := s.Step(b, state.Bin), s.Step(b, 0)
		got := float64(hot.Total())/float64(fixed.Total()) - 1
		t.Logf("%s: %d MHz, %.0f W, step %+.1f %% against kappa = 0.90", name, state.Bin*ClockStepMHz, state.PowerW, 100*got)
		if math.Abs(got) > 0.03 {
			t.Errorf("%s: a steady prefill step takes %+.1f %% with heat", name, 100*got)
		}
	}
}
