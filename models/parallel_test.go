package models

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestLatentKVIsTheSameOnEveryRank(t *testing.T) {
	m := mustLLM(t, "deepseek-v3")
	if got := m.KVBytesPerTokenPerGPU(8, BF16); got != 61*(512+64)*2 {
		t.Errorf("%d bytes per token on one of 8 ranks, want 61·576·2", got)
	}
	if a, b := m.KVBytesPerToken(FP8), m.KVBytesPerToken(BF16); 2*a != b {
		t.Errorf("fp8 %d, bf16 %d", a, b)
	}
}

func TestWindowedLayersHoldTheirWindowOnly(t *testing.T) {
	m := mustLLM(t, "gpt-oss-120b")
	full := int64(18 * 2 * 8 * 64 * 2)
	if got, want := m.KVBytesPerToken(BF16), full+full*128/2048; got != want {
		t.Errorf("%d bytes per token, want %d of full layers and a sixteenth", got, want)
	}
	m.Window = 4096 // most requests stay inside: as without
	if got := m.KVBytesPerToken(BF16); got != 2*full {
		t.Errorf("long window: %d bytes, want %d", got, 2*full)
	}
}

func TestFormatsTakeTheirBitsAndScales(t *testing.T) {
	m := mustLLM(t, "llama-3.1-8b")
	whole := m.layerSizes(whole)
	for dtype, bits := range map[string]float64{BF16: 16, FP8: 8, INT8: 8, INT4: 4 + 20.0/128, MXFP4: 4.25, NVFP4: 4.5} {
		got := float64(m.WeightBytes(dtype)) - 2*float64(whole.bf16+m.embeddings()+int64(m.Hidden))
		if want := float64(whole.matrices) * bits / 8; math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%s: %.0f bytes of matrices, want %.0f", dtype, got, want)
		}
	}
	gpt := mustLLM(t, "gpt-oss-120b")
	if got := float64(gpt.WeightBytes(MXFP4)) / 1e9; math.Abs(got-65.2) > 0.5 {
		t.Errorf("gpt-oss-120b: %.1f GB, the checkpoint has about 65", got)
	}
	if got := float64(mustLLM(t, "deepseek-v3").WeightBytes(FP8)) / 1e9; math.Abs(got-674) > 15 {
		t.Errorf("deepseek-v3: %.0f GB, the checkpoint has about 688 with its extra layer", got)
	}
}

func TestStagesShareWeightsAndKV(t *testing.T) {
	d := deployment(t, "llama-3.1-405b", "h100-sxm-80gb", 8)
	if _, err := d.Memory(16); err == nil {
		t.Fatal("405B in BF16 fits on 8 GPUs")
	}
	d.PP = 2
	m, err := d.Memory(16)
	if err != nil {
		t.Fatal(err)
	}
	if half := float64(d.LLM.WeightBytes(BF16)) / 16 / gib; math.Abs(m.WeightsGiB/half-1) > 0.02 || d.GPUs() != 16 {
		t.Errorf("%.1f GiB of weights per GPU, a sixteenth is %.1f; %d GPUs", m.WeightsGiB, half, d.GPUs())
	}
}

func TestAPipelineHasABubbleWhereThereAreFewRows(t *testing.T) {
	flat := deployment(t, "llama-3.3-70b", "h100-sxm-80gb", 4)
	piped := flat
	piped.PP = 2
	a, b := stepper(t, flat), stepper(t, piped)
	one, lone := a.Step(decodeBatch(1, 1000), 0), b.Step(decodeBatch(1, 1000), 0)
	if lone.Gemm != one.Gemm || lone.Attn != one.Attn || lone.Comm <= one.Comm {
		t.Errorf("a lone row passes all stages: %+v, without stages %+v", lone, one)
	}
	many, few := a.Step(decodeBatch(512, 1000), 0), b.Step(decodeBatch(512, 1000), 0)
	if r := float64(few.Attn) / float64(many.Attn); r < 0.45 || r > 0.6 {
		t.Errorf("attention of many rows takes %.2f of one stage's time, want about half", r)
	}
	chunk, lonely := a.Step(prefillBatch(4096), 0), b.Step(prefillBatch(4096), 0)
	if lonely.Gemm != chunk.Gemm {
		t.Error("a lone prompt is faster through a pipeline")
	}
}

func TestStepsOfAnyDeploymentGrowByTheirSlope(t *testing.T) {
	var all []*Stepper
	for _, name := range []string{"deepseek-v3", "gpt-oss-120b", "mixtral-8x7b"} {
		d := deployment(t, name, "h200", 8)
		for _, pp := range []int{1, 3} {
			d.PP = pp
			all = append(all, stepper(t, d))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(all).Draw(t, "deployment")
		b := anyBatch(t, 8192)
		steps := rapid.Int64Range(1, 10_000).Draw(t, "steps")
		later := b
		later.DecodeCtx += steps * int64(b.DecodeSeqs)
		want := s.Step(b, 0)
		slope := s.Slope(b.DecodeSeqs, 0)
		want.Add(&slope, steps)
		if got := s.Step(later, 0); got != want {
			t.Fatalf("after %d steps %+v, want %+v", steps, got, want)
		}
	})
}

