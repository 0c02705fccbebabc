package models

// LLM is a language model's shape, from its published configuration.
type LLM struct {
	Name         string
	Layers       int
	Hidden       int
	Heads        int // query heads
	KVHeads      int
	HeadDim      int
	Intermediate int
	Vocab        int
	TiedEmbed    bool // LM head shares the embedding's weights
	QKNorm       bool
	AttnBias     bool
	MaxModelLen  int    // the checkpoint's context limit, tokens
	Source       string // where the figures come from
}

// Deployment is one replica: a model on TP GPUs, with everything that its
// memory and its step time depend on.
type Deployment struct {
	LLM LLM
	GPU GPU
	TP  int

	WeightDtype string // "bf16" or "fp8"
	KVDtype     string // "bf16" or "fp8"

	MemoryUtilization float64 // share of GPU memory the engine takes (gpu_memory_utilization)
	OverheadGiB       float64 // per GPU: activations, CUDA graphs, NCCL, context
	MaxBatchedTokens  int32   // size of the dense step-time table

	Host Host
}
