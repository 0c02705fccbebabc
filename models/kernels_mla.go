package models

// mlaKernel is one layer's latent attention on one rank, from the hidden state
// to the output projection.
type mlaKernel struct {
	weightFLOPs, absorbedFLOPs float64 // per token, of the projections
	weightBytes                float64 // of both

	flopsPerS, bf16PerS float64 // of decode's projections, at kappa = 1
	prefillPerS         float64
	prefillBF16PerS     float64
	bytesPerS           float64

	decodeS, prefillS float64 // launches
	ctxS              float64 // per token of decode context
	rowS              float64 // per decode row
	pairS             float64 // per (query token, key) pair of prefill at kappa = 1
	tokenS            float64 // per prefill token
}

func newMLA(d Deployment) (mlaKernel, string) {
	g := d.GPU
	weights := d.WeightDtype
	if weights == MXFP4 {
		weights = BF16 // the experts only
	}
	c, a, note := g.mla(weights)
	return newMLAKernel(c, a, d, weights), note
}

// newMLAKernel takes the dtype that the projections' weights have.
func newMLAKernel(c MLAKernel, a arithmetic, d Deployment, weights string) mlaKernel {
	m, g := d.LLM, d.GPU
	matrices, absorbed, _ := m.attnParams(d.TP)
	heads, dims := float64(m.Heads/d.TP), m.MLA
	latent := float64(dims.KVRank + dims.RopeDim)
	kvEff := c.KVEff
	if d.KVDtype != BF16 && c.KVEffFP8 > 0 {
		kvEff = c.KVEffFP8
	}
	// Absorbed decode: scores on the latent and rope, values on the latent.
	compute := 2 * heads * (2*float64(dims.KVRank) + float64(dims.RopeDim)) / (c.AttnEff * g.peakBF16())
	memory := latent * dtypeBytes(d.KVDtype) / (kvEff * g.bandwidth())
	return mlaKernel{
		weightFLOPs:     2 * float64(matrices),
		absorbedFLOPs:   2 * float64(absorbed),
		weightBytes:     float64(matrices)*dtypeBytes(weights) + 2*float64(absorbed),
		flopsPerS:       c.ComputeEff * a.peak,
		bf16PerS:        c.ComputeEff * g.peakBF16(),
		prefillPerS:     c.PrefillEff * a.peak,
		prefillBF16PerS: c.PrefillEff * g.peakBF16(),
		bytesPerS:       c.MemoryEff * g.bandwidth(),
		decodeS:         c.DecodeUs * 1e-6,
		prefillS:        c.PrefillUs * 1e-6,
		ctxS:            pNorm(compute, memory, 4),
		rowS:            c.SeqHeadPs * 1e-12 * heads,
		pairS:           2 * heads * float64(dims.NopeDim+dims.RopeDim+dims.VDim) / (c.PrefillAttnEff * g.peakBF16()),
		tokenS:          c.TokenHeadPs * 1e-12 * heads,
	}
}

// decodeSeconds returns the whole block for rows decode rows with this context
// in sum, and prefillSeconds for prompts.
func (k *mlaKernel) decodeSeconds(ctx, rows float64) float64 {
	return k.decodeS + k.projectionSeconds(rows, 1, false) + k.ctxS*ctx + k.rowS*rows
}

func (k *mlaKernel) prefillSeconds(area, tokens float64) float64 {
	return k.prefillS + k.projectionSeconds(tokens, 1, true) + k.pairS*area + k.tokenS*tokens
}

// projectionSeconds returns the projections of m tokens, with the rates of
// prefill in an eager step.
func (k *mlaKernel) projectionSeconds(m, kappa float64, eager bool) float64 {
	weights, absorbed := k.flopsPerS, k.bf16PerS
	if eager {
		weights, absorbed = k.prefillPerS, k.prefillBF16PerS
	}
	compute := m * (k.weightFLOPs/weights + k.absorbedFLOPs/absorbed) / kappa
	return pNorm(compute, k.weightBytes/k.bytesPerS, 4)
}
