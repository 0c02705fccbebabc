package sim

import (
	"context"
	"fmt"
	"sync/atomic"
	"unsafe"

	"slosim/engine"
	"slosim/sim/clock"
	"slosim/sim/kernel"
	"slosim/sim/prefetch"
	"slosim/workloads"
)

// Timers of the data plane.
const (
	timerDeliver   int32 = iota // request Arg reaches the gateway
	timerDone                   // the client of request Arg has its last token
	timerUser                   // user Arg&mask of class Arg>>userBits sends again
	timerDayBefore              // one day before the end
	timerEnd                    // the counted span ends
	timerLimit                  // the cool-down ends
	timerHandover               // the prompt of request Arg is computed: on to its decode replica
	timerTransfer               // a KV transfer ends, if Arg is the newest forecast
	timerTimeout                // the client of request Arg&mask, serial Arg>>userBits, waits no longer
	timerPatience               // the same, if it has no first token yet
	timerRetry                  // comeback Arg is sent
	timerStarted                // replica Arg&mask serves, if its stage has serial Arg>>userBits still
	timerGate                   // request Arg&mask, serial Arg>>userBits, has waited too long at a gate
	timerPoll                   // the gateway polls the replicas of pool Arg
	timerHeat                   // the heat of all GPUs is carried on
	timerMonitor                // all replicas are looked at
)

// userBits is the width of a user's number in a timer's argument.
const userBits = 32

// fitCache is about how many replicas, each of some 20 KB, fit a processor's second-level
// cache: at 20 looking ahead costs more than it saves, at 200 it saves (docs/performance.md).
const fitCache = 32

// flight is a request between its client and its last token. What a first token and an
// end look at lies in the first line of the processor's cache, up to the request's cohort;
// the other two lines only matter to requests that are not plain, to gates and to timers.
type flight struct {
	first    clock.Time // first token; clock.Never before
	at       *tally     // where it counts
	replica  int32      // of the cluster
	handle   int32      // its replica's name for it; of a free slot: the next one
	live     bool
	admitted bool // counts against its class's limit
	backlog  bool // its prompt counts in its replica's View.Backlog
	dead     bool // its client has gone; an event will end it
	split    bool // its prompt is, or was, computed in a prefill pool
	timed    bool // it has a serial
	gated    bool // it is, or was, held at a gate
	plain    bool // its request is; user and attempt are −1 and 0

	req     workloads.Request
	user    int32          // closed loop; −1 otherwise
	attempt int32          // 0 = the first
	serial  uint32         // of the slot's uses that have timers
	gate    int16          // 1 + pool at whose gate it waits; 0 = none, as whoever lets it go on leaves it
	held    clock.Duration // at a gate, so far
	since   clock.Time     // at the gate
	_       [16]byte       // to whole lines
}

// promptHalf is the prefill side of a disaggregated request.
type promptHalf struct {
	replica        int32
	row            int32 // there, to be released
	decodeRow      int32 // on the decode replica, to be told of the arrival
	ready, started clock.Time
	bytes          float64 // of KV to move
	stage          halfStage
	moved          bool // its blocks on the prefill side are free again
}

// cluster is the world of one replication.
type cluster struct {
	plan      *plan
	loop      *kernel.Loop
	replicas  []engine.Replica
	pools     []fleet
	places    []place       // of the replicas
	hints     []engine.Hint // of the replicas, while the loop looks ahead
	seed      uint64
	number    int       // of the replication
	limits    []limiter // per class
	force     []inForce // per class: what the degradation policy does
	degraded  bool      // it does or did something
	actions   []Action
	policy    *policy // budgets in the loop; nil = nothing depends on them
	oldSteps  int64   // of engines that were replaced
	sources   []*source
	speaker   *source // whose arrival is announced
	flights   []flight
	halves    []promptHalf      // of flights, where any pool only prefills
	ask       workloads.Request // that is being sent: scratch
	comebacks []comeback
	spare     int32 // of comebacks: free list
	free      int32
	inFlight  int64
	rec       *recorder
	links     *links
	mon       *monitor
	gaps      []*gapMeter // per pool
	phase     int32
	phaseEnd  clock.Time // of the phase
	end       clock.Time // of the counted span
	network   clock.Duration
	open      int64 // counted requests not yet finished
	ended     bool
	backlog   [2]int64 // requests in flight one day before the end, and at the end
	events    []engine.Event
	touched   bool // a replica was touched from outside since it was last advanced
	sent      int64
	covered   *atomic.Int64 // simulated time reached, for progress
	err       error
}