func TestExpertsThatABatchTouchesAreRead(t *testing.T) {
	k, _ := newMoE(deployment(t, "qwen3-30b-a3b", "h100", 1))
	if got := k.touched(1); math.Abs(got-8) > 1e-9 {
		t.Errorf("one token touches %.2f experts, want 8", got)
	}
	if got := k.touched(16); math.Abs(got-128*(1-math.Pow(1-8.0/128, 16))) > 1e-9 {
		t.Errorf("16 tokens touch %.2f", got)
	}
	if got := k.touched(1e6); math.Abs(got-128) > 1e-9 {
		t.Errorf("many tokens touch %.2f of 128", got)
	}
	// The second row of a batch touches nearly as many more: a decode step of
	// experts grows with the rows where a dense one does not.
	s := stepper(t, deployment(t, "qwen3-30b-a3b", "h100", 1))
	one, eight := s.Step(decodeBatch(1, 1000), 0), s.Step(decodeBatch(8, 1000), 0)
	if r := float64(eight.Memory) / float64(one.Memory); r < 3 {
		t.Errorf("8 rows move %.1f times the bytes of one", r)
	}
}

func TestAHotRankAndTheNetworkSlowExpertsDown(t *testing.T) {
	d := deployment(t, "deepseek-v3", "h200", 8)
	d.WeightDtype = FP8
	step := func(ep int, imbalance float64) Cost {
		e := d
		e.EP, e.ExpertImbalance = ep, imbalance
		return stepper(t, e).Step(prefillBatch(8192), 0)
	}
	even, hot := step(8, 1), step(8, 2)
	if hot.Gemm <= even.Gemm || hot.Comm != even.Comm {
		t.Errorf("a hot rank: %+v, even %+v", hot, even)
	}
	if wide := step(32, 1); wide.Comm <= even.Comm {
		t.Errorf("experts on four nodes exchange tokens in %d ps, on one in %d", wide.Comm, even.Comm)
	}
	if got := d.imbalance(); got != 1 {
		t.Errorf("imbalance without expert parallelism is %v", got)
	}
}

func TestAllReduceAcrossNodesTakesLonger(t *testing.T) {
	g := mustGPU(t, "h100")
	eight, sixteen := newAllReduce(g, 8), newAllReduce(g, 16)
	for _, bytes := range []float64{1 << 14, 1 << 20, 1 << 27} {
		if a, b := eight.seconds(bytes), sixteen.seconds(bytes); b <= a {
			t.Errorf("%.0f bytes: %.3g s over 16 GPUs, %.3g over 8", bytes, b, a)
		}
	}
	nvl72 := mustGPU(t, "gb200")
	if k := newAllReduce(nvl72, 16); k.alphaS != 0 {
		t.Error("16 GPUs of one NVLink domain cross a network")
	}
	pcie := newAllReduce(mustGPU(t, "h100-pcie"), 2)
	if a, b := pcie.seconds(1<<24), eight.seconds(1<<24); a < b {
		t.Errorf("a bridge is faster than a switch: %.3g and %.3g s", a, b)
	}
}

func TestWhatWasNotMeasuredIsNoted(t *testing.T) {
	if d := deployment(t, "llama-3.1-8b", "h100", 1); !d.Fitted() {
		t.Errorf("fitted deployment has notes %q", d.Notes())
	}
	for _, change := range []func(*Deployment){
		func(d *Deployment) { d.GPU = mustGPU(t, "mi300x") },
		func(d *Deployment) { d.WeightDtype = INT4 },
		func(d *Deployment) { d.KVDtype = INT8 },
		func(d *Deployment) { d.TP = 16 },
		func(d *Deployment) { d.LLM, d.GPU = mustLLM(t, "deepseek-v3"), mustGPU(t, "a100") },
	} {
		d := deployment(t, "llama-3.1-8b", "h100", 1)
		change(&d)
		if d.Fitted() {
			t.Errorf("%s %s %s TP%d on %s has no note", d.LLM.Name, d.WeightDtype, d.KVDtype, d.TP, d.GPU.Name)
		}
	}
	if err := mustGPU(t, "mi300x").CheckThermal(); err == nil {
		t.Error("heat of an MI300X is modelled from unknown figures")
	}
	if err := mustGPU(t, "h100").CheckThermal(); err != nil {
		t.Error(err)
	}
}
