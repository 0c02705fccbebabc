package models

// Weight and KV sizes, from the model's shape alone.

// dtypeBytes returns the bytes of one element. Dtypes are checked by Validate.
func dtypeBytes(dtype string) int64 {
	if dtype == FP8 {
		return 1
	}
	return 2
}

// layerParams splits a layer's parameters on one of tp ranks: matrices that
// follow the weight dtype, and norms and biases that stay BF16.
func (m LLM) layerParams(tp int) (matrices, vectors int64) {
	h, d := int64(m.Hidden), int64(m.HeadDim)
	q, kv := int64(m.Heads/tp), int64(m.kvHeadsPerGPU(tp))
	matrices = h*(q+2*kv)*d + q*d*h + 3*h*int64(m.Intermediate/tp)
	vectors = 2 * h
	if m.QKNorm {
		vectors += 2 * d
	}
	if m.AttnBias {
		vectors += (q + 2*kv) * d
	}
	return matrices, vectors
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

// Params returns the number of parameters of the whole model.
func (m LLM) Params() int64 {
	matrices, vectors := m.layerParams(1)
	return int64(m.Layers)*(matrices+vectors) + m.embeddings() + int64(m.Hidden)
}

// WeightBytes returns the bytes of all weights. Under fp8 the embedding, the LM
// head and the norms stay BF16, as in published FP8 checkpoints.
func (m LLM) WeightBytes(dtype string) int64 { return m.weightBytesPerGPU(1, dtype) }

// weightBytesPerGPU returns the bytes on one of tp ranks: matrices and the
// vocabulary are split, norms and surplus KV heads are replicated.
func (m LLM) weightBytesPerGPU(tp int, dtype string) int64 {
	matrices, vectors := m.layerParams(tp)
	layers := int64(m.Layers)
	return layers*(matrices*dtypeBytes(dtype)+vectors*2) + (m.embeddings()/int64(tp)+int64(m.Hidden))*2
}

// KVBytesPerToken returns the KV cache bytes of one token over all layers of
// the whole model: 2·layers·kv_heads·head_dim·bytes.
func (m LLM) KVBytesPerToken(dtype string) int64 { return m.KVBytesPerTokenPerGPU(1, dtype) }

// KVBytesPerTokenPerGPU returns the KV cache bytes of one token on one of tp
// ranks. A rank holds at least one KV head, so it stops falling at tp = KVHeads.
func (m LLM) KVBytesPerTokenPerGPU(tp int, dtype string) int64 {
	return 2 * int64(m.Layers) * int64(m.kvHeadsPerGPU(tp)) * int64(m.HeadDim) * dtypeBytes(dtype)
}
