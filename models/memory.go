package models

import (
	"fmt"
	"math"
	"strings"
)

const gib = 1 << 30

// Memory is how one GPU's memory is spent, and the KV pool that remains.
type Memory struct {
	TotalGiB    float64 // as torch sees it
	UsableGiB   float64 // total × gpu_memory_utilization
	WeightsGiB  float64
	OverheadGiB float64 // activations, NCCL, context
	KVGiB       float64

	Blocks int32 // KV blocks, null block included (vLLM's num_gpu_blocks)
	Tokens int64 // KV tokens that requests can hold: (Blocks − 1) × block size
}

// FitError says that a deployment leaves no room for KV blocks.
type FitError struct {
	LLM, GPU string
	TP       int
	ShortGiB float64 // missing per GPU, for the null block and one more
	Fits     []int   // TP degrees that would fit
}

func (e *FitError) Error() string {
	fits := "no TP degree within a node fits"
	if len(e.Fits) > 0 {
		fits = "would fit with tensor_parallel = " + strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Fits), " ", ", "), "[]")
	}
	return fmt.Sprintf("%s on %d × %s does not fit: %.1f GiB per GPU too little for weights, overhead and KV cache; %s",
		e.LLM, e.TP, e.GPU, e.ShortGiB, fits)
}

// Memory returns the memory of one GPU and the KV pool, as vLLM's start-up
// computes it: blocks = (total·utilisation − weights − overhead) / bytes of a
// block. The error is a *TPError or a *FitError, or Validate's.
func (d Deployment) Memory(blockSize int32) (Memory, error) {
	if err := d.Validate(); err != nil {
		return Memory{}, err
	}
	if blockSize < 1 {
		return Memory{}, fmt.Errorf("KV block size is %d tokens, must be at least 1", blockSize)
	}
	m, shortGiB := d.memory(d.layout(), d.OverheadGiB, blockSize)
	if shortGiB <= 0 {
		return m, nil
	}
	e := &FitError{LLM: d.LLM.Name, GPU: d.GPU.Name, TP: d.TP, ShortGiB: shortGiB}
	for _, tp := range tpDegrees {
		if d.LLM.whyNotTP(tp) != "" || tp > d.GPU.NodeGPUs {
			continue
		}
		overheadGiB := DefaultOverheadGiB(d.LLM, tp, d.MaxBatchedTokens)
		l := d.layout()
		l.tp = tp
		if _, short := d.memory(l, overheadGiB, blockSize); short <= 0 {
			e.Fits = append(e.Fits, tp)
		}
	}
	return m, e
}

// memory also returns by how many GiB two blocks do not fit.
func (d Deployment) memory(l layout, overheadGiB float64, blockSize int32) (m Memory, shortGiB float64) {
	m.TotalGiB = float64(d.GPU.MemoryMiB) / 1024
	m.UsableGiB = m.TotalGiB * d.MemoryUtilization
	m.WeightsGiB = float64(d.LLM.weightBytesPerGPU(l, d.WeightDtype)) / gib
	m.OverheadGiB = overheadGiB
	m.KVGiB = m.UsableGiB - m.WeightsGiB - m.OverheadGiB

	blockGiB := float64(int64(blockSize)*d.LLM.kvBytesPerGPU(l, d.KVDtype)) / gib
	if m.KVGiB < 2*blockGiB {
		return m, 2*blockGiB - m.KVGiB
	}
	m.Blocks = int32(min(m.KVGiB/blockGiB, math.MaxInt32))
	m.Tokens = int64(m.Blocks-1) * int64(blockSize)
	return m, 0
}

// DefaultOverheadGiB returns the GPU memory that is neither weights nor KV: a
// fixed part, NCCL buffers if tp > 1, and the activations of the largest step:
// hidden state, residual, gate and up, that is (2·hidden + 2·intermediate/tp)
// BF16 values per token. It is an assumption, fitted to measured pools
// (docs/model.md); engines measure it.
func DefaultOverheadGiB(m LLM, tp int, maxBatchedTokens int32) float64 {
	h := catalogue().host
	overheadGiB := h.OverheadContextGiB
	if tp > 1 {
		overheadGiB += h.OverheadTPGiB
	}
	perToken := 2 * (2*m.Hidden + 2*m.activeIntermediate()/tp)
	return overheadGiB + float64(maxBatchedTokens)*float64(perToken)/gib
}

// activeIntermediate returns the widest MLP that a token passes: the dense one,
// or its experts side by side.
func (m LLM) activeIntermediate() int {
	return max(m.Intermediate, m.MoE.TopK*m.MoE.Intermediate+m.MoE.Shared)
}