// newCluster builds one replication with everything at rest.
func newCluster(p *plan, seed uint64, covered *atomic.Int64) (*cluster, error) {
	start := clock.Time(-p.exp.Warmup)
	c := &cluster{plan: p, free: -1, spare: -1, rec: newRecorder(p), covered: covered}
	c.phaseEnd, c.end, c.network = p.phases[0].to, clock.Time(p.exp.Duration), p.exp.Network
	c.seed = seed
	c.watchTTFT()
	c.rec.addPromises(seed)
	c.policy = c.newPolicy()
	for k := range p.exp.Traffic {
		l := Limit{}
		if p.exp.Limits != nil {
			l = p.exp.Limits[k]
		}
		c.limits = append(c.limits, limiter{spec: l, requests: newBucket(l.Requests, l.Burst), tokens: newBucket(l.Tokens, l.Burst), open: l.MaxPrompt <= 0 && l.InFlight <= 0 && l.Requests == 0 && l.Tokens == 0})
		c.force = append(c.force, inForce{to: -1})
	}
	for k := range p.exp.Pools {
		c.newFleet(k, seed)
	}
	for k := range c.pools {
		f := &c.pools[k]
		f.replicas = c.replicas[f.first : int(f.first)+len(f.views)]
		for i := range f.views {
			c.places = append(c.places, place{pool: f, view: &f.views[i], index: i})
		}
	}
	c.loop = kernel.NewLoop(len(c.replicas), start)
	if len(c.replicas) > fitCache {
		c.loop.LookAhead()
		c.hints = make([]engine.Hint, len(c.replicas))
		for i, r := range c.replicas {
			r.HintAt(&c.hints[i])
		}
	}
	end := clock.Time(p.exp.Duration)
	for k := range p.exp.Traffic {
		s, err := p.newSource(k, seed, start, end.Add(p.coolDown))
		if err != nil {
			return nil, err
		}
		s.straight = c.straightTo(k)
		c.sources = append(c.sources, s)
	}
	c.mon = newMonitor(c)
	c.links = newLinks(c)
	c.loop.At(end, timerEnd, 0)
	c.loop.At(end.Add(p.coolDown), timerLimit, 0)
	if p.exp.Duration >= clock.Day {
		c.loop.At(end.Add(-clock.Day), timerDayBefore, 0)
	}
	return c, nil
}

// run simulates until every counted request is decided.
func (c *cluster) run(ctx context.Context) error {
	defer func() {
		for _, s := range c.sources {
			if s.trace != nil {
				s.trace.Close()
			}
		}
	}()
	if c.mon.anyThermal() {
		c.loop.At(c.loop.Now().Add(heatInterval), timerHeat, 0)
	}
	c.loop.At(c.loop.Now().Add(monitorInterval), timerMonitor, 0)
	c.faults()
	for k, s := range c.sources {
		if err := s.advance(); err != nil {
			return err
		}
		if s.sessions != nil {
			if err := c.backdate(s, c.loop.Now()); err != nil {
				return err
			}
		}
		for u := range c.plan.exp.Traffic[k].Client.Users {
			// users who think begin with that, or all of them would come at once
			c.loop.At(c.loop.Now().Add(s.thinkTime(-1-int64(u))), timerUser, int64(k)<<userBits|int64(u))
		}
	}
	c.loop.SetArrival(c.announce())
	if err := c.loop.Run(ctx, c); err != nil {
		return err
	}
	return c.err
}

// announce picks the source with the earliest arrival and returns its time.
func (c *cluster) announce() clock.Time {
	first := c.sources[0]
	for _, s := range c.sources[1:] {
		if s.next.Send < first.next.Send {
			first = s
		}
	}
	c.speaker = first
	return first.next.Send
}

// Arrive implements kernel.World.
func (c *cluster) Arrive(now clock.Time) clock.Time {
	s := c.speaker
	if now >= 0 && !c.ended {
		s.offered++
	}
	if s.sessions != nil {
		c.nextTurn(now, s, s.sessions.open(s.next.Index))
	} else if s.limit > 0 && s.inFlight >= s.limit {
		s.backlog = append(s.backlog, *s.next)
	} else {
		c.send(now, s, s.next, -1, 0)
	}
	if !s.step() {
		if err := s.draw(); err != nil {
			c.stopFor(err)
		}
	}
	if len(c.sources) == 1 {
		return s.next.Send
	}
	return c.announce()
}

func (c *cluster) stopFor(err error) {
	if c.err == nil {
		c.err = err
	}
	c.loop.Stop()
}

