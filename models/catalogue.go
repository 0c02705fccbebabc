package models

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"github.com/BurntSushi/toml"
)

var (
	//go:embed llms.toml
	llmsTOML string
	//go:embed gpus.toml
	gpusTOML string
	//go:embed gpus_unfitted.toml
	unfittedTOML string
	//go:embed hosts.toml
	hostsTOML string
)

// data is the decoded catalogue.
type data struct {
	llms []LLM
	gpus []GPU
	host hostTOML
}

// catalogue decodes the embedded files once. They are part of the binary, so a
// fault in them is a broken invariant.
var catalogue = sync.OnceValue(func() data {
	var llms struct {
		LLM []LLM `toml:"llm"`
	}
	var gpus, unfitted struct {
		Common Common `toml:"common"`
		GPU    []GPU  `toml:"gpu"`
	}
	var hosts struct {
		VLLM hostTOML `toml:"vllm"`
	}
	mustDecode("llms.toml", llmsTOML, &llms)
	mustDecode("gpus.toml", gpusTOML, &gpus)
	mustDecode("gpus_unfitted.toml", unfittedTOML, &unfitted)
	mustDecode("hosts.toml", hostsTOML, &hosts)
	measured := gpus.GPU
	for _, g := range unfitted.GPU {
		gpus.GPU = append(gpus.GPU, borrow(g, measured))
	}
	for i := range gpus.GPU {
		gpus.GPU[i].Common = gpus.Common
		lend(&gpus.GPU[i], measured)
	}
	slices.SortFunc(llms.LLM, func(a, b LLM) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(gpus.GPU, func(a, b GPU) int { return cmp.Compare(a.Name, b.Name) })
	return data{llms: llms.LLM, gpus: gpus.GPU, host: hosts.VLLM}
})

func mustDecode(file, text string, into any) {
	meta, err := toml.Decode(text, into)
	if err != nil {
		panic(fmt.Sprintf("models/%s: %v", file, err))
	}
	if keys := meta.Undecoded(); len(keys) > 0 {
		panic(fmt.Sprintf("models/%s: unknown keys %v", file, keys))
	}
}

// LLMs returns the catalogue's language models, sorted by name.
func LLMs() []LLM { return slices.Clone(catalogue().llms) }

// GPUs returns the catalogue's GPUs, sorted by name.
func GPUs() []GPU { return slices.Clone(catalogue().gpus) }

// FindLLM returns the model with this name, or the only one whose name starts
// with it; else an *UnknownNameError. ReadLLM reads others from their config.json.
func FindLLM(name string) (LLM, error) {
	return find("model", name, catalogue().llms, func(m LLM) (string, []string) { return m.Name, nil })
}

// FindGPU returns the GPU with this name or alias, or the only one whose name
// starts with it; else an *UnknownNameError.
func FindGPU(name string) (GPU, error) {
	return find("GPU", name, catalogue().gpus, func(g GPU) (string, []string) { return g.Name, g.Aliases })
}

// hostTOML is the host section of the catalogue, in the units people write.
type hostTOML struct {
	Async           bool    `toml:"async"`
	FrontFixedMs    float64 `toml:"front_fixed_ms"`
	FrontPerTokenUs float64 `toml:"front_per_token_us"`
	StepFixedMs     float64 `toml:"step_fixed_ms"`
	StepPerSeqUs    float64 `toml:"step_per_seq_us"`
	SyncFixedMs     float64 `toml:"sync_fixed_ms"`
	SyncPerSeqUs    float64 `toml:"sync_per_seq_us"`
	PublishPerSeqUs float64 `toml:"publish_per_seq_us"`
	EagerLayerUs    float64 `toml:"eager_layer_us"`
	StreamUs        float64 `toml:"stream_per_token_us"`
	StepTPMs        struct {
		TP1 float64 `toml:"tp1"`
		TP2 float64 `toml:"tp2"`
		TP4 float64 `toml:"tp4"`
		TP8 float64 `toml:"tp8"`
	} `toml:"step_tp_ms"`

	OverheadContextGiB float64 `toml:"overhead_context_gib"`
	OverheadTPGiB      float64 `toml:"overhead_tp_gib"`

	Sources map[string]string `toml:"source"`
}

// DefaultHost returns the host constants of current vLLM at a TP degree.
func DefaultHost(tp int) Host {
	h := catalogue().host
	stepTPMs := map[int]float64{1: h.StepTPMs.TP1, 2: h.StepTPMs.TP2, 4: h.StepTPMs.TP4, 8: h.StepTPMs.TP8}
	return Host{
		Async:           h.Async,
		FrontFixedPs:    picoseconds(h.FrontFixedMs * 1e-3),
		FrontPerTokenPs: picoseconds(h.FrontPerTokenUs * 1e-6),
		StepFixedPs:     picoseconds(h.StepFixedMs * 1e-3),
		StepPerSeqPs:    picoseconds(h.StepPerSeqUs * 1e-6),
		StepTPPs:        picoseconds(stepTPMs[min(tp, 8)] * 1e-3),
		SyncFixedPs:     picoseconds(h.SyncFixedMs * 1e-3),
		SyncPerSeqPs:    picoseconds(h.SyncPerSeqUs * 1e-6),
		PublishPerSeqPs: picoseconds(h.PublishPerSeqUs * 1e-6),
		EagerLayerPs:    picoseconds(h.EagerLayerUs * 1e-6),

		StreamPerTokenPs: picoseconds(h.StreamUs * 1e-6),
	}
}
