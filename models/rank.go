package models

// rank is one GPU's share of a deployment, all its layers taken together as if
// there were one pipeline stage: the matrix sizes and kernels. All that depends
// on the batch through T (tokens) or S (sequences) alone is computed here;
// attention has its own kernel.
type rank struct {
	layers, dense, sparse float64 // all; with a dense MLP; with experts
	hidden                float64
	qkv                   float64 // columns of the QKV projection
	attnOut               float64 // rows of the output projection
	inter                 float64 // intermediate size of this rank
	shared                float64 // of the experts that all tokens use
	experts               float64
	vocab                 float64 // vocabulary rows of this rank
	logits                float64 // whole vocabulary: the sampler runs on gathered logits
	kvWidth               float64 // K or V columns
	qkNormed, fourNorms   bool
	latent, moe           bool

	gemm      gemmKernel
	bf16GEMM  gemmKernel // LM head and router, always BF16
	attention attentionKernel
	mla       mlaKernel
	expertMLP moeKernel
	allReduce allReduceKernel
	allToAll  linkKernel // if experts lie on other replicas' GPUs
	hop       linkKernel // to the next pipeline stage
	stages    float64
	wideEP    bool
	tp        float64

	common    Common
	bandwidth float64 // HBM peak, bytes/s

	linearPeak float64 // FLOP/s of the weights' arithmetic

	sortS float64 // sampling: sort of the vocabulary, per logit
	slow  float64 // factor on the time of every kernel: 1/KernelSpeed

	fullLayers, windowedLayers float64 // by attention
	window                     float64 // tokens
}

// newRank takes a deployment that Validate accepts.
func newRank(d Deployment) rank {
	m, g, l := d.LLM, d.GPU, d.layout()
	heads, kv := m.Heads/d.TP, m.kvHeadsPerGPU(d.TP)
	linear := d.WeightDtype
	if linear == MXFP4 && m.isMoE() {
		linear = BF16 // the experts only
	}
	c, a, _ := g.gemm(linear)
	bf16, bf16Arithmetic, _ := g.gemm(BF16)
	attention, _ := g.attention(d.KVDtype)
	r := rank{
		layers:    float64(m.Layers),
		dense:     float64(m.denseLayers()),
		sparse:    float64(m.Layers - m.denseLayers()),
		hidden:    float64(m.Hidden),
		qkv:       float64((heads + 2*kv) * m.HeadDim),
		attnOut:   float64(heads * m.HeadDim),
		inter:     float64(m.Intermediate) / float64(d.TP),
		shared:    float64(m.MoE.Shared) / float64(d.TP),
		experts:   float64(m.MoE.Experts),
		vocab:     float64(m.Vocab) / float64(d.TP),
		logits:    float64(m.Vocab),
		kvWidth:   float64(kv * m.HeadDim),
		qkNormed:  m.QKNorm,
		fourNorms: m.ExtraNorms,
		latent:    m.isMLA(),
		moe:       m.isMoE(),
		gemm:      newGEMM(c, g, a, linear, d.StaticScales),
		bf16GEMM:  newGEMM(bf16, g, bf16Arithmetic, BF16, false),
		attention: newAttention(attention, g, heads, kv, m.HeadDim, d.KVDtype),
		allReduce: newAllReduce(g, d.TP),
		stages:    float64(l.pp),
		wideEP:    l.ep > l.tp,
		tp:        float64(d.TP),
		common:    g.Common,
		bandwidth: g.bandwidth(),

		linearPeak: a.peak,
		slow:       d.slowness(),
		sortS:      g.Common.sortSeconds(d.Sampling),
		window:     float64(m.Window),
	}
	switch {
	case d.GraphMaxTokens < 0:
		r.common.GraphMaxTokens = 0
	case d.GraphMaxTokens > 0:
		r.common.GraphMaxTokens = d.GraphMaxTokens
	}
	r.fullLayers, r.windowedLayers = m.attentionLayers()
	if r.latent {
		r.mla, _ = newMLA(d)
		r.qkv, r.attnOut, r.kvWidth = 0, 0, 0
	}
	if r.moe {
		r.expertMLP, _ = newMoE(d)
	}
	if r.wideEP {
		r.allToAll = newAllToAll(g, l.ep)
	}
	if l.pp > 1 {
		r.hop = newHop(d)
	}
	return r
}

