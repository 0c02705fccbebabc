package models

import "math"

// moeKernel is the experts of one layer on one rank: routed GEMMs, permutation
// and weighted sum.
type moeKernel struct {
	launchS   float64
	peak      float64 // FLOP/s
	flopsPerS float64 // reached at kappa = 1
	bytesPerS float64 // on weights
	passS     float64 // seconds per byte of activations
	local     float64 // a_l
	group     float64 // a_g

	experts, topK float64
	ranks         float64 // over which whole experts are dealt out
	peers         float64 // tokens of the group per token of this replica
	imbalance     float64 // of the busiest rank
	hidden, inter float64 // inter is this rank's share
	expertBytes   float64 // weights of one expert on this rank
	expertFLOPs   float64 // per token and expert
}

// newMoE returns the experts of one layer of a deployment, and what stands in
// for measured coefficients (see GPU.moe).
func newMoE(d Deployment) (moeKernel, string) {
	m, l := d.LLM, d.layout()
	c, a, note := d.GPU.moe(d.WeightDtype, d.ExpertKernel)
	k := newMoEKernel(c, a, d.GPU, d.WeightDtype, m.Hidden, float64(m.MoE.Intermediate)/float64(l.expertTP()), m.MoE.Experts, m.MoE.TopK, l.ep)
	k.peers = max(1, float64(l.ep)/float64(l.tp))
	k.imbalance = d.imbalance()
	return k, note
}

// newMoEKernel takes this rank's share of an expert's intermediate size.
func newMoEKernel(c MoEKernel, a arithmetic, g GPU, dtype string, hidden int, inter float64, experts, topK, ranks int) moeKernel {
	values := 3 * float64(hidden) * inter
	return moeKernel{
		launchS:     c.LaunchUs * 1e-6,
		peak:        a.peak,
		flopsPerS:   c.ComputeEff * a.peak,
		bytesPerS:   c.MemoryEff * g.bandwidth(),
		passS:       1 / g.bandwidth(),
		local:       c.LocalBytes,
		group:       c.GroupBytes,
		experts:     float64(experts),
		topK:        float64(topK),
		ranks:       float64(ranks),
		peers:       1,
		imbalance:   1,
		hidden:      float64(hidden),
		inter:       inter,
		expertBytes: values * dtypeBytes(dtype),
		expertFLOPs: 2 * values,
	}
}

// touched returns how many of the rank's experts at least one of t tokens of
// the group uses, in expectation under uniform routing.
func (k *moeKernel) touched(t float64) float64 {
	return k.experts / k.ranks * -math.Expm1(t*math.Log1p(-k.topK/k.experts))
}

// seconds returns the time of one layer for m tokens of this replica:
//
//	t0 + pNorm(F/(ef·P), W/(em·B); 4) + (a_l·bl + a_g·bg)/B
func (k *moeKernel) seconds(m, kappa float64) float64 {
	t := m * k.peers
	rows := k.imbalance * t * k.topK / k.ranks
	compute := rows * k.expertFLOPs / (kappa * k.flopsPerS)
	memory := max(k.touched(t), min(1, rows)) * k.expertBytes / k.bytesPerS
	activations := k.local*rows*(4*k.hidden+8*k.inter) + k.group*(2*t*k.topK*k.hidden+4*t*k.hidden)
	return k.launchS + pNorm(compute, memory, 4) + activations*k.passS
}

// weightBytes returns what one layer's experts move for m tokens.
func (k *moeKernel) weightBytes(m float64) float64 { return k.touched(m*k.peers) * k.expertBytes }

// DefaultExpertImbalance returns the load of the busiest of ep expert ranks over
// the mean: 1 + a·(ep − 1)^b, near the benchmark's power-law routing
// (docs/model.md, C.3.3). It is an assumption; a load balancer brings it to 1.
func DefaultExpertImbalance(ep int) float64 {
	c := catalogue().gpus[0].Common
	if ep <= 1 {
		return 1
	}
	return 1 + c.RouterSkewFactor*math.Pow(float64(ep-1), c.RouterSkewPower)
}
