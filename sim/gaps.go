package sim

import (
	"math"
	"math/bits"

	"slosim/sim/clock"
	"slosim/sim/stats"
)

// gaps is the distribution of inter-token latencies of a pool in one phase, token
// by token: the time between two output tokens of a stream, as the engine makes
// them. Buckets are 1/128 of their value wide; values below 131 µs are exact to a
// microsecond.
type gaps struct {
	counts [gapOctaves << gapBits]uint64
	most   clock.Duration
}

const (
	gapBits    = 7
	gapOctaves = 32 // up to days
	gapUnit    = 10 // log2 of nanoseconds
)

// add counts n gaps of a length, but does not keep the longest. Almost all lie above the
// octaves whose buckets are a microsecond wide, where the float64 has the bucket in its
// exponent and first digits (as in stats.Key).
func (g *gaps) add(d clock.Duration, n uint64) {
	const mantissa, bias = 52, 1023
	scaled := g.counts[1<<gapBits:]
	if i := math.Float64bits(float64(d))>>(mantissa-gapBits) - (bias+gapUnit+gapBits)<<gapBits; i < uint64(len(scaled)) {
		scaled[i] += n
	} else {
		g.counts[gapBucket(d)] += n
	}
}

// gapBucket returns the bucket of any length.
func gapBucket(d clock.Duration) uint64 {
	u := uint64(max(d, 0)) >> gapUnit
	shift := uint64(bits.Len64(u >> (gapBits + 1))) // of the octaves above 1
	return min(shift<<gapBits+u>>(shift&63), gapOctaves<<gapBits-1)
}

// n returns how many gaps were counted.
func (g *gaps) n() uint64 {
	n := uint64(0)
	for _, c := range g.counts {
		n += c
	}
	return n
}

// quantile returns the gap that a share q of all tokens do not exceed, in seconds.
func (g *gaps) quantile(q float64) float64 {
	rank := q * float64(g.n())
	seen := 0.0
	for i, n := range g.counts {
		if seen += float64(n); seen >= rank && n > 0 {
			octave, slot := i>>gapBits, uint64(i&(1<<gapBits-1))
			low, width := slot, uint64(1)
			if octave > 0 {
				low, width = (1<<gapBits+slot)<<(octave-1), 1<<(octave-1)
			}
			return (float64(low) + float64(width)/2) * (1 << gapUnit) * 1e-9
		}
	}
	return 0
}

// gapMeter takes the gaps of all replicas of a pool.
type gapMeter struct {
	plan    *plan
	from    clock.Time // the phase of the last gap
	span    uint64
	now     *gaps // of that phase
	judged  bool  // some objective is on ITL
	phase   int
	phases  []gaps
	ledgers []*ledger // per objective, of those on ITL; nil until the first token
}

// Gap implements engine.Gaps.
func (m *gapMeter) Gap(end clock.Time, length clock.Duration, tokens int64) {
	if uint64(end-m.from) >= m.span && !m.turn(end) {
		return
	}
	g := m.now
	g.add(length, uint64(tokens))
	if length > g.most {
		g.most = length
	}
	if m.judged {
		m.judge(end, m.phase, length, tokens)
	}
}

// turn goes to the phase of another instant, false if that is not counted.
func (m *gapMeter) turn(end clock.Time) bool {
	if end < 0 || end >= clock.Time(m.plan.exp.Duration) {
		return false
	}
	m.phase = 0
	for end >= m.plan.phases[m.phase].to {
		m.phase++
	}
	phase := &m.plan.phases[m.phase]
	m.from = max(0, phase.from)
	m.span = uint64(min(phase.to, clock.Time(m.plan.exp.Duration)) - m.from)
	m.now, m.judged = &m.phases[m.phase], m.plan.judgesGaps
	return true
}

// gapRep is a pool's inter-token latency in a phase of one replication, seconds.
type gapRep struct {
	n                   int64
	p50, p90, p99, p999 float64
	most                float64
}

func (m *gapMeter) reduce() []gapRep {
	out := make([]gapRep, len(m.phases))
	for k := range m.phases {
		g := &m.phases[k]
		out[k] = gapRep{int64(g.n()), g.quantile(.5), g.quantile(.9), g.quantile(.99), g.quantile(.999), g.most.Seconds()}
	}
	return out
}

// PhaseITL is a pool's inter-token latency in one phase, seconds, over all tokens
// after the first; quantiles are within 0.4 %.
type PhaseITL struct {
	Phase               string
	P50, P90, P99, P999 stats.Estimate
	Max                 float64
}

func combineGaps(list []poolRep, phase int, name string) PhaseITL {
	n := sumOf(list, func(r poolRep) int64 { return r.itl[phase].n })
	of := func(f func(g gapRep) float64) stats.Estimate {
		var values []float64
		for _, r := range list {
			if r.itl[phase].n > 0 {
				values = append(values, f(r.itl[phase]))
			}
		}
		return stats.Of(values, n)
	}
	out := PhaseITL{
		Phase: name,
		P50:   of(func(g gapRep) float64 { return g.p50 }), P90: of(func(g gapRep) float64 { return g.p90 }),
		P99: of(func(g gapRep) float64 { return g.p99 }), P999: of(func(g gapRep) float64 { return g.p999 }),
	}
	for _, r := range list {
		out.Max = max(out.Max, r.itl[phase].most)
	}
	return out
}
