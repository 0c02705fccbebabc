package sim

import (
	"math"

	"slosim/models"
	"slosim/sim/stats"
)

// use is what a pool did for a class: answered requests of the counted span, or the
// halves of them that it computed.
type use struct{ requests, in, out int64 }

// ClassCost is what a class took of a pool: mean over replications, of the span.
// A pool's cost is dealt out by the tokens it computed, each weighted with the time
// that a token of its kind takes there: a prompt token in a step of the mean prompt
// alone, an output token in a decode step of the mean batch.
type ClassCost struct {
	Class, Pool         string
	Requests            float64 // answered in full
	TokensIn, TokensOut float64
	GPUHours, USD       float64
	USDPerRequest       float64
	USDPerMIn           float64 // per million prompt tokens, cached ones included
	USDPerMOut          float64 // per million output tokens
}

// used books a finished request that counts, or its half, on its pool.
func (p *fleet) used(class, in, out int32) {
	u := &p.use[class]
	u.requests++
	u.in += int64(in)
	u.out += int64(out)
}

// costs deals the cost of each pool out to its classes.
func (p *plan) costs(reps []*rep, pools []PoolResult) []ClassCost {
	var out []ClassCost
	for k := range pools {
		in, decode := p.tokenTimes(reps, k)
		var list []ClassCost
		all := 0.0
		for class := range p.exp.Traffic {
			x := ClassCost{Class: p.exp.Traffic[class].Name, Pool: pools[k].Name}
			for _, r := range reps {
				u := r.pools[k].use[class]
				x.Requests += float64(u.requests) / float64(len(reps))
				x.TokensIn += float64(u.in) / float64(len(reps))
				x.TokensOut += float64(u.out) / float64(len(reps))
			}
			if x.Requests > 0 {
				list = append(list, x)
				all += in*x.TokensIn + decode*x.TokensOut
			}
		}
		for _, x := range list {
			perIn, perOut := 0.0, 0.0
			if all > 0 {
				perIn, perOut = in/all, decode/all
			}
			share := perIn*x.TokensIn + perOut*x.TokensOut
			x.GPUHours, x.USD = pools[k].GPUHours*share, pools[k].USD*share
			x.USDPerRequest = x.USD / x.Requests
			x.USDPerMIn, x.USDPerMOut = pools[k].USD*perIn*1e6, pools[k].USD*perOut*1e6
			out = append(out, x)
		}
	}
	return out
}

// tokenTimes returns the time per prompt token and per output token of a pool, in
// picoseconds, at its mean prompt and mean batch.
func (p *plan) tokenTimes(reps []*rep, k int) (in, decode float64) {
	var all use
	var w poolWindow
	for _, r := range reps {
		w.merge(&r.pools[k].total)
		for _, u := range r.pools[k].use {
			all.requests, all.in, all.out = all.requests+u.requests, all.in+u.in, all.out+u.out
		}
	}
	if all.requests == 0 || w.samples == 0 {
		return 0, 0
	}
	spec := &p.exp.Pools[k]
	prompt := max(1, min(int32(all.in/all.requests), spec.Engine.MaxBatchedTokens))
	chunk := models.Batch{Tokens: prompt, Seqs: 1, PrefillTokens: prompt, PrefillArea: int64(prompt) * int64(prompt) / 2}
	rows := max(1, min(int32(w.running/float64(w.samples)), spec.Engine.MaxBatchedTokens))
	context := all.in/all.requests + all.out/all.requests/2
	batch := models.Batch{Tokens: rows, Seqs: rows, DecodeSeqs: rows, DecodeCtx: int64(rows) * context}
	m := p.models[k]
	return float64(m.Step(chunk, spec.startBin()).Total()) / float64(prompt), float64(m.Step(batch, spec.startBin()).Total()) / float64(rows)
}

// spend fills in what a pool cost, and what of it went by without a step.
func (out *PoolResult) spend(spec *Pool, list []poolRep, hours float64) {
	n := int64(len(list))
	gpus := spec.gpusPerReplica()
	out.GPUHours = gpus * stats.Of(over(list, func(r poolRep) float64 { return r.paid.Seconds() / 3600 }), n).V
	working := gpus * stats.Of(over(list, func(r poolRep) float64 { return r.total.busy.Seconds() / 3600 }), n).V
	out.IdleGPUHours = max(0, out.GPUHours-working)
	out.USD = out.GPUHours * spec.GPUHourUSD
	out.IdleUSD = out.IdleGPUHours * spec.GPUHourUSD
	out.USDPerMonth = out.USD / hours * 30 * 24
	if spec.Thermal.Enabled {
		out.EnergyKWh = gpus * stats.Of(over(list, func(r poolRep) float64 { return (r.total.power + r.total.standing) * monitorInterval.Seconds() / 3.6e6 }), n).V
	}
}

// unused returns the share of a pool's paid capacity that its traffic did not need.
func (p *plan) unused(k int, out *PoolResult) float64 {
	used, span := 0.0, 0.0
	each := out.Paid.V / float64(p.exp.Pools[k].Limit())
	for i, l := range out.Load {
		if l.Saturation == 0 {
			return math.NaN()
		}
		seconds := p.phases[i].to.Sub(p.phases[i].from).Seconds()
		used += seconds * min(1, l.MeanRate/(l.Saturation*each))
		span += seconds
	}
	return 1 - used/span
}
