package sim

import (
	"math"
	"math/bits"

	"slosim/engine"
	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/workloads"
)

// View is what a router knows of a replica: what the gateway counts itself, and
// what it polls now and then.
type View struct {
	Outstanding int32 // requests sent to it and not finished
	Tokens      int64 // of these: prompt and output
	Backlog     int64 // of these: prompts without a first token
	Up          bool  // takes requests

	Load int32   // polled: running and waiting requests
	KV   float64 // polled: share of the KV blocks in use
}

// Router picks the replica of a request among those that are up; there is one at
// least. Implementations may keep state: one router serves one pool of one
// replication.
type Router interface {
	Pick(now clock.Time, r *workloads.Request, p *fleet) int
}

// Routers are the names of routing rules.
var Routers = []string{
	"least-outstanding", "round-robin", "random", "power-of-two", "least-tokens", "least-load", "least-kv",
	"prefix-aware", "kv-aware", "session-affinity", "latency-predicted",
}

// Polls tells whether a routing rule looks at polled metrics.
func Polls(router string) bool {
	return router == "least-load" || router == "least-kv" || router == "prefix-aware"
}

func (p *plan) newRouter(pool int, seed uint64) Router {
	spec := &p.exp.Pools[pool]
	draws := rng.New(seed, rng.RouterPick, spec.Name)
	switch spec.Router {
	case "round-robin":
		return &roundRobin{}
	case "random":
		return &randomPick{draws: draws}
	case "power-of-two":
		return &powerOfTwo{draws: draws}
	case "session-affinity":
		return &affinity{draws: draws}
	case "least-tokens":
		return &scored{cost: func(_ *workloads.Request, p *fleet, i int) float64 { return float64(p.views[i].Tokens) }}
	case "least-load":
		return &scored{cost: func(_ *workloads.Request, p *fleet, i int) float64 { return float64(p.views[i].Load) }}
	case "least-kv":
		return &scored{cost: func(_ *workloads.Request, p *fleet, i int) float64 { return p.views[i].KV }}
	case "prefix-aware":
		return &scored{prepare: loadRange, cost: eppCost}
	case "kv-aware":
		return &scored{cost: dynamoCost}
	case "latency-predicted":
		return &scored{cost: p.predictedTTFT(pool)}
	}
	return newLeastOutstanding(spec.Limit())
}

// roundRobin sends each request to the next replica.
type roundRobin struct{ next int }

func (r *roundRobin) Pick(_ clock.Time, _ *workloads.Request, p *fleet) int {
	i := r.next % len(p.views)
	for !p.views[i].Up {
		i = (i + 1) % len(p.views)
	}
	r.next = i + 1
	return i
}

// randomPick sends each request to any replica: the streams are thinned.
type randomPick struct {
	draws rng.Source
	n     int64
}

func (r *randomPick) Pick(_ clock.Time, _ *workloads.Request, p *fleet) int {
	r.n++
	return p.up(r.draws.Float64(r.n))
}

// powerOfTwo draws two replicas and takes the one with fewer unfinished requests.
type powerOfTwo struct {
	draws rng.Source
	n     int64
}

func (r *powerOfTwo) Pick(_ clock.Time, _ *workloads.Request, p *fleet) int {
	r.n += 2
	a, b := p.up(r.draws.Float64(r.n)), p.up(r.draws.Float64(r.n+1))
	if p.views[b].Outstanding < p.views[a].Outstanding {
		return b
	}
	return a
}

// affinity keeps a conversation on one replica while that is up, by rendezvous
// hashing; requests without one go anywhere.
type affinity struct {
	draws rng.Source
	n     int64
}

func (r *affinity) Pick(_ clock.Time, q *workloads.Request, p *fleet) int {
	if !q.Chain.Known() {
		r.n++
		return p.up(r.draws.Float64(r.n))
	}
	key := int64(q.Chain.Key() >> 1)
	best, most := -1, -1.0
	for i := range p.views {
		if p.views[i].Up {
			if u := r.draws.Float64(key ^ int64(i)*0x2545f4914f6cdd); u > most {
				best, most = i, u
			}
		}
	}
	return best
}

// leastOutstanding sends each request to the replica with the fewest unfinished
// requests; ties go round, so that an idle fleet shares the load. Replicas are
// filed by their number in bit sets: a pick costs the same for ten and a thousand.
// It counts along: each replica that it picks has one request more from then on, and
// the fleet tells it what else changes.
type leastOutstanding struct {
	next  int
	words int      // of a level
	level []uint64 // by Outstanding: the replicas that have so many and are up, one bit each
	least int      // no level below it has a replica
}

func newLeastOutstanding(replicas int) *leastOutstanding {
	return &leastOutstanding{words: (replicas + 63) / 64}
}

// Pick implements Router.
func (r *leastOutstanding) Pick(clock.Time, *workloads.Request, *fleet) int { return r.pick() }

// pick is Pick. Where a level is one word, what chance decides, which replica is next and
// whether a level is empty then, is reckoned and not asked.
func (r *leastOutstanding) pick() int {
	if r.words > 1 {
		return r.pickOfMany()
	}
	n := r.least
	for r.level[n] == 0 {
		n++
	}
	set := r.level[n]
	i := (r.next + bits.TrailingZeros64(bits.RotateLeft64(set, -r.next))) & 63
	r.next = i + 1
	bit := uint64(1) << i
	set &^= bit
	r.level[n] = set
	n++
	if n == len(r.level) {
		r.level = append(r.level, 0)
	}
	r.level[n] |= bit
	if set != 0 {
		n--
	}
	r.least = n
	return i
}