// Timer implements kernel.World.
func (c *cluster) Timer(now clock.Time, kind int32, arg int64) {
	switch kind {
	case timerDeliver:
		c.deliver(now, int32(arg))
	case timerDone:
		c.release(now, int32(arg), false)
	case timerUser:
		c.userSends(now, c.sources[arg>>userBits], int32(arg&(1<<userBits-1)))
	case timerHandover:
		c.handOver(now, int32(arg))
	case timerTransfer:
		c.links.timer(now, arg)
	case timerTimeout:
		c.lapsed(now, arg, false)
	case timerPatience:
		c.lapsed(now, arg, true)
	case timerStarted:
		c.started(now, arg)
	case timerGate:
		c.gateTimeout(now, arg)
	case timerPoll:
		c.poll(now, &c.pools[arg])
	case timerHeat:
		c.mon.heat(now)
		c.loop.At(now.Add(heatInterval), timerHeat, 0)
	case timerMonitor:
		c.mon.watch(now)
		c.loop.At(now.Add(monitorInterval), timerMonitor, 0)
	case timerRetry:
		c.retries(now, int32(arg))
	case timerDayBefore:
		c.backlog[0] = c.inFlight
	case timerEnd:
		c.backlog[1] = c.inFlight
		c.ended = true
		c.stopWhenDecided()
	case timerLimit:
		c.loop.Stop()
	default:
		panic(fmt.Sprintf("sim: timer of unknown kind %d", kind))
	}
}

func (c *cluster) stopWhenDecided() {
	if c.ended && c.open == 0 {
		c.loop.Stop()
	}
}

// userSends lets one user of a closed loop send its next request.
func (c *cluster) userSends(now clock.Time, s *source, user int32) {
	if now >= s.until {
		return
	}
	if s.sessions != nil {
		c.nextTurn(now, s, user)
		return
	}
	i := s.sent
	s.sent++
	c.ask = workloads.Request{Class: s.class}
	s.shaper.Shape(i, now, &c.ask)
	c.send(now, s, &c.ask, user, 0)
}

// nextTurn sends the next request of a session.
func (c *cluster) nextTurn(now clock.Time, s *source, k int32) {
	c.ask = workloads.Request{}
	s.shapeTurn(k, now, &c.ask)
	c.send(now, s, &c.ask, k, 0)
}

// send puts a request on its way; it fills in its slot and its time, and cuts its output to
// what the engines take. The request must not lie in the table of flights, which may move;
// once delivered it may be overwritten, if it is c.ask: a refusal lets its client go on.
func (c *cluster) send(now clock.Time, s *source, r *workloads.Request, user, attempt int32) {
	id := c.free
	if id < 0 {
		id = int32(len(c.flights))
		c.flights = append(c.flights, flight{handle: c.free})
	}
	f := &c.flights[id]
	c.free = f.handle
	r.ID, r.Send = id, now
	f.renew()
	if f.plain && user < 0 && attempt == 0 && r.Plain() {
		f.asks(r)
	} else {
		f.takes(r, user, attempt)
	}
	c.inFlight++
	s.inFlight++
	c.sent++
	if now >= 0 && now < c.end {
		for now >= c.phaseEnd {
			c.phase++
			c.phaseEnd = c.plan.phases[c.phase].to
		}
		c.open++
		c.rec.arrival(f, s.groups[r.Cohort], c.phase, attempt)
	} else {
		f.at = &c.rec.aside[s.groups[r.Cohort]]
	}
	if s.arms {
		c.arm(now, id, &c.plan.exp.Traffic[s.class].Client)
	}
	switch p := s.straight; {
	case c.network > 0:
		c.loop.At(now.Add(c.network), timerDeliver, int64(id))
	case p != nil && len(p.ups) > 0 && !c.degraded:
		f.fit(p)
		r.Output = f.req.Output
		c.submit(now, f, r, p)
	default:
		c.deliver(now, id)
	}
}

// renew makes a slot of the table a new request's; what it asks for and where it counts is
// still to be said.
func (f *flight) renew() {
	f.first = clock.Never
	f.replica, f.handle = -1, 0
	f.live, f.admitted, f.backlog, f.dead, f.split, f.timed, f.gated = true, false, false, false, false, false, false
}

// takes says what a request asks for.
//
//go:noinline
func (f *flight) takes(r *workloads.Request, user, attempt int32) {
	f.req, f.user, f.attempt = *r, user, attempt
	f.plain = user < 0 && attempt == 0 && r.Plain()
}

// asks is takes of a plain request after another one: all but the first line stays.
func (f *flight) asks(r *workloads.Request) {
	q := &f.req
	q.Send, q.Index, q.Prompt, q.Output, q.Class, q.Cohort = r.Send, r.Index, r.Prompt, r.Output, r.Class, r.Cohort
}

// counted tells whether a request counts.
func (f *flight) counted() bool { return f.at.cell != nil }

// waited is how long a request was held at a gate.
func (f *flight) waited() clock.Duration {
	if !f.gated {
		return 0
	}
	return f.held
}

