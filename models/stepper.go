package models

import (
	"fmt"
	"sync/atomic"
)

// Stepper is the step model of one deployment. It is safe for concurrent use;
// steppers of equal deployments share their tables.
//
// Attention is affine in the decode context, in whole picoseconds per token, so
// Slope is exact: Step grows by just that when every row's context grows by one.
type Stepper struct {
	tables *tables
	host   Host
	stages int32 // pipeline stages, each with a micro-batch of its own

	general bool // there are stages or windows: see round

	ctxPs               [ctxRows]int64 // decode attention per context token, by decode rows; the last holds for more
	seqPs               int64          // per decode row
	prefillPs, decodePs int64          // attention launches of all layers
	tokenPs             int64          // prefill attention per token
	window              int64          // tokens; 0 = none
	samplerPs           int64          // per sequence
	eagerPs             int64          // least time of the kernels of a step with prefill
	work                peakWork

	decodes []atomic.Pointer[decodes] // per clock bin, worked out when first used; none when general
}

// decodes are the costs of steps that only decode, by rows, without the part that
// follows the context.
type decodes [ctxRows]struct {
	Cost
	total int64
}

// NewStepper returns the step model of d, or what Validate finds.
func NewStepper(d Deployment) (*Stepper, error) {
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("step time of %s on %s: %w", d.LLM.Name, d.GPU.Name, err)
	}
	r := newRank(d)
	s := &Stepper{
		tables:    sharedTables(d, r),
		host:      d.Host,
		stages:    int32(r.stages),
		samplerPs: picoseconds(r.slow * r.samplerSeconds()),
		eagerPs:   int64(r.layers) * d.Host.EagerLayerPs,
		work:      r.peakWork(d),
	}
	if r.windowedLayers > 0 {
		s.window = int64(r.window)
	}
	s.setAttention(&r)
	s.general = s.stages > 1 || s.window > 0
	s.decodes = make([]atomic.Pointer[decodes], len(s.tables.bins))
	return s, nil
}

// setAttention takes over the attention kernel, for all layers. A decode row
// reads its whole context in a layer without a window, and one full window in
// the others.
func (s *Stepper) setAttention(r *rank) {
	k := attentionOf(r).times(r.slow)
	s.seqPs = picoseconds(r.layers*k.seqS + r.windowedLayers*k.ctxS*r.window)
	s.prefillPs = picoseconds(r.layers * max(k.prefillS, k.decodeS))
	s.decodePs = picoseconds(r.layers * k.decodeS)
	s.tokenPs = picoseconds(r.layers * k.tokenS)
	for rows := range ctxRows {
		// In each micro-batch attention reads a share of the context, with a share
		// of the rows; few rows do not fill the GPU.
		parts := float64(max(1, min(rows, int(s.stages))))
		slow := 1 + k.occupancy*parts/float64(max(1, rows))
		s.ctxPs[rows] = picoseconds(r.fullLayers * k.ctxS * slow / parts)
	}
}

// ctxRows is up to how many decode rows the context has a cost of its own; it
// hardly changes above.
const ctxRows = 257

// attentionOf returns the kernel of r's attention, of grouped heads or latent.
func attentionOf(r *rank) attentionKernel {
	if !r.latent {
		return r.attention
	}
	k := &r.mla
	return attentionKernel{prefillS: k.prefillS, decodeS: k.decodeS, ctxS: k.ctxS, seqS: k.rowS, pairS: k.pairS, tokenS: k.tokenS}
}

// StepTo implements Filler. A batch holds at least one token and at most the
// deployment's MaxBatchedTokens; the bin is 0 or one of the GPU's clock bins.
func (s *Stepper) StepTo(c *Cost, b *Batch, clockBin int) int64 {
	n := b.DecodeSeqs
	if n != b.Tokens || n != b.Seqs || n >= ctxRows || n < 0 || s.general {
		return s.mixed(c, b, clockBin)
	}
	t := s.decodes[clockBin].Load()
	if t == nil {
		t = s.decode(clockBin)
	}
	d, ctx := &t[n], b.DecodeCtx
	ctxPs := s.ctxPs[n] * ctx
	c.Gemm, c.Attn, c.Comm, c.Small, c.Head, c.Host = d.Gemm, d.Attn+ctxPs, d.Comm, d.Small, d.Head, d.Host
	c.Compute, c.Memory = d.Compute+s.work.pairCompute*ctx, d.Memory+s.work.ctxMemory*ctx
	return d.total + ctxPs
}

// decode works out the steps of a bin that only decode. Goroutines that do it at the
// same time come to the same result.
func (s *Stepper) decode(clockBin int) *decodes {
	t := new(decodes)
	for n := int32(1); n < ctxRows && n <= s.tables.maxTokens; n++ {
		t[n].total = s.mixed(&t[n].Cost, &Batch{Tokens: n, Seqs: n, DecodeSeqs: n}, clockBin)
	}
	s.decodes[clockBin].Store(t)
	return t
}

