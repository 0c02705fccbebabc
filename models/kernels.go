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
	weightBytes float64 // of one weight or input element
}

func newGEMM(c GEMM, g GPU, dtype string, staticScales bool) gemmKernel {
	k := gemmKernel{
		launchS:     c.LaunchUs * 1e-6,
		flopsPerS:   c.ComputeEff * g.peakFLOPS(dtype),
		bytesPerS:   c.MemoryEff * g.bandwidth(),
		p:           c.P,
		quantS:      c.QuantPs * 1e-12,
		weightBytes: float64(dtypeBytes(dtype)),
	}
	if staticScales {
		k.quantS = 0
	}
	return k
}

// bytes returns what an m×k by k×n product moves: weights, input, BF16 output.
func (g *gemmKernel) bytes(m, n, k float64) float64 {
	return g.weightBytes*(n*k+m*k) + 2*m*n
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
	decodeS     float64 // launch
	ctxS        float64 // per token of decode context
	seqS        float64 // per decode row
}

// newAttention takes the query and KV heads of one rank.
func newAttention(c Attention, g GPU, heads, kvHeads, headDim int, kvDtype string) attentionKernel {
	kvBytes := float64(2*kvHeads*headDim) * float64(dtypeBytes(kvDtype))
	return attentionKernel{
		prefillS:    c.PrefillUs * 1e-6,
		pairS:       4 * float64(heads*headDim) / (c.PrefillEff * g.peakFLOPS(BF16)),
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

// allReduceKernel is an all-reduce over tp GPUs; the zero value costs nothing.
type allReduceKernel struct {
	alphaS, perByteS float64 // if there are no knots
	logBytes, logS   []float64
}

func newAllReduce(c AllReduce, knotBytes [allReduceKnots]int64, tp int) allReduceKernel {
	if tp == 1 {
		return allReduceKernel{}
	}
	if c.KnotsUs[0] == 0 {
		ring := 2 * float64(tp-1) / float64(tp)
		return allReduceKernel{alphaS: c.AlphaUs * 1e-6, perByteS: ring / (c.BusGBs * 1e9)}
	}
	var k allReduceKernel
	for i, us := range c.KnotsUs {
		k.logBytes = append(k.logBytes, math.Log(float64(knotBytes[i])))
		k.logS = append(k.logS, math.Log(us*1e-6))
	}
	return k
}

// seconds returns the time of an all-reduce of this many bytes per GPU. Between
// knots it is a power law; below the first knot it is latency, constant; above
// the last it is bandwidth, proportional to the bytes.
func (a *allReduceKernel) seconds(bytes float64) float64 {
	n := len(a.logS)
	if n == 0 {
		return a.alphaS + a.perByteS*bytes
	}
	x := math.Log(bytes)
	if x <= a.logBytes[0] {
		return math.Exp(a.logS[0])
	}
	if x >= a.logBytes[n-1] {
		return math.Exp(a.logS[n-1] + x - a.logBytes[n-1])
	}
	i := 1
	for a.logBytes[i] < x {
		i++
	}
	share := (x - a.logBytes[i-1]) / (a.logBytes[i] - a.logBytes[i-1])
	return math.Exp(a.logS[i-1] + share*(a.logS[i]-a.logS[i-1]))
}