// pickOfMany is pick where a level is several words.
func (r *leastOutstanding) pickOfMany() int {
	if r.next == r.words*64 {
		r.next = 0
	}
	for ; ; r.least++ {
		from := r.least * r.words
		i := nextBit(r.level[from:from+r.words], r.next)
		if i < 0 {
			continue
		}
		r.next = i + 1
		at, bit := from+i>>6, uint64(1)<<(i&63)
		r.level[at] &^= bit
		r.grow(r.least + 1)
		r.level[at+r.words] |= bit
		return i
	}
}

// grow makes room for a level.
func (r *leastOutstanding) grow(n int) {
	if need := (n + 1) * r.words; need > len(r.level) {
		r.level = append(r.level, make([]uint64, need-len(r.level))...)
	}
}

// file enters replica i with n requests or takes it out.
func (r *leastOutstanding) file(i, n int, in bool) {
	r.grow(n)
	at, bit := n*r.words+i>>6, uint64(1)<<(i&63)
	r.level[at] &^= bit
	if in {
		r.level[at] |= bit
		r.least = min(r.least, n)
	}
}

// left tells that replica i, which is up, has one request less: n.
func (r *leastOutstanding) left(i, n int) {
	at, bit := n*r.words+i>>6, uint64(1)<<(i&63)
	r.level[at+r.words] &^= bit
	r.level[at] |= bit
	r.least = min(r.least, n)
}

// nextBit returns the first set bit from start on, going round; −1 without any.
func nextBit(set []uint64, start int) int {
	word := start >> 6
	if m := set[word] >> (start & 63); m != 0 {
		return start + bits.TrailingZeros64(m)
	}
	for k := 1; k <= len(set); k++ {
		w := (word + k) % len(set)
		if m := set[w]; m != 0 {
			return w<<6 + bits.TrailingZeros64(m)
		}
	}
	return -1
}

// scored takes the replica of least cost; ties go round.
type scored struct {
	prepare func(p *fleet) // before the costs of one pick
	cost    func(r *workloads.Request, p *fleet, i int) float64
	next    int
}

func (s *scored) Pick(_ clock.Time, r *workloads.Request, p *fleet) int {
	if s.prepare != nil {
		s.prepare(p)
	}
	best, least := -1, math.Inf(1)
	for k := range p.views {
		i := (s.next + k) % len(p.views)
		if !p.views[i].Up {
			continue
		}
		if c := s.cost(r, p, i); c < least || best < 0 {
			best, least = i, c
		}
	}
	s.next = best + 1
	return best
}

// eppCost is llm-d's endpoint picker with its sample weights: prefix 2, queue 1, KV
// use 1 (ENGINE §9); the highest score is the least cost.
func eppCost(r *workloads.Request, p *fleet, i int) float64 {
	queue := 1.0
	if p.most > p.least {
		queue = float64(p.most-p.views[i].Load) / float64(p.most-p.least)
	}
	prefix := float64(p.cached(i, r)) / float64(max(r.Prompt, 1))
	return -(2*prefix + queue + 1 - p.views[i].KV)
}

// loadRange notes the least and the most load of the replicas that are up.
func loadRange(p *fleet) {
	p.least, p.most = math.MaxInt32, 0
	for _, i := range p.ups {
		l := p.views[i].Load
		p.least, p.most = min(p.least, l), max(p.most, l)
	}
}

// dynamoCost is Dynamo's KV router: blocks to prefill, its own and those under way,
// plus blocks that decode holds (ENGINE §9; overlap weight 1, temperature 0).
func dynamoCost(r *workloads.Request, p *fleet, i int) float64 {
	v := &p.views[i]
	return float64(int64(r.Prompt-p.cached(i, r))+v.Backlog) + float64(v.Tokens-v.Backlog)
}

// predictedTTFT estimates how long a prompt waits and prefills on a replica: the
// prompts before it and its own at the speed of full steps.
func (p *plan) predictedTTFT(pool int) func(*workloads.Request, *fleet, int) float64 {
	spec := &p.exp.Pools[pool]
	n := spec.Engine.MaxBatchedTokens
	full := p.models[pool].Step(models.Batch{Tokens: n, Seqs: 1, PrefillTokens: n, PrefillArea: int64(n) * int64(n) / 2}, spec.startBin())
	perToken := float64(full.Total()) / float64(n)
	row := p.models[pool].Slope(1, spec.startBin()).Total()
	return func(r *workloads.Request, p *fleet, i int) float64 {
		v := &p.views[i]
		return float64(v.Backlog+int64(r.Prompt-p.cached(i, r)))*perToken + float64(v.Tokens)*float64(row)
	}
}

// cached returns how many of a request's tokens the prefix cache of a replica
// holds at this moment, as engines tell routers by their KV events.
func (p *fleet) cached(i int, r *workloads.Request) int32 {
	if v, ok := p.replicas[i].(*engine.VLLM); ok {
		return v.Cached(r)
	}
	return 0
}
