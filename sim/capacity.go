package sim

import (
	"math"
	"slices"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// idleTTFT returns the time to first token of a lone request with this prompt on
// an idle replica: network, front end, the steps of its chunks, publication. It
// is exact: the engine computes the same sum.
func (p *plan) idleTTFT(pool int, prompt int32) clock.Duration {
	side := pool // that computes the prompt
	if p.exp.Pools[pool].Role == "decode" && prompt >= p.exp.Pools[pool].Link.MinTokens {
		side = p.feeder(pool)
	}
	spec := &p.exp.Pools[side]
	h := &spec.Deployment.Host
	t := p.exp.Network + clock.Duration((h.FrontFixedPs+h.FrontPerTokenPs*int64(prompt))/1000)
	for done := int32(0); done < prompt; {
		n := min(prompt-done, spec.Engine.MaxBatchedTokens)
		b := models.Batch{Tokens: n, Seqs: 1, PrefillTokens: n, PrefillArea: int64(n)*int64(done) + int64(n)*int64(n)/2}
		t += clock.Duration(p.models[side].Step(b, spec.startBin()).Total() / 1000)
		done += n
	}
	if side != pool {
		t += p.handoverTime(pool, prompt)
	}
	return t + clock.Duration(h.PublishPerSeqPs/1000)
}

// severalPools tells whether prompt ranges deal a class out to pools: then what it
// brings to each, and what an idle replica takes, has no closed form here.
func (p *plan) severalPools(class string) bool {
	for c := range p.exp.Traffic {
		if p.exp.Traffic[c].Name == class && len(p.poolsOf[c]) > 0 {
			return true
		}
	}
	return false
}

// feeder returns the pool that computes prompts for a decode pool.
func (p *plan) feeder(pool int) int {
	for c, k := range p.poolOf {
		if int(k) == pool && p.prefillOf[c] >= 0 {
			return int(p.prefillOf[c])
		}
	}
	return pool
}

// handoverTime returns what moving a prompt's KV to an idle decode replica of a
// pool adds to its TTFT: the front end there, the hop, the transfer at full speed
// (with Overlap at least its last layer; what prefill hides is not counted), the
// step that computes its last token again.
func (p *plan) handoverTime(pool int, prompt int32) clock.Duration {
	spec := &p.exp.Pools[pool]
	d := &spec.Deployment
	h := &d.Host
	t := spec.Link.Latency + clock.Duration((h.FrontFixedPs+h.FrontPerTokenPs*int64(prompt))/1000)
	bytes := float64(prompt) * float64(d.LLM.KVBytesPerToken(d.KVDtype))
	if spec.Link.Overlap {
		bytes /= float64(d.LLM.Layers)
	}
	t += clock.FromSeconds(bytes / min(spec.Link.BytesPerS, p.exp.Pools[p.feeder(pool)].Link.BytesPerS))
	b := models.Batch{Tokens: 1, Seqs: 1, PrefillTokens: 1, PrefillArea: int64(prompt) - 1}
	return t + clock.Duration(p.models[pool].Step(b, spec.startBin()).Total()/1000)
}

// idleLength returns the smallest prompt whose TTFT on an idle replica exceeds
// the threshold, or max_model_len when none does: longer ones are rejected.
func (p *plan) idleLength(pool int, threshold clock.Duration) int32 {
	lo, hi := int32(0), p.exp.Pools[pool].Engine.MaxModelLen // lo meets it, hi does not
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if p.idleTTFT(pool, mid) > threshold {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// groupLengths are the compiled lengths of a group.
type groupLengths struct {
	prompt, output workloads.Lengths
	ok             bool
}

// lengthsOf returns the compiled prompt and output lengths of a group; ok is
// false for traces and sessions, whose lengths are not known ahead.
func (p *plan) lengthsOf(g int) (prompt, output workloads.Lengths, ok bool) {
	l := &p.lengths[g]
	return l.prompt, l.output, l.ok
}

func (p *plan) compile(g int) (l groupLengths) {
	gr := p.groups[g]
	c := &p.exp.Traffic[gr.class]
	pd, od := c.Prompt, c.Output
	own := false
	if gr.cohort > 0 {
		ch := &p.exp.Changes[gr.cohort-1]
		if ch.Prompt != nil {
			pd, own = *ch.Prompt, true
		}
		if ch.Output != nil {
			od = *ch.Output
		}
	}
	if (c.Trace != nil || len(c.Recorded) > 0) && !own || c.Session.On() {
		return l
	}
	var err error
	if l.prompt, err = pd.Compile(); err != nil {
		return groupLengths{}
	}
	l.output, err = od.Compile()
	l.ok = err == nil
	return l
}

// idleFloor returns the share of an objective's requests at time t that miss its
// threshold even on an idle replica, and the smallest prompt that does. It is
// defined for TTFT objectives over classes with known length distributions.
func (p *plan) idleFloor(o slo.Objective, t clock.Time) (share float64, length int32, ok bool) {
	if o.Metric != slo.TTFT || p.severalPools(o.Class) {
		return 0, 0, false
	}
	skip := slices.Contains(o.Skip, "rejected")
	var all float64
	for g := range p.groups {
		if !p.counts(o, g) {
			continue
		}
		prompt, _, known := p.lengthsOf(g)
		if !known {
			return 0, 0, false
		}
		weight := p.shareOf(g, t)
		pool := int(p.poolOf[p.groups[g].class])
		length = p.idleLength(pool, o.Threshold)
		over := func(from int32) float64 { // of the prompts that count
			share := prompt.ShareAtLeast(max(from, o.MinPrompt))
			if o.MaxPrompt > 0 {
				share -= prompt.ShareAtLeast(max(from, o.MaxPrompt))
			}
			return weight * share
		}
		share += over(length)
		if skip { // over-long prompts are no events
			share -= over(p.exp.Pools[pool].Engine.MaxModelLen)
		}
		weight *= p.bandShare(&o, g)
		all += weight
	}
	if all == 0 {
		return 0, 0, false
	}
	return share / all, length, true
}

// mix is the average request of a pool at a time.
type mix struct {
	prompt, square, output float64 // E[P], E[P²] of what is computed, E[O]
	context                float64 // E[Σ_j (P + j)]: KV token-steps of the decode
	rate                   float64 // requests per second
}

// mixAt averages over the groups that a pool serves; its prefix cache finds the
// share hit of the prompts' tokens. ok is false when a class's
// lengths or rate have no closed form.
func (p *plan) mixAt(pool int, t clock.Time, hit float64, rate func(in *workloads.Intensity) float64) (m mix, ok bool) {
	if p.exp.Pools[pool].Standby {
		return m, false
	}
	for c := range p.exp.Traffic {
		if slices.Contains(p.poolsOf[c], int32(pool)) || int(p.poolOf[c]) == pool && p.severalPools(p.exp.Traffic[c].Name) {
			return m, false
		}
		if int(p.poolOf[c]) != pool && int(p.prefillOf[c]) != pool {
			continue
		}
		class := &p.exp.Traffic[c]
		if class.Trace != nil || len(class.Recorded) > 0 || class.Client.Users > 0 || class.Session.On() {
			return m, false
		}
		in := workloads.NewIntensity(class, p.exp.Changes, p.exp.Start)
		r := rate(&in)
		for _, g := range p.classGroups(c) {
			prompt, output, known := p.lengthsOf(g)
			if !known {
				return m, false
			}
			w := r * p.shareOf(g, t)
			limit := float64(p.exp.Pools[pool].Engine.MaxModelLen - 1)
			cut := func(x float64) float64 { return min(x, limit) }
			fits := func(x float64) float64 { // longer prompts are rejected: no load
				if x > limit {
					return 0
				}
				return x
			}
			served := 1 - prompt.ShareAtLeast(int32(limit)+1)
			if served <= 0 {
				continue
			}
			w *= served
			ep := prompt.Mean(fits) / served
			eo := output.Mean(cut)
			eo2 := output.Mean(func(x float64) float64 { return cut(x) * cut(x) })
			m.prompt += w * ep * (1 - hit)
			m.square += w * (prompt.Mean(func(x float64) float64 { return fits(x) * fits(x) }) / served * (1 - hit*hit))
			m.output += w * eo
			m.context += w * (eo*ep + (eo2-eo)/2)
			m.rate += w
		}
	}
	switch p.exp.Pools[pool].Role { // a half of each request
	case "prefill":
		m.output, m.context = m.rate, m.prompt
	case "decode":
		m.prompt, m.square = m.rate, m.rate
	}
	if m.rate > 0 {
		m.prompt, m.square, m.output, m.context = m.prompt/m.rate, m.square/m.rate, m.output/m.rate, m.context/m.rate
	}
	return m, m.rate > 0
}

// saturation returns the rate of this mix, in requests per second, that one
// replica of a pool can just serve: the batch is filled up to the token budget,
// the sequence limit or the KV blocks, whichever binds first, and every step
// completes as many requests as it admits. It is the fluid limit: no variance,
// blocks fully used, prompts in chunks of the budget, the SM clock as given.
func (p *plan) saturation(pool int, m mix, clockBin int) float64 {
	spec := &p.exp.Pools[pool]
	e := &spec.Engine
	budget := float64(e.MaxBatchedTokens)
	width := float64(1 + e.SpecDrafts) // tokens that a row computes per step; made of them:
	made := 1.0
	if e.SpecDrafts > 0 {
		made = (1 - math.Pow(e.SpecAccept, width)) / (1 - e.SpecAccept)
	}
	rows := budget * m.output / (m.prompt*made + m.output*width)
	rows = min(rows, float64(e.MaxSeqs))
	held := m.context/m.output + float64(e.BlockSize)/2 // KV tokens of a decoding row, half a block lost
	rows = min(rows, float64(e.KVBlocks-1)*float64(e.BlockSize)/held)
	admit := rows * made / m.output // requests per step
	prefill := admit * m.prompt
	area := admit * m.square / 2
	b := models.Batch{
		Tokens:        int32(min(math.Round(rows*width+prefill), budget)),
		Seqs:          int32(math.Round(rows + max(admit, 1))),
		DecodeSeqs:    int32(math.Round(rows)),
		PrefillTokens: int32(math.Round(prefill)),
		DecodeCtx:     int64(rows * m.context / m.output),
		PrefillArea:   int64(area),
	}
	step := float64(p.models[pool].Step(b, clockBin).Total())/1e12 + float64(e.SpecDrafts)*e.SpecDraftTime.Seconds()
	return admit / step
}

// loads returns the offered load of a pool in each phase, against what it can
// serve at a clock and with a share hit of the prompts' tokens cached.
func (p *plan) loads(pool, clockBin int, hit float64) []PhaseLoad {
	if math.IsNaN(hit) {
		hit = 0
	}
	var out []PhaseLoad
	for _, ph := range p.phases {
		var l PhaseLoad
		l.Phase = ph.name
		mean := func(in *workloads.Intensity) float64 {
			return in.Expected(ph.from, ph.to) / ph.to.Sub(ph.from).Seconds()
		}
		peak := func(in *workloads.Intensity) float64 { return in.Peak(ph.from, ph.to) }
		at := ph.to - 1
		m, ok := p.mixAt(pool, at, hit, mean)
		top, _ := p.mixAt(pool, at, hit, peak)
		if ok {
			l.MeanRate, l.PeakRate = m.rate, top.rate
		}
		// The fluid limit is that of mixing prefill and decode freely.
		if e := &p.exp.Pools[pool].Engine; ok && e.Kind != "static" && e.Kind != "tgi" && e.CapacityPolicy != "static_batch" {
			l.Saturation = p.saturation(pool, m, clockBin) * float64(p.exp.Pools[pool].Limit())
		}
		out = append(out, l)
	}
	return out
}
