package models

import (
	"math"
	"testing"
)

// A step with prefill takes at least what the host needs to launch its layers;
// what is longer anyway, and decode, do not change.
func TestEagerLayersAreAFloorOfPrefill(t *testing.T) {
	d := deployment(t, "llama-3.1-8b", "h100-sxm-80gb", 8)
	plain := stepper(t, d)
	d.Host.EagerLayerPs = 900e6
	eager := stepper(t, d)
	gpu := func(c Cost) int64 { return c.Total() - c.Host - c.Head }
	if got, want := gpu(eager.Step(prefillBatch(128), 0)), int64(d.LLM.Layers)*900e6; got != want {
		t.Errorf("128 tokens take %d ps, want the floor %d", got, want)
	}
	for _, b := range []Batch{prefillBatch(8192), decodeBatch(64, 1000)} {
		if b.PrefillTokens > 0 && gpu(plain.Step(b, 0)) < int64(d.LLM.Layers)*900e6 {
			t.Fatalf("%+v is too short for this test", b)
		}
		if eager.Step(b, 0) != plain.Step(b, 0) {
			t.Errorf("%+v changed", b)
		}
	}
}

// KernelSpeed divides every kernel's time and leaves the host's alone.
func TestKernelSpeedScalesEveryKernel(t *testing.T) {
	for _, model := range []string{"llama-3.1-70b", "deepseek-v3", "gpt-oss-120b"} {
		d := deployment(t, model, "h200-sxm-141gb", 8)
		plain := stepper(t, d)
		d.KernelSpeed = 1.25
		fast := stepper(t, d)
		for _, b := range []Batch{decodeBatch(64, 1000), prefillBatch(400)} {
			p, f := plain.Step(b, 0), fast.Step(b, 0)
			if p.Host != f.Host || p.Compute != f.Compute || p.Memory != f.Memory {
				t.Errorf("%s: host or peak work changed", model)
			}
			got, want := float64(f.Total()-f.Host), float64(p.Total()-p.Host)/1.25
			if math.Abs(got/want-1) > 1e-5 {
				t.Errorf("%s %+v: kernels take %.0f ps, want %.0f", model, b, got, want)
			}
		}
	}
}

// Sampling sorts the vocabulary of every sequence: by hand, 0.1 and 0.2 ns per logit.
func TestSamplingSortsTheVocabulary(t *testing.T) {
	d := deployment(t, "llama-3.1-8b", "h100-sxm-80gb", 1)
	greedy := stepper(t, d).Step(decodeBatch(40, 500), 0)
	for sampling, ns := range map[string]float64{SamplingTopP: 0.1, SamplingTopK: 0.2} {
		d.Sampling = sampling
		got := stepper(t, d).Step(decodeBatch(40, 500), 0).Head - greedy.Head
		if want := 40 * ns * 1e3 * float64(d.LLM.Vocab); math.Abs(float64(got)-want) > 100 {
			t.Errorf("%s adds %d ps, want %.0f", sampling, got, want)
		}
	}
}

// Kernels of mxfp4 experts: engines on Blackwell compute in mxfp8, which is faster
// than unpacking; a kernel without coefficients is refused.
func TestExpertKernels(t *testing.T) {
	d := deployment(t, "gpt-oss-120b", "b200-sxm-180gb", 2)
	d.WeightDtype = MXFP4
	if k := DefaultExpertKernel("trtllm", d.GPU, d.LLM, MXFP4); k != ExpertMXFP8 {
		t.Errorf("trtllm on a B200 takes %q", k)
	}
	if k := DefaultExpertKernel("vllm", d.GPU, d.LLM, MXFP4); k != "" {
		t.Errorf("vllm on a B200 takes %q", k)
	}
	before := stepper(t, d).Step(decodeBatch(64, 1000), 0).Total()
	d.ExpertKernel = ExpertMXFP8
	if after := stepper(t, d).Step(decodeBatch(64, 1000), 0).Total(); after >= before {
		t.Errorf("mxfp8 takes %d ps, unpacking %d", after, before)
	}
	d.ExpertKernel = ExpertMarlin
	if _, err := NewStepper(d); err == nil {
		t.Error("Marlin on a B200 is not refused: it has no coefficients there")
	}
}
