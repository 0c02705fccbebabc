package models

import "math"

// The GPU kernels of a step, each a closed form whose coefficients come from the
// catalogue. Times here are in seconds; the tables turn them into picoseconds.

// picoseconds rounds seconds to whole picoseconds.
func picoseconds(s float64) int64 { return int64(math.Round(s * 1e12)) }

// gemmKernel is a matrix multiplication on one GPU, in SI units.
type gemmKernel struct {
	c           GEMM
	launchS     float64
	flopsPerS   float64 // reached at kappa = 1
	bytesPerS   float64
	quantS      float64 // per activation element
	weightBytes float64 // of one weight element
	inputBytes  float64 // of one activation element
	sms         float64
}

func newGEMM(c GEMM, g GPU, a arithmetic, dtype string, staticScales bool) gemmKernel {
	k := gemmKernel{
		c:           c,
		launchS:     c.LaunchUs * 1e-6,
		flopsPerS:   c.ComputeEff * a.peak,
		bytesPerS:   c.MemoryEff * g.bandwidth(),
		quantS:      c.QuantPs * 1e-12,
		weightBytes: dtypeBytes(dtype),
		inputBytes:  a.input,
		sms:         float64(g.SMs),
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

// Tiles of the output that one multiprocessor computes at a time. Kernels choose
// among several; these explain the tables best.
const (
	tile       = 128 // rows and columns, where compute binds
	memoryTile = 64  // columns, where memory binds
)

// seconds returns the time of an m×k by k×n product. Compute and memory time
// combine by a p-norm: p → ∞ is the roofline's maximum, and the measured
// kernels overlap less than that near the ridge. Each is longer where the last
// wave of tiles leaves multiprocessors idle. Kappa slows compute alone.
func (g *gemmKernel) seconds(m, n, k, kappa float64) float64 {
	c := &g.c
	compute := 2 * m * n * (k + c.ExtraK) / (kappa * g.flopsPerS) * math.Pow(m/2048, c.MPower) * (1 + c.Wave*g.idle(m, n))
	columns := math.Ceil(n/memoryTile) / g.sms
	memory := g.bytes(m, n, k) / g.bytesPerS * (1 + c.MemoryWave*(math.Ceil(columns)/columns-1))
	return g.launchS + pNorm(compute, memory, c.P) + g.quantS*m*k
}

// idle returns the multiprocessors' idle time over their busy time when all
// waves of tiles are paid in full.
func (g *gemmKernel) idle(m, n float64) float64 {
	m = max(m, tile)
	waves := math.Ceil(math.Ceil(m/tile) * math.Ceil(n/tile) / g.sms)
	return waves/(m*n/(tile*tile*g.sms)) - 1
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
	prefillS  float64 // launch
	pairS     float64 // per (query token, key) pair at kappa = 1
	tokenS    float64 // per query token: reading Q, K and V, writing the output
	decodeS   float64 // launch
	ctxS      float64 // per token of decode context, with many rows
	seqS      float64 // per decode row
	occupancy float64 // context takes 1 + occupancy/rows times as long
}

// times returns the kernel with all its times multiplied by f.
func (a attentionKernel) times(f float64) attentionKernel {
	a.prefillS, a.pairS, a.tokenS, a.decodeS, a.ctxS, a.seqS = f*a.prefillS, f*a.pairS, f*a.tokenS, f*a.decodeS, f*a.ctxS, f*a.seqS
	return a
}

// newAttention takes the query and KV heads of one rank.
func newAttention(c Attention, g GPU, heads, kvHeads, headDim int, kvDtype string) attentionKernel {
	kvBytes := float64(2*kvHeads*headDim) * dtypeBytes(kvDtype)
	return attentionKernel{
		prefillS:  c.PrefillUs * 1e-6,
		pairS:     4 * float64(heads*headDim) / (c.PrefillEff * g.peakBF16()),
		tokenS:    c.PrefillPasses * 2 * float64(2*(heads+kvHeads)*headDim) / g.bandwidth(),
		decodeS:   c.DecodeUs * 1e-6,
		ctxS:      kvBytes / (c.DecodeEff * g.bandwidth()),
		seqS:      (c.DecodePerSeqNs + c.DecodePerKVHeadNs*float64(kvHeads)) * 1e-9,
		occupancy: c.DecodeOccupancy / float64(max(1, kvHeads)),
	}
}

// prefillSeconds returns the time of chunks with this area (see Batch) and
// number of tokens.
func (a *attentionKernel) prefillSeconds(area, tokens, kappa float64) float64 {
	return a.prefillS + a.pairS*area/kappa + a.tokenS*tokens
}

// decodeSeconds returns the time of rows decode rows with this context in sum.
func (a *attentionKernel) decodeSeconds(ctx, rows float64) float64 {
	return a.decodeS + a.ctxS*ctx*(1+a.occupancy/rows) + a.seqS*rows
}
