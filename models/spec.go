package models

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Deployment is one replica: a model on TP·PP GPUs, with everything that its
// memory and its step time depend on.
type Deployment struct {
	LLM LLM
	GPU GPU
	TP  int
	PP  int // pipeline stages; 0 = 1

	// EP is over how many GPUs whole experts are dealt out; 0 or 1 splits each
	// expert over the TP ranks. Above TP the group spans EP/TP replicas, which
	// are taken to do the same work at the same time.
	EP int
	// ExpertImbalance is the load of the busiest expert rank over the mean, at
	// least 1; 0 = DefaultExpertImbalance.
	ExpertImbalance float64

	// ExpertKernel is the kernel of mxfp4 experts: "" = the one that the catalogue
	// has by weight dtype, else one of ExpertKernelNames.
	ExpertKernel string

	WeightDtype string // one of Dtypes
	KVDtype     string // one of Dtypes

	// StaticScales says that FP8 activation scales are part of the checkpoint.
	// If false, each GEMM's input is scaled at run time, which costs a pass.
	StaticScales bool

	MemoryUtilization float64 // share of GPU memory the engine takes (gpu_memory_utilization)
	OverheadGiB       float64 // per GPU: activations, NCCL, context (DefaultOverheadGiB)
	MaxBatchedTokens  int32   // size of the dense step-time table

	// GraphMaxTokens is the largest step that runs as a CUDA graph: 0 = the
	// catalogue's, −1 = none does (enforce_eager).
	GraphMaxTokens int32

	// Sampling is how tokens are drawn: "" = greedily, else one of Samplings.
	Sampling string

	// KernelSpeed divides the time of every kernel, launches and collectives
	// included: how much faster an engine runs than the tables say; 0 = 1.
	KernelSpeed float64

	Host Host
}

// GPUs returns the GPUs of one replica.
func (d Deployment) GPUs() int { return d.TP * d.layout().pp }

func (d Deployment) layout() layout { return layout{d.TP, max(1, d.PP), max(1, d.EP)} }

// slowness returns the factor on the time of every kernel.
func (d Deployment) slowness() float64 {
	if d.KernelSpeed > 0 {
		return 1 / d.KernelSpeed
	}
	return 1
}

// imbalance returns the load of the busiest expert rank over the mean.
func (d Deployment) imbalance() float64 {
	if d.ExpertImbalance > 0 {
		return d.ExpertImbalance
	}
	return DefaultExpertImbalance(d.EP)
}

// Validate reports everything that makes the deployment impossible, or that the
// catalogue has no coefficients for. What does not fit in memory is Memory's.
func (d Deployment) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := d.LLM.checkTP(d.TP); err != nil {
		errs = append(errs, err)
	}
	if d.PP < 0 || d.PP > d.LLM.Layers {
		add("pipeline_parallel = %d is not possible for %s: it has %d layers", d.PP, d.LLM.Name, d.LLM.Layers)
	}
	errs = append(errs, d.checkEP(), d.CheckExpertKernel())
	if d.MaxBatchedTokens < 1 {
		add("max_num_batched_tokens is %d, must be at least 1", d.MaxBatchedTokens)
	}
	if !(d.MemoryUtilization > 0 && d.MemoryUtilization <= 1) {
		add("gpu_memory_utilization is %v, must be in (0, 1]", d.MemoryUtilization)
	}
	if d.Sampling != "" && !slices.Contains(Samplings(), d.Sampling) {
		add("sampling is %q, allowed are %s", d.Sampling, strings.Join(Samplings(), ", "))
	}
	if d.KernelSpeed < 0 {
		add("the speed of kernels is %v, must not be negative", d.KernelSpeed)
	}
	if d.OverheadGiB < 0 {
		add("memory overhead is %v GiB, must not be negative", d.OverheadGiB)
	}
	for _, t := range [2][2]string{{"weight", d.WeightDtype}, {"KV", d.KVDtype}} {
		if !isDtype(t[1]) {
			add("%s dtype is %q, allowed are %s", t[0], t[1], strings.Join(Dtypes(), ", "))
		}
	}
	return errors.Join(errs...)
}

// checkEP reports why experts cannot be dealt out over EP GPUs.
func (d Deployment) checkEP() error {
	switch e := d.LLM.MoE; {
	case d.EP <= 1 && (d.ExpertImbalance == 0 || d.ExpertImbalance >= 1):
		return nil
	case d.ExpertImbalance != 0 && d.ExpertImbalance < 1:
		return fmt.Errorf("expert_imbalance is %v, must be at least 1", d.ExpertImbalance)
	case e.Experts == 0:
		return fmt.Errorf("expert_parallel = %d is not possible for %s: it has no experts", d.EP, d.LLM.Name)
	case d.TP < 1 || d.EP%d.TP != 0:
		return fmt.Errorf("expert_parallel = %d is not a multiple of tensor_parallel = %d", d.EP, d.TP)
	case e.Experts%d.EP != 0:
		return fmt.Errorf("expert_parallel = %d is not possible for %s: its %d experts do not divide by it", d.EP, d.LLM.Name, e.Experts)
	}
	return nil
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

// tpDegrees are the TP degrees that are modelled. Above a node's size the
// all-reduce crosses the network.
var tpDegrees = [...]int{1, 2, 4, 8, 16, 32}

// checkTP returns a *TPError unless tp is one of tpDegrees and divides the model.
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
	case !slices.Contains(tpDegrees[:], tp):
		return fmt.Sprintf("at most %d GPUs are modelled", tpDegrees[len(tpDegrees)-1])
	case m.Heads%tp != 0:
		return fmt.Sprintf("%d attention heads do not divide by it", m.Heads)
	case !m.isMLA() && m.KVHeads%tp != 0 && tp%m.KVHeads != 0:
		return fmt.Sprintf("%d KV heads neither divide by it nor replicate evenly", m.KVHeads)
	case m.denseLayers() > 0 && m.Intermediate%tp != 0:
		return fmt.Sprintf("intermediate size %d does not divide by it", m.Intermediate)
	case m.isMoE() && (m.MoE.Intermediate%tp != 0 || m.MoE.Shared%tp != 0):
		return fmt.Sprintf("expert intermediate size %d does not divide by it", m.MoE.Intermediate)
	}
	return ""
}
