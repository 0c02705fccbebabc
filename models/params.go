package models

// Weight and KV sizes, from the model's shape alone.

// sizes are the parameters of a whole model on one rank, by what format they
// have: matrices and experts follow the weight dtype (mxfp4 the experts only),
// the rest stays BF16.
type sizes struct{ matrices, experts, bf16 int64 }

// bytes returns what they take. An mxfp4 checkpoint of a mixture of experts
// quantises the experts only (gpt-oss).
func (s sizes) bytes(dtype string) int64 {
	linear := dtype
	if dtype == MXFP4 && s.experts > 0 {
		linear = BF16
	}
	return sizeOf(s.matrices, linear) + sizeOf(s.experts, dtype) + 2*s.bf16
}

// layerSizes sums the layers on one rank of the fullest stage.
func (m LLM) layerSizes(l layout) sizes {
	layers := int64(m.stageLayers(l.pp))
	// Dense layers come first, so the later stages are the fullest.
	dense := max(0, int64(m.denseLayers())-int64(m.Layers)+layers)
	h, tp := int64(m.Hidden), int64(l.tp)
	matrices, absorbed, vectors := m.attnParams(l.tp)
	s := sizes{matrices: layers * matrices, bf16: layers * (absorbed + vectors + m.normParams())}
	s.matrices += dense * 3 * h * int64(m.Intermediate) / tp
	if sparse := layers - dense; m.isMoE() {
		s.matrices += sparse * 3 * h * int64(m.MoE.Shared) / tp
		s.experts = sparse * m.expertParams(l)
		s.bf16 += sparse * h * int64(m.MoE.Experts) // router
		if m.MoE.Bias {
			local := int64(m.MoE.Experts) / int64(max(1, l.ep))
			s.bf16 += sparse * (local*int64(2*m.MoE.Intermediate/l.expertTP()+m.Hidden) + int64(m.MoE.Experts))
		}
	}
	return s
}

var whole = layout{tp: 1, pp: 1}

// Params returns the number of parameters of the whole model.
func (m LLM) Params() int64 {
	s := m.layerSizes(whole)
	return s.matrices + s.experts + s.bf16 + m.embeddings() + int64(m.Hidden)
}

// ActiveParams returns the parameters that one token uses, embeddings included.
func (m LLM) ActiveParams() int64 {
	idle := int64(m.Layers-m.denseLayers()) * 3 * int64(m.Hidden) * int64(m.MoE.Intermediate) * int64(m.MoE.Experts-m.MoE.TopK)
	return m.Params() - idle
}

// WeightBytes returns the bytes of all weights. Under another dtype than bf16
// the embedding, the LM head, the router and the norms stay BF16, as in
// published checkpoints.
func (m LLM) WeightBytes(dtype string) int64 { return m.weightBytesPerGPU(whole, dtype) }

// weightBytesPerGPU returns the bytes on one rank: matrices and the vocabulary
// are split, norms, the router and surplus KV heads are replicated. Of several
// stages the last is counted, with the LM head, or with the embedding on the
// first where they are tied.
func (m LLM) weightBytesPerGPU(l layout, dtype string) int64 {
	embeddings := m.embeddings()
	if l.pp > 1 {
		embeddings = int64(m.Vocab) * int64(m.Hidden)
	}
	return m.layerSizes(l).bytes(dtype) + (embeddings/int64(l.tp)+int64(m.Hidden))*2
}

// windowShareTokens is the length of the request whose KV cache a windowed layer
// is charged for: above its window it holds no more.
const windowShareTokens = 2048

// shortWindow says that the windowed layers hold less than they would without.
func (m LLM) shortWindow() bool { return m.WindowLayers > 0 && m.Window < windowShareTokens }

// kvPerLayer returns the KV elements of one token in one layer on one of tp
// ranks. The latent of MLA belongs to all heads, so every rank holds it.
func (m LLM) kvPerLayer(tp int) int64 {
	if m.isMLA() {
		return int64(m.MLA.KVRank + m.MLA.RopeDim)
	}
	return 2 * int64(m.kvHeadsPerGPU(tp)) * int64(m.HeadDim)
}

// KVBytesPerToken returns the KV cache bytes of one token over all layers of
// the whole model: 2·layers·kv_heads·head_dim·bytes, or layers·(kv_rank +
// rope_dim)·bytes with MLA.
func (m LLM) KVBytesPerToken(dtype string) int64 { return m.KVBytesPerTokenPerGPU(1, dtype) }

// KVBytesPerTokenPerGPU returns the KV cache bytes of one token on one of tp
// ranks. A rank holds at least one KV head, so it stops falling at tp = KVHeads.
// Layers with a short window count with their share of a request of 2048 tokens.
func (m LLM) KVBytesPerTokenPerGPU(tp int, dtype string) int64 {
	return m.kvBytesPerGPU(layout{tp: tp, pp: 1}, dtype)
}

func (m LLM) kvBytesPerGPU(l layout, dtype string) int64 {
	layers := int64(m.stageLayers(l.pp))
	if !m.shortWindow() {
		return sizeOf(layers*m.kvPerLayer(l.tp), dtype)
	}
	windowed := layers * int64(m.WindowLayers) / int64(m.Layers)
	tokens := (layers-windowed)*windowShareTokens + windowed*int64(m.Window)
	return sizeOf(tokens*m.kvPerLayer(l.tp), dtype) / windowShareTokens
}
