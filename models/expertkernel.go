package models

import (
	"fmt"
	"strings"
)

// Kernels of mxfp4 experts beside the default one, which unpacks weights to BF16.
const (
	ExpertMXFP8  = "mxfp8"  // activations in 8 bits, on the tensor cores' FP8 rate (Blackwell)
	ExpertMarlin = "marlin" // weight-only, vLLM's Marlin
)

// ExpertKernelNames returns the kernels that a deployment may name.
func ExpertKernelNames() []string { return []string{ExpertMXFP8, ExpertMarlin} }

// CheckExpertKernel reports a kernel that the deployment cannot run.
func (d Deployment) CheckExpertKernel() error {
	switch {
	case d.ExpertKernel == "":
		return nil
	case d.GPU.MoE.named(d.ExpertKernel) == (MoEKernel{}):
		return fmt.Errorf("expert_kernel = %q has no coefficients on %s: %s", d.ExpertKernel, d.GPU.Name, d.GPU.expertKernels())
	case !d.LLM.isMoE() || d.WeightDtype != MXFP4:
		return fmt.Errorf("expert_kernel = %q is for experts in mxfp4", d.ExpertKernel)
	}
	return nil
}

// expertKernels says which kernels a GPU has.
func (g GPU) expertKernels() string {
	var have []string
	for _, name := range ExpertKernelNames() {
		if g.MoE.named(name) != (MoEKernel{}) {
			have = append(have, name)
		}
	}
	if len(have) == 0 {
		return "it has the default one alone"
	}
	return "allowed: " + strings.Join(have, ", ")
}

// DefaultExpertKernel returns the kernel that an engine runs mxfp4 experts with
// on a GPU: TensorRT-LLM and SGLang compute in mxfp8 where tensor cores have it
// (moe_config.backend TRTLLM, moe-runner-backend flashinfer_trtllm).
func DefaultExpertKernel(engine string, g GPU, m LLM, weights string) string {
	if (engine == "trtllm" || engine == "sglang") && m.isMoE() && weights == MXFP4 && g.MoE.MXFP8 != (MoEKernel{}) {
		return ExpertMXFP8
	}
	return ""
}