// pairSeconds returns prefill attention per (query, key) pair of a layer.
func (r *rank) pairSeconds() float64 {
	if r.latent {
		return r.mla.pairS
	}
	return r.attention.pairS
}

// linearSeconds returns the matrix products of all layers for m token rows: QKV
// and output projections, MLPs or experts.
func (r *rank) linearSeconds(m, kappa float64, eager bool) float64 {
	var attention float64
	if r.latent {
		attention = r.mla.projectionSeconds(m, kappa, eager)
	} else {
		attention = r.gemm.seconds(m, r.qkv, r.hidden, kappa) + r.gemm.seconds(m, r.hidden, r.attnOut, kappa)
	}
	t := r.layers * attention
	if r.dense > 0 {
		t += r.dense * r.mlpSeconds(m, r.inter, kappa)
	}
	if r.moe {
		layer := r.bf16GEMM.seconds(m, r.experts, r.hidden, kappa) + r.expertMLP.seconds(m, kappa)
		if r.shared > 0 {
			layer += r.mlpSeconds(m, r.shared, kappa)
		}
		t += r.sparse * layer
	}
	return t
}

// mlpSeconds returns a gated MLP: gate-and-up, down.
func (r *rank) mlpSeconds(m, inter, kappa float64) float64 {
	return r.gemm.seconds(m, 2*inter, r.hidden, kappa) + r.gemm.seconds(m, r.hidden, inter, kappa)
}

// smallBytes returns what one token moves in a layer's small kernels: two norms
// with residual (or four), rope, the KV write, the activation, and Q and K
// norms. Those of latent attention and of experts are part of their kernels.
func (r *rank) smallBytes() float64 {
	qk := r.attnOut + r.kvWidth
	values := 8*r.hidden + 2*qk + 4*r.kvWidth + 3*(r.dense*r.inter+r.sparse*r.shared)/r.layers
	if r.qkNormed {
		values += 2 * qk
	}
	if r.fourNorms {
		values += 4 * r.hidden
	}
	return 2 * values
}

// smallSeconds returns the small kernels of all layers for m token rows.
func (r *rank) smallSeconds(m float64) float64 {
	c := &r.common
	return r.layers * (c.LayerSmallUs*1e-6 + m*r.smallBytes()/(c.SmallMemoryEff*r.bandwidth))
}

// expertSeconds returns the time at peak bandwidth of the weights that m token
// rows touch in the experts of one stage.
func (r *rank) expertSeconds(m float64) float64 {
	if !r.moe {
		return 0
	}
	return r.sparse / r.stages * r.expertMLP.weightBytes(m) / r.bandwidth
}

// commSeconds returns the collectives of m token rows: two all-reduces per
// layer, or, where the experts lie on other replicas' GPUs too, one and an
// all-to-all of the tokens before and after them; and the hops between stages.
func (r *rank) commSeconds(m float64) float64 {
	reduces := 2 * r.layers
	t := 0.0
	if r.wideEP {
		reduces -= r.sparse
		copies := min(r.expertMLP.topK, r.expertMLP.ranks)
		rows := r.expertMLP.imbalance * m / r.tp * copies
		t += r.sparse * (r.allToAll.seconds(rows*r.hidden) + r.allToAll.seconds(rows*2*r.hidden)) // FP8 there, BF16 back
	}
	if r.tp > 1 {
		t += reduces * r.allReduce.seconds(m*r.hidden*2)
	}
	if r.stages > 1 {
		t += (r.stages - 1) * r.hop.seconds(m*r.hidden*2/r.tp)
	}
	return t
}

