package models

// rank is one GPU's share of a deployment: the matrix sizes and kernels of its
// layers. All that depends on the batch linearly through T (tokens) or S
// (sequences) is computed here; attention has its own kernel.
type rank struct {
	layers   float64
	hidden   float64
	qkv      float64 // columns of the QKV projection
	attnOut  float64 // rows of the output projection
	inter    float64 // intermediate size of this rank
	vocab    float64 // vocabulary rows of this rank
	logits   float64 // whole vocabulary: the sampler runs on gathered logits
	kvWidth  float64 // K or V columns
	qkNormed bool

	gemm      gemmKernel
	headGEMM  gemmKernel // LM head, always BF16
	attention attentionKernel
	allReduce allReduceKernel

	common    Common
	bandwidth float64 // HBM peak, bytes/s
}

// newRank takes a deployment that Validate accepts.
func newRank(d Deployment) rank {
	m, g := d.LLM, d.GPU
	heads, kv := m.Heads/d.TP, m.kvHeadsPerGPU(d.TP)
	linear, _ := g.GEMM.of(d.WeightDtype)
	head, _ := g.GEMM.of(BF16)
	attention, _ := g.Attention.of(d.KVDtype)
	return rank{
		layers:    float64(m.Layers),
		hidden:    float64(m.Hidden),
		qkv:       float64((heads + 2*kv) * m.HeadDim),
		attnOut:   float64(heads * m.HeadDim),
		inter:     float64(m.Intermediate / d.TP),
		vocab:     float64(m.Vocab) / float64(d.TP),
		logits:    float64(m.Vocab),
		kvWidth:   float64(kv * m.HeadDim),
		qkNormed:  m.QKNorm,
		gemm:      newGEMM(linear, g, d.WeightDtype, d.StaticScales),
		headGEMM:  newGEMM(head, g, BF16, false),
		attention: newAttention(attention, g, heads, kv, m.HeadDim, d.KVDtype),
		allReduce: newAllReduce(g.AllReduce.of(d.TP), g.Common.AllReduceKnotBytes, d.TP),
		common:    g.Common,
		bandwidth: g.bandwidth(),
	}
}

// linearSeconds returns the GEMMs of all layers for m token rows: QKV, output
// projection, gate-and-up, down.
func (r *rank) linearSeconds(m, kappa float64) float64 {
	layer := r.gemm.seconds(m, r.qkv, r.hidden, kappa) +
		r.gemm.seconds(m, r.hidden, r.attnOut, kappa) +
		r.gemm.seconds(m, 2*r.inter, r.hidden, kappa) +
		r.gemm.seconds(m, r.hidden, r.inter, kappa)
	return r.layers * layer
}

// smallBytes returns what one token moves in a layer's small kernels: two norms
// with residual, rope, the KV write, the activation, and Q and K norms.
func (r *rank) smallBytes() float64 {
	qk := r.attnOut + r.kvWidth
	values := 8*r.hidden + 2*qk + 4*r.kvWidth + 3*r.inter
	if r.qkNormed {
		values += 2 * qk
	}
	return 2 * values
}

// smallSeconds returns the small kernels of all layers for m token rows.
func (r *rank) smallSeconds(m float64) float64 {
	c := &r.common
	return r.layers * (c.LayerSmallUs*1e-6 + m*r.smallBytes()/(c.SmallMemoryEff*r.bandwidth))
}

// commSeconds returns the two all-reduces per layer of m token rows.
func (r *rank) commSeconds(m float64) float64 {
	return r.layers * 2 * r.allReduce.seconds(m*r.hidden*2)
}

// headSeconds returns the LM head on m rows, without the sampler.
func (r *rank) headSeconds(m, kappa float64) float64 {
	return r.headGEMM.seconds(m, r.vocab, r.hidden, kappa)
}

// samplerSeconds returns the sampler's passes over one sequence's logits.
func (r *rank) samplerSeconds() float64 {
	c := &r.common
	return c.SamplerBytes * r.logits / (c.SamplerMemoryEff * r.bandwidth)
}

// peakWork returns the step's work at peak rates: compute time per token, per
// sequence and per (query, key) pair; memory time of the weights, per token, per
// sequence and per token of decode context. All in picoseconds.
type peakWork struct {
	tokenCompute, seqCompute, pairCompute           int64
	weightMemory, tokenMemory, seqMemory, ctxMemory int64
}

func (r *rank) peakWork(d Deployment) peakWork {
	matrices, vectors := d.LLM.layerParams(d.TP)
	layerBytes := float64(matrices*dtypeBytes(d.WeightDtype) + 2*vectors)
	width := r.gemm.weightBytes
	tokenBytes := width*(2*r.hidden+r.attnOut+r.inter) + 2*(r.qkv+2*r.hidden+2*r.inter) + r.smallBytes()
	headBytes := 2 * r.vocab * r.hidden
	compute := func(flops, peak float64) int64 { return picoseconds(flops / peak) }
	memory := func(bytes float64) int64 { return picoseconds(bytes / r.bandwidth) }
	return peakWork{
		tokenCompute: compute(2*r.layers*float64(matrices), d.GPU.peakFLOPS(d.WeightDtype)),
		seqCompute:   compute(2*r.vocab*r.hidden, d.GPU.peakFLOPS(BF16)),
		pairCompute:  compute(4*r.attnOut*r.layers, d.GPU.peakFLOPS(BF16)),
		weightMemory: memory(r.layers*layerBytes + headBytes),
		tokenMemory:  memory(r.layers * tokenBytes),
		seqMemory:    memory(2*(r.hidden+r.vocab) + r.common.SamplerBytes*r.logits),
		ctxMemory:    memory(float64(d.LLM.KVBytesPerTokenPerGPU(d.TP, d.KVDtype))),
	}
}
