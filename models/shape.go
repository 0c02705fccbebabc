package models

// LLM is a language model's shape, from its published configuration: a decoder
// with gated MLPs, whose attention is grouped, latent (MLA) or windowed, and
// whose MLPs are dense or mixtures of experts.
type LLM struct {
	Name         string `toml:"name"`
	Layers       int    `toml:"layers"`
	Hidden       int    `toml:"hidden"`
	Heads        int    `toml:"heads"` // query heads
	KVHeads      int    `toml:"kv_heads"`
	HeadDim      int    `toml:"head_dim"`
	Intermediate int    `toml:"intermediate"` // of dense layers; 0 where all are experts
	Vocab        int    `toml:"vocab"`
	TiedEmbed    bool   `toml:"tied_embed"` // LM head shares the embedding's weights
	QKNorm       bool   `toml:"qk_norm"`
	AttnBias     bool   `toml:"attn_bias"`     // of the Q, K and V projections
	ExtraNorms   bool   `toml:"extra_norms"`   // four norms per layer instead of two (Gemma 2 and 3)
	MaxModelLen  int    `toml:"max_model_len"` // the checkpoint's context limit, tokens

	Window       int `toml:"window"`        // sliding window, tokens; 0 = none
	WindowLayers int `toml:"window_layers"` // layers that have it; the others attend to everything

	MoE MoE `toml:"moe"`
	MLA MLA `toml:"mla"`

	Dtype  string `toml:"dtype"`  // weight format of the published checkpoint; "" = bf16
	Source string `toml:"source"` // where the figures come from
}

// MoE is the shape of a mixture of experts; the zero value says that all layers
// are dense.
type MoE struct {
	Experts      int  `toml:"experts"`
	TopK         int  `toml:"top_k"`        // experts that a token uses
	Intermediate int  `toml:"intermediate"` // of one expert
	Shared       int  `toml:"shared"`       // intermediate size that every token uses
	DenseLayers  int  `toml:"dense_layers"` // layers with a dense MLP instead
	Bias         bool `toml:"bias"`         // experts and router have biases
}

// MLA is the shape of multi-head latent attention; the zero value says that
// attention is of grouped heads. HeadDim is then unused.
type MLA struct {
	QRank   int `toml:"q_rank"`   // query compression; 0 = none
	KVRank  int `toml:"kv_rank"`  // latent that the KV cache holds
	NopeDim int `toml:"nope_dim"` // of a query or key head, without position
	RopeDim int `toml:"rope_dim"` // with position; shared by all heads in the KV cache
	VDim    int `toml:"v_dim"`
}

// NativeDtype returns the weight format of the published checkpoint.
func (m LLM) NativeDtype() string {
	if m.Dtype == "" {
		return BF16
	}
	return m.Dtype
}

func (m LLM) isMoE() bool { return m.MoE.Experts > 0 }
func (m LLM) isMLA() bool { return m.MLA.KVRank > 0 }

// denseLayers returns how many layers have a dense MLP.
func (m LLM) denseLayers() int {
	if m.isMoE() {
		return m.MoE.DenseLayers
	}
	return m.Layers
}

// layout is how a model is spread over GPUs.
type layout struct{ tp, pp, ep int }

// expertTP returns over how many ranks each expert is split: all of a replica,
// unless whole experts are dealt out.
func (l layout) expertTP() int {
	if l.ep > 1 {
		return 1
	}
	return l.tp
}

// stageLayers returns the layers of the fullest pipeline stage.
func (m LLM) stageLayers(pp int) int { return (m.Layers + pp - 1) / pp }

// kvHeadsPerGPU returns how many KV heads a rank holds: at least one, so heads
// are replicated once tp exceeds their number.
func (m LLM) kvHeadsPerGPU(tp int) int { return max(1, m.KVHeads/tp) }

// attnParams returns the parameters of one layer's attention on one of tp ranks:
// matrices that follow the weight dtype, the latent's up-projection, which stays
// BF16 because it is absorbed into queries and outputs, and vectors.
func (m LLM) attnParams(tp int) (matrices, absorbed, vectors int64) {
	h, q := int64(m.Hidden), int64(m.Heads/tp)
	if a := m.MLA; m.isMLA() {
		qk, rank := int64(a.NopeDim+a.RopeDim), int64(a.KVRank)
		if a.QRank > 0 {
			matrices = h*int64(a.QRank) + int64(a.QRank)*q*qk
			vectors = int64(a.QRank)
		} else {
			matrices = h * q * qk
		}
		matrices += h*(rank+int64(a.RopeDim)) + q*int64(a.VDim)*h
		return matrices, rank * q * int64(a.NopeDim+a.VDim), vectors + rank
	}
	d, kv := int64(m.HeadDim), int64(m.kvHeadsPerGPU(tp))
	matrices = h*(q+2*kv)*d + q*d*h
	if m.QKNorm {
		vectors += 2 * d
	}
	if m.AttnBias {
		vectors += (q + 2*kv) * d
	}
	return matrices, 0, vectors
}

// expertParams returns the parameters of one layer's experts on one rank.
func (m LLM) expertParams(l layout) int64 {
	e := m.MoE
	local := int64(e.Experts) / int64(max(1, l.ep))
	return local * 3 * int64(m.Hidden) * int64(e.Intermediate) / int64(l.expertTP())
}

// normParams returns the parameters of a layer's norms.
func (m LLM) normParams() int64 {
	if m.ExtraNorms {
		return 4 * int64(m.Hidden)
	}
	return 2 * int64(m.Hidden)
}

// embeddings returns the parameters of the embedding and the LM head, which is
// none of its own when they are tied.
func (m LLM) embeddings() int64 {
	n := int64(m.Vocab) * int64(m.Hidden)
	if m.TiedEmbed {
		return n
	}
	return 2 * n
}
