package sim

import (
	"math"

	"slosim/sim/clock"
)

// Limit is what the gateway admits of a class. Zero values are no limits.
type Limit struct {
	Requests  float64 // per second, token bucket
	Tokens    float64 // prompt and output tokens per second, token bucket
	Burst     float64 // seconds of either rate that may be saved up; 0 = one second
	InFlight  int     // requests at once, waiting at the gateway included
	MaxPrompt int32   // longer prompts are rejected
	Weight    float64 // share under fair order; 0 = 1
}

// Gate is the gateway in front of a pool: at most InFlight of its requests are with
// the replicas, the others wait here.
type Gate struct {
	InFlight int            // 0 = no gate
	Queue    int            // requests that may wait; more are rejected
	Timeout  clock.Duration // of waiting; then rejected; 0 = none
	Order    string         // "fcfs", "priority" or "fair"
}

// bucket is a token bucket, exact in time: it fills at rate per second up to size.
type bucket struct {
	rate, size, level float64
	last              clock.Time
}

func newBucket(rate, burst float64) bucket {
	if burst == 0 {
		burst = 1
	}
	return bucket{rate: rate, size: math.Max(1, rate*burst), level: math.Max(1, rate*burst)}
}

// take takes n tokens if they are there. More than the bucket's size can never be:
// such a request passes when the bucket is full, and leaves a debt.
func (b *bucket) take(now clock.Time, n float64) bool {
	if b.rate == 0 {
		return true
	}
	b.level = math.Min(b.size, b.level+b.rate*now.Sub(b.last).Seconds())
	b.last = now
	if b.level < math.Min(n, b.size)-1e-9*b.size { // what rounding may cost
		return false
	}
	b.level -= n
	return true
}

// limiter holds a class to its limit.
type limiter struct {
	spec             Limit
	requests, tokens bucket
	inFlight         int
	open             bool // there is no limit
}

// admits takes a request in, or tells why not.
func (l *limiter) admits(now clock.Time, f *flight) (why Refusal, ok bool) {
	if l.open {
		return 0, true
	}
	if l.spec.MaxPrompt > 0 && f.req.Prompt > l.spec.MaxPrompt {
		return RefusedLength, false
	}
	if l.spec.InFlight > 0 && l.inFlight >= l.spec.InFlight {
		return RefusedInFlight, false
	}
	// Both must hold before either is charged.
	before := l.requests
	if !l.requests.take(now, 1) {
		return RefusedRate, false
	}
	if !l.tokens.take(now, float64(f.req.Prompt+f.req.Output)) {
		l.requests = before
		return RefusedTokens, false
	}
	return 0, true
}

// gateway is a pool's gate at work.
type gateway struct {
	c       *cluster
	f       int // fleet
	spec    Gate
	inside  int       // requests that the pool's replicas have
	queues  [][]int32 // by class: ids, head first
	heads   []int
	waiting int
	served  []float64 // fair order: tokens served by weight, per class
	virtual float64   // the least of them that waits
}

func (g *gateway) init(c *cluster, f *fleet) {
	g.c, g.f, g.spec = c, f.index, f.spec.Gate
	n := len(c.plan.exp.Traffic)
	g.queues, g.heads, g.served = make([][]int32, n), make([]int, n), make([]float64, n)
}

// full tells whether a request must wait: the gate is full or no replica serves.
func (g *gateway) full(f *fleet) bool {
	return len(f.ups) == 0 || g.spec.InFlight > 0 && g.inside >= g.spec.InFlight
}

