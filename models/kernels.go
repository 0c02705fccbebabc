package models

import "math"

// The GPU kernels of a step, each a closed form whose coefficients come from the
// catalogue. Times here are in seconds; the tables turn them into picoseconds.

// picoseconds rounds seconds to whole picoseconds.
func picoseconds(s float64) int64 { return int64(math.Round(s * 1e12)) }

// gemmKernel is a matrix multiplication on one GPU, in SI units.
type gemmKernel struct {
	launchS     float64
	flopsPerS   float64 // reached at kappa = 1
	bytesPerS   float64
	p           float64
	quantS      float64 // per activation element
	weightBytes float64 // of one weight element
	inputBytes  float64 // of one activation element
}

func newGEMM(c GEMM, g GPU, a arithmetic, dtype string, staticScales bool) gemmKernel {
	k := gemmKernel{
		launchS:     c.LaunchUs * 1e-6,
		flopsPerS:   c.ComputeEff * a.peak,
		bytesPerS:   c.MemoryEff * g.bandwidth(),
		p:           c.P,
		quantS:      c.QuantPs * 1e-12,
		weightBytes: dtypeBytes(dtype),
		inputBytes:  a.input,
	}
	if staticScales || a.dtype == BF16 {
		k.quantS = 0
	}
	return k
}

// bytes returns what an m×k by k×n product moves: weights, input, BF16 output.
func (g *gemmKernel) bytes(m, n, k float64) float64 {
	return g.weightBytes*n*k + g.inputBytes*m*k + 2*m*n
}

// seconds returns the time of an m×k by k×n product. Compute and memory time
// combine by a p-norm: p → ∞ is the roofline's maximum, and the measured
// kernels overlap less than that near the ridge. Kappa slows compute alone.
func (g *gemmKernel) seconds(m, n, k, kappa float64) float64 {
	compute := 2 * m * n * k / (kappa * g.flopsPerS)
	memory := g.bytes(m, n, k) / g.bytesPerS
	return g.launchS + pNorm(compute, memory, g.p) + g.quantS*m*k
}

// pNorm returns (a^p + b^p)^(1/p) for a, b > 0.
func pNorm(a, b, p float64) float64 {
	if a < b {
		a, b = b, a
	}
	return a * math.Exp(math.Log1p(math.Exp(p*math.Log(b/a)))/p)
}

// attentionKernel is the attention of one layer on one rank.
type attentionKernel struct {
	prefillS    float64 // launch
	pairS       float64 // per (query token, key) pair at kappa = 1
	extraTokens float64 // keys that one query token costs extra
	tokenS      float64 // per query token, beside those
	decodeS     float64 // launch
	ctxS        float64 // per token of decode context
	seqS        float64 // per decode row
}

// newAttention takes the query and KV heads of one rank.
func newAttention(c Attention, g GPU, heads, kvHeads, headDim int, kvDtype string) attentionKernel {
	kvBytes := float64(2*kvHeads*headDim) * dtypeBytes(kvDtype)
	return attentionKernel{
		prefillS:    c.PrefillUs * 1e-6,
		pairS:       4 * float64(heads*headDim) / (c.PrefillEff * g.peakBF16()),
		extraTokens: c.PrefillExtraTokens,
		decodeS:     c.DecodeUs * 1e-6,
		ctxS:        kvBytes / (c.DecodeEff * g.bandwidth()),
		seqS:        c.DecodePerSeqNs * 1e-9,
	}
}

// prefillSeconds returns the time of chunks with this area (see Batch) and
// number of tokens.
func (a *attentionKernel) prefillSeconds(area, tokens, kappa float64) float64 {
	return a.prefillS + a.pairS*(area+a.extraTokens*tokens)/kappa
}

// decodeSeconds returns the time of rows decode rows with this context in sum.
func (a *attentionKernel) decodeSeconds(ctx, rows float64) float64 {
	return a.decodeS + a.ctxS*ctx + a.seqS*rows
}