// ticket returns the argument of a timer of a request.
func (f *flight) ticket(id int32) int64 {
	if !f.timed {
		f.timed = true
		f.serial++
	}
	return int64(f.serial)<<userBits | int64(id)
}

// expects tells whether a timer with an argument is of the request that has the slot now.
func (f *flight) expects(arg int64) bool {
	return f.live && f.timed && f.serial == uint32(arg>>userBits)
}

// handing returns a replica that is to be told of a half of a request.
func (c *cluster) handing(i int32) engine.Handing {
	c.touched = true
	return c.replicas[i].(engine.Handing)
}

// rouse tells the kernel when a replica wants to be called after it was touched
// from outside.
func (c *cluster) rouse(i int32) {
	c.touched = true
	if next, ok := c.replicas[i].Next(); ok {
		c.loop.SetReplica(i, next)
	}
}

// Replica implements kernel.World.
func (c *cluster) Replica(now clock.Time, i int32) clock.Time {
	r := c.replicas[i]
	events := r.Advance(now, c.events[:0])
	if c.touched = false; cap(events) > cap(c.events) {
		c.events = events // it has grown
	}
	if len(events) == 0 {
		next, _ := r.Next()
		return next
	}
	e := &events[0] // nearly always the only one
	f := &c.flights[e.ID]
	if c.hints == nil {
		prefetch.One(unsafe.Pointer(f)) // while Next looks
	}
	next, _ := r.Next()
	for k := 1; ; k++ {
		switch on := &c.places[i]; {
		case f.dead && e.Kind != engine.Preempted:
			c.buried(now, f, e)
		case e.Kind == engine.FirstToken:
			c.begins(f, e, on)
		case e.Kind == engine.Finished || e.Kind == engine.Rejected:
			c.ends(now, f, e, on)
		default:
			c.happens(now, i, f, e)
		}
		if k >= len(events) {
			break
		}
		e = &events[k]
		f = &c.flights[e.ID] // now: the table may have moved
	}
	if c.touched { // by what an event led to
		next, _ = r.Next()
	}
	return next
}

// Soon implements kernel.World.
func (c *cluster) Soon(i int32) {
	if int(i) >= len(c.hints) {
		return
	}
	h := &c.hints[i]
	if id := h.ID(); int(id) < len(c.flights) {
		prefetch.One(unsafe.Pointer(&c.flights[id]))
	}
	h.Fetch()
}

// happens handles the rarer events of a request on replica i.
func (c *cluster) happens(now clock.Time, i int32, f *flight, e *engine.Event) {
	switch e.Kind {
	case engine.KVReady:
		c.kvReady(now, f, e)
	case engine.Reserved:
		c.reserved(now, f, e)
	case engine.Preempted:
		c.mon.preempted(i, e)
	}
}

// begins notes the first token of a request on the replica at a place.
func (c *cluster) begins(f *flight, e *engine.Event, on *place) {
	if f.split {
		c.halves[e.ID].stamp(e)
	}
	f.first = e.At
	on.view.answered(f)
	if f.counted() {
		c.rec.firstToken(f, e)
	}
}

// ends notes the end of a request on the replica at a place: its last token, or that it
// is rejected. The client learns of it when the last token is visible.
func (c *cluster) ends(now clock.Time, f *flight, e *engine.Event, on *place) {
	failed := false
	if e.Kind == engine.Finished {
		in := f.req.Prompt
		if f.split {
			c.halves[e.ID].stamp(e)
			in = 0 // computed in the prefill pool
		}
		if f.counted() {
			c.rec.finished(f, e)
			on.pool.used(f.req.Class, in, f.req.Output)
		}
		c.rec.completed(f, e)
		if c.plan.served != nil {
			c.tell(f, e)
		}
	} else {
		failed = e.Reason == engine.QueueFull
		c.letGo(now, f, e.ID)
		if f.counted() {
			c.rec.rejected(f, e.At, refusalOf(e))
		}
		c.tell(f, e)
	}
	c.leaves(f, on)
	c.discharge(f)
	c.inFlight--
	if f.counted() {
		c.open--
		c.stopWhenDecided()
	}
	s := c.sources[f.req.Class]
	switch {
	case s.waits && e.At > now:
		f.live = false
		c.loop.At(e.At, timerDone, int64(e.ID))
	case failed || s.goesOn:
		c.release(now, e.ID, failed)
	default:
		s.inFlight--
		c.vacate(f, e.ID)
	}
}

// release frees a request's slot and lets its client go on.
func (c *cluster) release(now clock.Time, id int32, failed bool) {
	f := &c.flights[id]
	c.drop(id)
	if s := c.sources[f.req.Class]; failed || s.goesOn {
		c.settle(now, s, f, failed)
	} else {
		s.inFlight--
	}
}