// hold lets a request wait; false when the queue is full.
func (g *gateway) hold(now clock.Time, id int32) bool {
	f := &g.c.flights[id]
	k := f.req.Class
	if g.waiting >= g.spec.Queue {
		worse := g.worse(int(k))
		if worse < 0 {
			return false
		}
		q := g.queues[worse]
		out := q[len(q)-1]
		g.queues[worse] = q[:len(q)-1]
		g.waiting--
		g.c.flights[out].gate = 0
		defer g.c.refuse(now, out, RefusedQueue) // when the newcomer stands
	}
	if len(g.queues[k]) == g.heads[k] { // it has not waited: no credit for the past
		g.served[k] = max(g.served[k], g.virtual)
	}
	g.queues[k] = append(g.queues[k], id)
	g.waiting++
	f.gate = int16(g.f) + 1
	f.since = now
	if !f.gated {
		f.gated, f.held = true, 0
	}
	if g.spec.Timeout > 0 {
		g.c.loop.At(now.Add(g.spec.Timeout), timerGate, f.ticket(id))
	}
	return true
}

// worse returns the class whose newest request makes room for one of class k when
// the queue is full: one of less priority, or in fair order the longest queue if class k has none waiting;
// −1 for none.
func (g *gateway) worse(k int) int {
	if g.spec.Order == "fcfs" || g.spec.Queue == 0 {
		return -1
	}
	length := func(j int) float64 { return float64(len(g.queues[j]) - g.heads[j]) }
	best := -1
	for j := range g.queues {
		if length(j) == 0 || j == k {
			continue
		}
		traffic := g.c.plan.exp.Traffic
		switch {
		case g.spec.Order == "priority":
			if traffic[j].Priority > traffic[k].Priority && (best < 0 || traffic[j].Priority > traffic[best].Priority) {
				best = j
			}
		case length(k) == 0 && length(j) > 1: // a class without any place gets one
			if best < 0 || length(j)/g.weight(j) > length(best)/g.weight(best) {
				best = j
			}
		}
	}
	return best
}

// next lets in whom there is room for.
func (g *gateway) next(now clock.Time) {
	f := &g.c.pools[g.f]
	for g.waiting > 0 && !g.full(f) {
		k := g.choose()
		id := g.queues[k][g.heads[k]]
		g.pop(k)
		x := &g.c.flights[id]
		x.gate = 0
		x.held += now.Sub(x.since)
		cost := float64(x.req.Prompt + x.req.Output)
		g.virtual = g.served[k]
		g.served[k] += cost / g.weight(k)
		g.c.submit(now, x, &x.req, f)
	}
}

func (g *gateway) open(now clock.Time) {
	if g.c != nil && g.waiting > 0 {
		g.next(now)
	}
}

func (g *gateway) weight(k int) float64 {
	if w := g.c.limits[k].spec.Weight; w > 0 {
		return w
	}
	return 1
}

// choose returns the class whose head goes first.
func (g *gateway) choose() int {
	best := -1
	for k := range g.queues {
		if len(g.queues[k]) == g.heads[k] {
			continue
		}
		if best < 0 || g.before(k, best) {
			best = k
		}
	}
	return best
}

func (g *gateway) before(a, b int) bool {
	x, y := &g.c.flights[g.queues[a][g.heads[a]]], &g.c.flights[g.queues[b][g.heads[b]]]
	switch g.spec.Order {
	case "priority":
		if x.req.Priority != y.req.Priority {
			return x.req.Priority < y.req.Priority
		}
	case "fair":
		if g.served[a] != g.served[b] {
			return g.served[a] < g.served[b]
		}
	}
	return x.since < y.since
}

func (g *gateway) pop(k int) {
	g.heads[k]++
	g.waiting--
	if n := g.heads[k]; n > 64 && n*2 > len(g.queues[k]) {
		g.queues[k] = g.queues[k][:copy(g.queues[k], g.queues[k][n:])]
		g.heads[k] = 0
	}
}

// remove takes a request out of the queue.
func (g *gateway) remove(id int32) {
	f := &g.c.flights[id]
	k := f.req.Class
	q := g.queues[k]
	for i := g.heads[k]; i < len(q); i++ {
		if q[i] == id {
			copy(q[g.heads[k]+1:i+1], q[g.heads[k]:i])
			g.pop(int(k))
			break
		}
	}
	f.gate = 0
}
