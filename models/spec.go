package models

import (
	"errors"
	"fmt"
)

// Number formats of weights and KV cache.
const (
	BF16 = "bf16"
	FP8  = "fp8"
)

// LLM is a dense language model's shape, from its published configuration.
type LLM struct {
	Name         string `toml:"name"`
	Layers       int    `toml:"layers"`
	Hidden       int    `toml:"hidden"`
	Heads        int    `toml:"heads"` // query heads
	KVHeads      int    `toml:"kv_heads"`
	HeadDim      int    `toml:"head_dim"`
	Intermediate int    `toml:"intermediate"`
	Vocab        int    `toml:"vocab"`
	TiedEmbed    bool   `toml:"tied_embed"` // LM head shares the embedding's weights
	QKNorm       bool   `toml:"qk_norm"`
	AttnBias     bool   `toml:"attn_bias"`     // of the Q, K and V projections
	MaxModelLen  int    `toml:"max_model_len"` // the checkpoint's context limit, tokens
	Source       string `toml:"source"`        // where the figures come from
}

// Deployment is one replica: a model on TP GPUs, with everything that its
// memory and its step time depend on.
type Deployment struct {
	LLM LLM
	GPU GPU
	TP  int

	WeightDtype string // "bf16" or "fp8"
	KVDtype     string // "bf16" or "fp8"

	// StaticScales says that FP8 activation scales are part of the checkpoint.
	// If false, each GEMM's input is scaled at run time, which costs a pass.
	StaticScales bool

	MemoryUtilization float64 // share of GPU memory the engine takes (gpu_memory_utilization)
	OverheadGiB       float64 // per GPU: activations, NCCL, context (DefaultOverheadGiB)
	MaxBatchedTokens  int32   // size of the dense step-time table

	Host Host
}

// Validate reports everything that makes the deployment impossible, or that the
// catalogue has no coefficients for. What does not fit in memory is Memory's.
func (d Deployment) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := d.LLM.checkTP(d.TP); err != nil {
		errs = append(errs, err)
	}
	if d.MaxBatchedTokens < 1 {
		add("max_num_batched_tokens is %d, must be at least 1", d.MaxBatchedTokens)
	}
	if !(d.MemoryUtilization > 0 && d.MemoryUtilization <= 1) {
		add("gpu_memory_utilization is %v, must be in (0, 1]", d.MemoryUtilization)
	}
	if d.OverheadGiB < 0 {
		add("memory overhead is %v GiB, must not be negative", d.OverheadGiB)
	}
	for _, t := range [2][2]string{{"weight", d.WeightDtype}, {"KV", d.KVDtype}} {
		if t[1] != BF16 && t[1] != FP8 {
			add("%s dtype is %q, allowed are %q and %q", t[0], t[1], BF16, FP8)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if _, err := d.GPU.GEMM.of(d.WeightDtype); err != nil {
		add("%s as weight dtype on %s: %w", d.WeightDtype, d.GPU.Name, err)
	}
	if _, err := d.GPU.Attention.of(d.KVDtype); err != nil {
		add("%s as KV dtype on %s: %w", d.KVDtype, d.GPU.Name, err)
	}
	return errors.Join(errs...)
}

// TPError says that a model cannot be split over this many GPUs.
type TPError struct {
	LLM   string
	TP    int
	Why   string
	Valid []int // degrees that divide the model
}

func (e *TPError) Error() string {
	return fmt.Sprintf("tensor_parallel = %d is not possible for %s: %s; allowed: %v", e.TP, e.LLM, e.Why, e.Valid)
}

// tpDegrees are the TP degrees that the catalogue has collectives for.
var tpDegrees = [...]int{1, 2, 4, 8}

// checkTP returns a *TPError unless tp is 1, 2, 4 or 8 and divides the model.
func (m LLM) checkTP(tp int) error {
	why := m.whyNotTP(tp)
	if why == "" {
		return nil
	}
	e := &TPError{LLM: m.Name, TP: tp, Why: why}
	for _, n := range tpDegrees {
		if m.whyNotTP(n) == "" {
			e.Valid = append(e.Valid, n)
		}
	}
	return e
}

func (m LLM) whyNotTP(tp int) string {
	switch {
	case tp < 1 || tp&(tp-1) != 0:
		return "it must be a power of two"
	case tp > 8:
		return "one NVLink domain of at most 8 GPUs is modelled"
	case m.Heads%tp != 0:
		return fmt.Sprintf("%d attention heads do not divide by it", m.Heads)
	case m.KVHeads%tp != 0 && tp%m.KVHeads != 0:
		return fmt.Sprintf("%d KV heads neither divide by it nor replicate evenly", m.KVHeads)
	case m.Intermediate%tp != 0:
		return fmt.Sprintf("intermediate size %d does not divide by it", m.Intermediate)
	}
	return ""
}

// kvHeadsPerGPU returns how many KV heads a rank holds: at least one, so heads
// are replicated once tp exceeds their number.
func (m LLM) kvHeadsPerGPU(tp int) int { return max(1, m.KVHeads/tp) }
