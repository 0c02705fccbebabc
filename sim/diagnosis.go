package sim

import (
	"fmt"
	"math"
	"sort"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// The rules by which people in the field tell what is wrong, as findings: queue share,
// clocks, KV blocks, interference of long prompts, all-reduce, cold starts, retries.
// What a rule explains is counted where a request's own record shows it (queue,
// lengths, attempts); what acts on whole replicas is attributed by comparing the
// windows of similar load in which it held and in which it did not: the attributable
// fraction, (m − m₀)/m, of the miss rates of all windows and of those without (Levin,
// 1953). It shows coincidence, not cause: a review's ablations show causes.

// The marks of the rules. The first is the field's; the others are assumptions about
// what is worth a sentence.
const (
	queueRule    = 0.80 // of the mean TTFT
	commRule     = 0.20 // of the step time
	retryRule    = 0.05 // of the requests
	clockRule    = 0.97 // of the locked clock
	fullRule     = 0.98 // of the KV blocks
	startingRule = 0.02 // replicas that are paid for and do not serve, beyond the least of the run
	longRequests = 0.20 // longest prompts: at most this share of the requests
	longTokens   = 0.50 // and at least this share of the prompt tokens
	shortMisses  = 0.20 // misses of the others
	rarePreempt  = 1e-3 // of the requests: fewer preemptions that explain no misses are not worth a sentence
)

// bandRep is a prompt-length bucket of an objective in one replication.
type bandRep struct {
	n, bad int64
	tokens float64
}

// bands counts answered and late requests of an objective on TTFT by prompt length, in
// the last phase, from the recorded histograms.
func (r *recorder) bands(k int) (out [lengthBands]bandRep) {
	o := r.plan.exp.SLOs[k]
	if o.Metric != slo.TTFT {
		return out
	}
	last := len(r.plan.phases) - 1
	for g := range r.plan.groups {
		if !r.plan.counts(o, g) {
			continue
		}
		c := &r.cells[g][last]
		for b, h := range c.byLength {
			if h == nil {
				continue
			}
			out[b].n += h.N()
			h.Each(func(low, width float64, count int64) {
				if low+width/2 > float64(o.Threshold) {
					out[b].bad += count
				}
			})
		}
		c.prompts.Each(func(low, width float64, count int64) {
			// A bucket across an edge is below it: there is where round lengths lie.
			b := bandOf(low)
			if b < lengthBands-1 && c.byLength[b] == nil {
				b = bandOf(low + width/2)
			}
			out[b].tokens += (low + width/2) * float64(count)
		})
	}
	return out
}

func bandsOf(list []sloRep) []SLOBand {
	var out []SLOBand
	for b := range lengthBands {
		x := SLOBand{UpTo: math.Inf(1)}
		if b < len(PromptEdges) {
			x.UpTo = PromptEdges[b]
		}
		for i := range list {
			x.N += list[i].bands[b].n
			x.Bad += list[i].bands[b].bad
			x.Tokens += list[i].bands[b].tokens
		}
		out = append(out, x)
	}
	return out
}

// queueFinding applies the rule of diagnosis: waiting dominates.
func queueFinding(r *Result, s *SLO) []Finding {
	if s.Metric != slo.TTFT {
		return nil
	}
	share := 0.0
	for _, b := range s.Blame {
		if b.Stage == "queue" || b.Stage == "never answered" {
			share += b.Share
		}
	}
	if share < 0.3 {
		return nil
	}
	f := Finding{
		Title:    fmt.Sprintf("%s: waiting is what held up %s of the misses", s.Name, percent0(share)),
		Evidence: "a capacity or scheduling problem: these requests would have met the threshold on an idle replica or with less work ahead of them",
		Share:    share,
	}
	if n := len(s.Phases); n > 0 && s.IdleFloor.R > 0 && share+s.IdleFloor.V/s.Phases[n-1].BadShare.V > 1.005 {
		f.Evidence = "a capacity or scheduling problem, but for those that miss the threshold even on an idle replica"
	}
	if q := queueShare(r, s); q >= queueRule {
		f.Evidence += fmt.Sprintf("; the queue is %s of the mean TTFT of phase %q, and from %s on more replicas help", percent0(q), s.Judged, percent0(queueRule))
	} else if q > 0 {
		f.Evidence += fmt.Sprintf("; over all requests of phase %q the queue is %s of the mean TTFT", s.Judged, percent0(q))
	}
	return []Finding{f}
}

// queueShare is the queue's part of the mean TTFT of an objective's class in the
// judged phase.
func queueShare(r *Result, s *SLO) float64 {
	for _, ph := range r.Phases {
		for _, c := range ph.Classes {
			if ph.Name == s.Judged && c.Class == s.Class && c.Cohort == "all" {
				t := &c.Stages
				if all := t.Network.V + t.Queue.V + t.Prefill.V + t.Publish.V; all > 0 {
					return t.Queue.V / all
				}
			}
		}
	}
	return 0
}

// interferenceFinding says that few long prompts hold up the others.
func (p *plan) interferenceFinding(s *SLO) []Finding {
	if s.Metric != slo.TTFT || s.Banded() || len(s.Bands) == 0 {
		return nil
	}
	var n, bad int64
	tokens := 0.0
	for _, b := range s.Bands {
		n, bad, tokens = n+b.N, bad+b.Bad, tokens+b.Tokens
	}
	if n == 0 || bad == 0 {
		return nil
	}
	from, long, longTok, longBad := len(s.Bands), int64(0), 0.0, int64(0)
	for k := len(s.Bands) - 1; k > 0; k-- {
		b := s.Bands[k]
		if float64(long+b.N) > longRequests*float64(n) {
			break
		}
		from, long, longTok, longBad = k, long+b.N, longTok+b.Tokens, longBad+b.Bad
		if longTok >= longTokens*tokens {
			break
		}
	}
	for from > 1 && s.Bands[from-1].N == 0 { // nobody is in between
		from--
	}
	short := float64(bad-longBad) / float64(bad)
	if long == 0 || longTok < longTokens*tokens || short < shortMisses {
		return nil
	}
	edge := int32(s.Bands[from-1].UpTo)
	idle := p.idleOf(s.Class, edge)
	if idle == 0 || idle > s.Threshold/2 {
		return nil
	}
	return []Finding{{
		Title:    fmt.Sprintf("%s: long prompts hold up short ones: %s of the misses are prompts of up to %s tokens", s.Name, percent0(short), thousands(int64(edge))),
		Evidence: fmt.Sprintf("%s of the requests bring %s of the prompt tokens; a prompt of %s tokens takes %s on an idle replica: a pool of their own, a chunk limit or a rate limit for the long ones would shield the others", percent0(float64(long)/float64(n)), percent0(longTok/tokens), thousands(int64(edge)), seconds(idle.Seconds())),
		Share:    short,
	}}
}

// idleOf is the TTFT of a prompt of a class on an idle replica; 0 when several pools
// could serve it.
func (p *plan) idleOf(class string, prompt int32) clock.Duration {
	if p.severalPools(class) {
		return 0
	}
	for c := range p.exp.Traffic {
		if p.exp.Traffic[c].Name == class {
			return p.idleTTFT(int(p.poolOf[c]), prompt)
		}
	}
	return 0
}

// retryFinding says that clients come back and add to the load.
func retryFinding(r *Result, s *SLO) []Finding {
	var n, again int64
	for _, ph := range r.Phases {
		for _, c := range ph.Classes {
			if c.Class == s.Class && c.Cohort == "all" {
				n, again = n+c.N, again+c.Outcomes.Retries
			}
		}
	}
	if n == 0 || float64(again) < retryRule*float64(n) {
		return nil
	}
	return []Finding{{
		Title:    fmt.Sprintf("%s: clients come back: %s of the requests are second and later attempts", s.Name, percent0(float64(again)/float64(n))),
		Evidence: fmt.Sprintf("they are %s of its bad events, and keep the load up after its cause has gone: longer back-off with jitter, fewer attempts or shedding", percent0(float64(s.Again)/float64(s.Bad))),
		Share:    float64(s.Again) / float64(s.Bad),
	}}
}

// strata is how many groups of windows with similar load are compared apart.
const strata = 5

// paneStat is a window of the last phase in which a pool's classes sent something.
type paneStat struct {
	n, bad float64
	held   bool
}

// panes are the windows of the last phase in which classes with an objective on TTFT
// sent something to a pool.
func (p *plan) panes(r *Result, pool int, held func(i int) bool) (out []paneStat) {
	from := p.phases[len(p.phases)-1].from
	for i := range r.Series.T {
		w := paneStat{held: held(i)}
		for k := range r.Series.Classes {
			c := &r.Series.Classes[k]
			if c.Cohort == "all" && p.judgedTTFT(c.Class) && p.servesClass(pool, c.Class) && c.Arrivals[i] > 0 && !math.IsNaN(c.Bad[i]) {
				w.n += c.Arrivals[i]
				w.bad += c.Arrivals[i] * c.Bad[i]
			}
		}
		if w.n > 0 && r.Series.T[i] >= from {
			out = append(out, w)
		}
	}
	return out
}

// coinciding is the share of the misses that were sent while something held.
func (p *plan) coinciding(r *Result, pool int, held func(i int) bool) float64 {
	var with, all float64
	for _, w := range p.panes(r, pool, held) {
		all += w.bad
		if w.held {
			with += w.bad
		}
	}
	if all == 0 {
		return 0
	}
	return with / all
}

// attributed compares the windows of the last phase in which something held in a pool
// with those of a similar offered rate in which it did not, by the share of late first
// tokens of the classes that it serves: miss rates with and without it over all
// windows, and the fraction of the misses that is attributable, rate by rate. Where
// there is nothing to compare with at a rate, nothing is attributed. ok is false when
// that is so at all of them.
func (p *plan) attributed(r *Result, pool int, held func(i int) bool) (with, without, fraction float64, ok bool) {
	panes := p.panes(r, pool, held)
	sort.SliceStable(panes, func(i, j int) bool { return panes[i].n < panes[j].n })
	all, sides, explained := paneStat{}, [2]paneStat{}, 0.0
	for s := range strata {
		var n, bad [2]float64
		for _, w := range panes[len(panes)*s/strata : len(panes)*(s+1)/strata] {
			side := 0
			if w.held {
				side = 1
			}
			n[side] += w.n
			bad[side] += w.bad
		}
		for side := range n {
			sides[side].n += n[side]
			sides[side].bad += bad[side]
			all.bad += bad[side]
		}
		if n[0] > 0.02*(n[0]+n[1]) && n[1] > 0 {
			ok = true
			explained += bad[1] - n[1]*bad[0]/n[0]
		}
	}
	if !ok || all.bad == 0 {
		return 0, 0, 0, false
	}
	return sides[1].bad / sides[1].n, sides[0].bad / sides[0].n, min(1, max(0, explained/all.bad)), true
}

// judgedTTFT tells whether some objective is on a class's TTFT.
func (p *plan) judgedTTFT(class string) bool {
	for i := range p.exp.SLOs {
		if o := &p.exp.SLOs[i]; o.Class == class && o.Metric == slo.TTFT {
			return true
		}
	}
	return false
}

// missed tells whether any objective of a class that a pool serves is not met.
func (p *plan) missed(r *Result, pool int) bool {
	for i := range r.SLOs {
		if s := &r.SLOs[i]; s.Status != Met && s.Bad > 0 && p.servesClass(pool, s.Class) {
			return true
		}
	}
	return false
}

// attribute adds to a finding what the windows with and without it say.
func (p *plan) attribute(f Finding, r *Result, pool int, held func(i int) bool, what string) Finding {
	if !p.missed(r, pool) {
		return f
	}
	if with, without, fraction, ok := p.attributed(r, pool, held); ok && fraction >= 0.01 {
		f.Share, f.Coincides = fraction, true
		f.Evidence += fmt.Sprintf("; %s of the requests miss their TTFT in windows with %s, %s without", percent(roundTo(with, 2)), what, percent(roundTo(without, 2)))
	}
	return f
}

func (p *plan) memoryFinding(r *Result, k int) []Finding {
	x := &r.Pools[k]
	if x.Preemptions.V < 0.5 {
		return nil
	}
	f := Finding{
		Title:    fmt.Sprintf("Pool %s runs out of KV blocks: %s per replication", x.Name, preemptionText(x.Preemptions.V)),
		Evidence: fmt.Sprintf("%s tokens computed again per replication; the fullest replica reached %s of %s blocks", thousands(int64(x.LostTokens.V)), percent0(x.KVPeak), thousands(int64(x.KVBlocks))),
	}
	s := &r.Series.Pools[k]
	f = p.attribute(f, r, k, func(i int) bool { return s.Preempt[i] > 0 || s.KVMax[i] >= fullRule }, "full blocks or preemptions")
	if f.Share == 0 && p.missed(r, k) { // full at all of the high rates: what waits then waits for blocks
		full := func(i int) bool { return s.KVMax[i] >= fullRule && s.Waiting[i] >= 1 }
		if share := p.coinciding(r, k, full); share >= 0.01 {
			f.Share, f.Coincides = share, true
			f.Evidence += fmt.Sprintf("; %s of the misses were sent while a replica's blocks were full and requests waited", percent0(share))
		}
	}
	if f.Share == 0 && x.Preemptions.V*float64(len(r.Seeds)) < rarePreempt*float64(r.Requests) {
		return nil
	}
	return []Finding{f}
}

func preemptionText(n float64) string {
	if n == 1 {
		return "1 preemption"
	}
	if n >= 1000 {
		return thousands(int64(math.Round(n))) + " preemptions"
	}
	return fmt.Sprintf("%.3g preemptions", n)
}

// clockFinding tells how far heat and the power cap lowered the clock.
func (p *plan) clockFinding(r *Result, k int) []Finding {
	x := &r.Pools[k]
	if x.ClockMHz.R == 0 {
		return nil
	}
	top := float64(p.exp.Pools[k].Deployment.GPU.MaxClockMHz / models.ClockStepMHz * models.ClockStepMHz)
	if x.ClockMHz.V > top-models.ClockStepMHz/2 {
		return nil
	}
	f := Finding{
		Title:    fmt.Sprintf("Pool %s lowers its SM clock: %.0f MHz on average, %.0f at worst, of %.0f", x.Name, x.ClockMHz.V, x.ClockMinMHz, top),
		Evidence: fmt.Sprintf("%.0f W per GPU on average; hottest GPU %.0f °C", x.PowerW.V, x.TempMaxC),
	}
	s := &r.Series.Pools[k]
	f = p.attribute(f, r, k, func(i int) bool { return s.ClockMHz[i] < clockRule*top }, fmt.Sprintf("less than %s of the clock", percent0(clockRule)))
	if f.Share == 0 { // it is always below, or never: compare with its own mean
		f = p.attribute(f, r, k, func(i int) bool { return s.ClockMHz[i] < x.ClockMHz.V }, fmt.Sprintf("less than %.0f MHz", x.ClockMHz.V))
	}
	if f.Share == 0 && x.ClockMHz.V >= clockRule*top {
		return nil // a little slower, and no misses go with it
	}
	if f.Share > 0 {
		f.Evidence += "; compared at similar rates, but a backlog keeps the GPU busy, hot and slow, too: a review's ablation tells them apart"
	}
	return []Finding{f}
}

// coldFinding says that replicas were starting while requests missed.
func (p *plan) coldFinding(r *Result, k int) []Finding {
	if p.exp.Pools[k].Autoscale == nil || !p.missed(r, k) {
		return nil
	}
	s := &r.Series.Pools[k]
	least := math.Inf(1)
	for i := range s.Paid {
		if d := s.Paid[i] - s.Serving[i]; d < least {
			least = d
		}
	}
	held := func(i int) bool { return s.Paid[i]-s.Serving[i] > least+startingRule }
	with, without, fraction, ok := p.attributed(r, k, held)
	if !ok || fraction < 0.05 {
		return nil
	}
	return []Finding{{
		Title:    fmt.Sprintf("Pool %s: replicas were still starting while %s of the misses came about", s.Name, percent0(fraction)),
		Evidence: fmt.Sprintf("%s of the requests miss their TTFT in windows with replicas that start, %s without; a start takes %s: warm replicas, a schedule or a forecast would be there in time", percent(roundTo(with, 2)), percent(roundTo(without, 2)), p.exp.Pools[k].Autoscale.StartUp),
		Share:    fraction, Coincides: true,
	}}
}

// collectiveFinding says that tensor parallelism spends its time on talking.
func (p *plan) collectiveFinding(r *Result, k int) []Finding {
	x := &r.Pools[k]
	if x.Split.Comm < commRule {
		return nil
	}
	f := Finding{
		Title:    fmt.Sprintf("Pool %s spends %s of its step time on all-reduce", x.Name, percent0(x.Split.Comm)),
		Evidence: fmt.Sprintf("tensor parallelism over %d GPUs: wider makes it worse; fewer GPUs per replica or a faster link would help", p.exp.Pools[k].Deployment.TP),
	}
	for i := range r.SLOs {
		s := &r.SLOs[i]
		if s.Status == Met || s.Bad == 0 || !p.servesClass(k, s.Class) {
			continue
		}
		served := 0.0
		for _, b := range s.Blame {
			if b.Stage == "prefill" || b.Stage == "decode" {
				served += b.Share
			}
		}
		if share := served * x.Split.Comm; share > f.Share {
			f.Share = share
			f.Evidence += fmt.Sprintf("; %s of the misses of %s are held up by their own prefill or decoding, of whose time this is that part", percent0(served), s.Name)
		}
	}
	return []Finding{f}
}