// headSeconds returns the LM head on m rows, without the sampler.
func (r *rank) headSeconds(m, kappa float64) float64 {
	return r.bf16GEMM.seconds(m, r.vocab, r.hidden, kappa)
}

// samplerSeconds returns the sampler's passes over one sequence's logits, and the
// sort that top-p and top-k need.
func (r *rank) samplerSeconds() float64 {
	c := &r.common
	return c.SamplerBytes*r.logits/(c.SamplerMemoryEff*r.bandwidth) + r.sortS*r.logits
}

// peakWork returns the step's work at peak rates: compute time per token, per
// sequence and per (query, key) pair; memory time of the weights (those of the
// experts touched excepted), per token, per sequence and per token of decode
// context. All in picoseconds, of one GPU of one stage.
type peakWork struct {
	tokenCompute, seqCompute, pairCompute           int64
	weightMemory, tokenMemory, seqMemory, ctxMemory int64

	// Of windowed layers: per decode row, which reads a whole window, and per pair
	// of prefill inside it.
	rowCompute, rowMemory, windowCompute int64
}

func (r *rank) peakWork(d Deployment) peakWork {
	m, l := d.LLM, d.layout()
	fraction := 1 / r.stages // of the layers
	matrices, absorbed, vectors := m.attnParams(d.TP)
	perLayer := float64(matrices) + 3*r.hidden*(r.dense*r.inter+r.sparse*r.shared)/r.layers
	linearFLOPs := 2 * r.layers * fraction * perLayer
	layerBytes := r.layers*fraction*(perLayer*r.gemm.weightBytes+2*float64(absorbed+vectors+m.normParams())) +
		2*r.sparse*fraction*r.hidden*r.experts
	tokenBytes := r.gemm.inputBytes*(2*r.hidden+r.attnOut+r.inter) + 2*(r.qkv+2*r.hidden+2*r.inter) + r.smallBytes()
	headBytes := 2 * r.vocab * r.hidden

	bf16 := d.GPU.peakBF16()
	tokenS := linearFLOPs/r.linearPeak + 2*r.layers*fraction*float64(absorbed)/bf16
	if k := &r.expertMLP; r.moe {
		tokenS += r.sparse * fraction * k.peers * k.topK / k.ranks * k.expertFLOPs / k.peak
	}
	memory := func(bytes float64) int64 { return picoseconds(bytes / r.bandwidth) }
	width := r.attnOut * 2
	if r.latent {
		width = float64(m.Heads/d.TP) * (2*float64(m.MLA.KVRank) + float64(m.MLA.RopeDim))
	}
	full, windowed := m.attentionLayers()
	pairS := 2 * width * fraction / bf16
	kvBytes := fraction * float64(m.kvPerLayer(l.tp)) * dtypeBytes(d.KVDtype)
	return peakWork{
		tokenCompute: picoseconds(tokenS),
		seqCompute:   picoseconds(2 * r.vocab * r.hidden / bf16),
		pairCompute:  picoseconds(pairS * full),
		weightMemory: memory(layerBytes + headBytes),
		tokenMemory:  memory(r.layers * fraction * tokenBytes),
		seqMemory:    memory(2*(r.hidden+r.vocab) + r.common.SamplerBytes*r.logits),
		ctxMemory:    memory(kvBytes * full),

		rowCompute:    picoseconds(pairS * windowed * float64(m.Window)),
		rowMemory:     memory(kvBytes * windowed * float64(m.Window)),
		windowCompute: picoseconds(pairS * windowed),
	}
}

// attentionLayers returns how many layers' attention grows with the context, and
// how many read a short window at most. A long window counts as none: most
// requests stay inside it.
func (m LLM) attentionLayers() (full, windowed float64) {
	if !m.shortWindow() {
		return float64(m.Layers), 0
	}
	return float64(m.Layers - m.WindowLayers), float64(m.WindowLayers)
}
