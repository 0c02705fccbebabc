package experiments

import (
	"slosim/internal/config"
	"slosim/models"
)

// defaultKernel names the kernel that the catalogue has by weight dtype.
const defaultKernel = "default"

// Servers around TensorRT-LLM: its own, with PyTorch; NVIDIA NIM, with a compiled
// engine.
const (
	frontServe = "trtllm-serve"
	frontNIM   = "nim"
)

// greedy names the sampling that takes the likeliest token.
const greedy = "greedy"

// sampling reads how tokens are drawn.
func (r *engineReader) sampling() {
	name := config.Read(r.t, "sampling", config.OneOf(append([]string{greedy}, models.Samplings()...)...), config.Default(greedy, "temperature 0"))
	if name == greedy {
		name = ""
	}
	r.p.Deployment.Sampling = name
}

// expertKernel reads the kernel of mxfp4 experts.
func (r *engineReader) expertKernel() {
	d := &r.p.Deployment
	def, why := defaultKernel, "the weight dtype's own"
	if r.known {
		if k := models.DefaultExpertKernel(r.e.Kind, d.GPU, d.LLM, d.WeightDtype); k != "" {
			def, why = k, r.e.Kind+" computes mxfp4 experts so on this GPU"
		}
	}
	name := config.Read(r.t, "expert_kernel", config.OneOf(append([]string{defaultKernel}, models.ExpertKernelNames()...)...), config.Default(def, why))
	if name == defaultKernel {
		name = ""
	}
	d.ExpertKernel = name
	if r.known && name != "" {
		if err := d.CheckExpertKernel(); err != nil {
			r.t.Errorf("expert_kernel", "", "leave it out", "%s", err)
		}
	}
}