// mixed is StepTo for all batches.
func (s *Stepper) mixed(c *Cost, b *Batch, clockBin int) int64 {
	t := s.tables.bins[clockBin].Load()
	if t == nil {
		t = s.tables.build(clockBin)
	}
	if s.general {
		*c = s.round(t, *b)
		return c.Total()
	}
	var gemmPs, commPs, smallPs, headPs, expertPs int64
	if b.Tokens <= t.graphMax {
		r := &t.rows[graphIndex[b.Tokens]]
		gemmPs, commPs, smallPs, headPs, expertPs = r.gemmPs, r.commPs, r.smallPs, r.headPs, r.expertPs
		if b.Seqs != b.Tokens {
			headPs = t.headPs(b.Seqs)
		}
	} else { // eagerRow, part by part
		i, share := cell(b.Tokens - t.graphMax)
		e := &t.eager[i]
		gemmPs, commPs, smallPs, expertPs = along(e.gemmPs, e.gemmBy, share), along(e.commPs, e.commBy, share), along(e.smallPs, e.smallBy, share), e.expertPs
		headPs = t.headPs(b.Seqs)
	}
	attnPs := s.decodePs
	if b.PrefillTokens > 0 {
		attnPs = s.prefillPs + int64(t.pairPs*float64(b.PrefillArea)) + s.tokenPs*int64(b.PrefillTokens)
	}
	attnPs += s.ctxPs[min(uint32(b.DecodeSeqs), ctxRows-1)]*b.DecodeCtx + s.seqPs*int64(b.DecodeSeqs)
	w, tokens, seqs := &s.work, int64(b.Tokens), int64(b.Seqs)
	if b.PrefillTokens > 0 {
		smallPs += s.launching(gemmPs + commPs + smallPs + attnPs)
	}
	headPs += s.samplerPs * seqs
	hostPs := s.host.StepPs(b.Seqs)
	c.Gemm, c.Attn, c.Comm, c.Small, c.Head, c.Host = gemmPs, attnPs, commPs, smallPs, headPs, hostPs
	c.Compute = w.tokenCompute*tokens + w.seqCompute*seqs + w.pairCompute*(b.PrefillArea+b.DecodeCtx)
	c.Memory = w.weightMemory + expertPs + w.tokenMemory*tokens + w.seqMemory*seqs + w.ctxMemory*b.DecodeCtx
	return gemmPs + attnPs + commPs + smallPs + headPs + hostPs
}

// prefill returns the (query, key) pairs of the step's prefill chunks in
// picoseconds.
func (s *Stepper) prefill(t *table, b *Batch) float64 {
	ps := t.pairPs * float64(b.PrefillArea)
	if s.window > 0 {
		ps += t.windowPs * float64(min(b.PrefillArea, s.window*int64(b.PrefillTokens)))
	}
	return ps
}

// round returns a step of any deployment. With pipeline stages that is one round
// of micro-batches, each of which passes all stages while the others are in the
// other stages. Decode rows are dealt out evenly to at most one micro-batch per
// stage, and so are prompts. Where there are fewer than stages, the pipeline has
// a bubble: a lone prompt's chunk passes the stages one after the other.
func (s *Stepper) round(t *table, b Batch) Cost {
	decodes := max(1, min(s.stages, b.DecodeSeqs))
	prefills := max(1, min(s.stages, b.Seqs-b.DecodeSeqs))
	share := func(n, parts int32) int32 { return (n + parts - 1) / parts }
	linear := t.at(share(b.Tokens-b.PrefillTokens, decodes) + share(b.PrefillTokens, prefills))
	seqs := share(b.DecodeSeqs, decodes) + share(b.Seqs-b.DecodeSeqs, prefills)
	attnPs := s.decodePs
	if b.PrefillTokens > 0 {
		attnPs = s.prefillPs + int64(s.prefill(t, &b)/float64(prefills)) + s.tokenPs*int64(share(b.PrefillTokens, prefills))
	}
	smallPs := linear.smallPs
	if b.PrefillTokens > 0 {
		smallPs += s.launching(linear.gemmPs + linear.commPs + smallPs + attnPs)
	}
	w := &s.work
	return Cost{
		Gemm:    linear.gemmPs,
		Attn:    attnPs + s.ctxPs[min(uint32(b.DecodeSeqs), ctxRows-1)]*b.DecodeCtx + s.seqPs*int64(share(b.DecodeSeqs, decodes)),
		Comm:    linear.commPs,
		Small:   smallPs,
		Head:    t.headPs(seqs) + s.samplerPs*int64(seqs),
		Host:    s.host.StepPs(b.Seqs),
		Compute: w.compute(&b, s.window),
		Memory:  (w.weightMemory+linear.expertPs)*int64(max(decodes, prefills)) + w.moved(&b),
	}
}

// launching returns how much longer the host takes to launch the kernels of a step
// with prefill than the GPU to run them.
func (s *Stepper) launching(kernelsPs int64) int64 { return max(0, s.eagerPs-kernelsPs) }

// compute returns the arithmetic of a step at peak rates.
func (w *peakWork) compute(b *Batch, window int64) int64 {
	ps := w.tokenCompute*int64(b.Tokens) + w.seqCompute*int64(b.Seqs) + w.pairCompute*(b.PrefillArea+b.DecodeCtx) + w.rowCompute*int64(b.DecodeSeqs)
	if window > 0 {
		ps += w.windowCompute * min(b.PrefillArea, window*int64(b.PrefillTokens))
	}
	return ps
}

// moved returns the bytes of a step at peak rates, but for the weights.
func (w *peakWork) moved(b *Batch) int64 {
	return w.tokenMemory*int64(b.Tokens) + w.seqMemory*int64(b.Seqs) + w.ctxMemory*b.DecodeCtx + w.rowMemory*int64(b.DecodeSeqs)
}

// GrowthTo implements Filler.
func (s *Stepper) GrowthTo(g *Growth, decodeSeqs int32, _ int) int64 {
	n := int64(decodeSeqs)
	attnPs := s.ctxPs[min(uint32(decodeSeqs), ctxRows-1)] * n
	g.Attn, g.Compute, g.Memory = attnPs, s.work.pairCompute*n, s.work.ctxMemory*n
	return attnPs
}
