package models

import (
	"fmt"
	"math"
)

// Stepper is the step model of one deployment. It is safe for concurrent use;
// steppers of equal deployments share their tables.
//
// Attention is affine in the decode context, in whole picoseconds per token, so
// Slope is exact: Step grows by just that when every row's context grows by one.
type Stepper struct {
	tables *tables
	host   Host

	ctxPs, seqPs        int64 // decode attention per context token, per row
	prefillPs, decodePs int64 // attention launches of all layers
	extraTokens         int64 // keys that one prefill token costs extra
	samplerPs           int64 // per sequence
	work                peakWork
}

// NewStepper returns the step model of d, or what Validate finds.
func NewStepper(d Deployment) (*Stepper, error) {
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("step time of %s on %s: %w", d.LLM.Name, d.GPU.Name, err)
	}
	r := newRank(d)
	a := &r.attention
	return &Stepper{
		tables:      sharedTables(d, r),
		host:        d.Host,
		ctxPs:       picoseconds(r.layers * a.ctxS),
		seqPs:       picoseconds(r.layers * a.seqS),
		prefillPs:   picoseconds(r.layers * max(a.prefillS, a.decodeS)),
		decodePs:    picoseconds(r.layers * a.decodeS),
		extraTokens: int64(math.Round(a.extraTokens)),
		samplerPs:   picoseconds(r.samplerSeconds()),
		work:        r.peakWork(d),
	}, nil
}

// Step implements StepModel. A batch holds at least one token and at most the
// deployment's MaxBatchedTokens; the bin is 0 or one of the GPU's clock bins.
func (s *Stepper) Step(b Batch, clockBin int) Cost {
	t := s.tables.bins[clockBin].Load()
	if t == nil {
		t = s.tables.build(clockBin)
	}
	linear := t.at(b.Tokens)
	headPs := linear.headPs
	if b.Seqs != b.Tokens {
		headPs = t.at(b.Seqs).headPs
	}

	attnPs := s.decodePs
	if b.PrefillTokens > 0 {
		pairs := b.PrefillArea + s.extraTokens*int64(b.PrefillTokens)
		attnPs = s.prefillPs + int64(t.pairPs*float64(pairs))
	}
	attnPs += s.ctxPs*b.DecodeCtx + s.seqPs*int64(b.DecodeSeqs)

	w, tokens, seqs := &s.work, int64(b.Tokens), int64(b.Seqs)
	return Cost{
		Gemm:    linear.gemmPs,
		Attn:    attnPs,
		Comm:    linear.commPs,
		Small:   linear.smallPs,
		Head:    headPs + s.samplerPs*seqs,
		Host:    s.host.StepPs(b.Seqs),
		Compute: w.tokenCompute*tokens + w.seqCompute*seqs + w.pairCompute*(b.PrefillArea+b.DecodeCtx),
		Memory:  w.weightMemory + w.tokenMemory*tokens + w.seqMemory*seqs + w.ctxMemory*b.DecodeCtx,
	}
}

// Slope implements StepModel. Attention is the only part that grows.
func (s *Stepper) Slope(decodeSeqs int32, _ int) Cost {
	n := int64(decodeSeqs)
	return Cost{Attn: s.ctxPs * n, Compute: s.work.pairCompute * n, Memory: s.work.ctxMemory * n}
}
