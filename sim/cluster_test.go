package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"slosim/engine"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// stations is a queueing experiment over c single servers behind a router.
func stations(t *testing.T, customers float64, c int, load float64, router string) *rep {
	t.Helper()
	e := queueing(customers, load*float64(c), fixed(1), exponential())
	e.Pools[0].Replicas, e.Pools[0].Router = c, router
	_, r := simulate(t, e, linear{1}, func() engine.Replica { return newStation(1) })
	return r
}

// Random routing thins a Poisson stream: each of c replicas is an M/M/1 of its own.
func TestRandomRoutingThinsTheStream(t *testing.T) {
	t.Parallel()
	v := stations(t, 2_000_000, 8, 0.8, "random").phases[0][0][0]
	within(t, "mean sojourn", ms*v.e2e.mean, 5, 0.03)
	within(t, "P99 sojourn", ms*v.e2e.p99, 23.026, 0.03)
}

// With many servers the mean sojourn is that of the mean-field fixed point: of two
// choices Σ λ^(2^k − 2) (Mitzenmacher 2001), of the shortest queue just the service.
func TestRoutersReachTheirMeanField(t *testing.T) {
	const servers, load = 100, 0.9
	want := 0.0
	for k := 1.0; k < 12; k++ {
		want += math.Pow(load, math.Exp2(k)-2)
	}
	t.Run("power of two", func(t *testing.T) {
		t.Parallel()
		within(t, "mean sojourn", ms*stations(t, 1_500_000, servers, load, "power-of-two").phases[0][0][0].e2e.mean, want, 0.03)
	})
	t.Run("shortest queue", func(t *testing.T) {
		t.Parallel()
		within(t, "mean sojourn", ms*stations(t, 1_000_000, servers, 0.7, "least-outstanding").phases[0][0][0].e2e.mean, 1, 0.03)
	})
}

// crowd is a class with even arrivals whose requests take ten seconds each, on
// replicas with room for all of them: so many are in flight as ten times the rate.
func crowd(t *testing.T, perSecond float64, span clock.Duration) Experiment {
	e := referenceDay(t, 1, span)
	e.Pools[0].Thermal.Enabled = false
	e.Traffic[0].Rate.Mean, e.Traffic[0].Rate.Burstiness = perSecond, 1000
	e.Traffic[0].Prompt, e.Traffic[0].Output = fixed(1), fixed(1)
	return e
}

// sleeper is a replica on which each request takes ten seconds.
type sleeper struct{ station }

func newSleeper() *sleeper { return &sleeper{*newStation(10_000)} }

func (s *sleeper) Submit(now clock.Time, r *workloads.Request) int32 {
	r.Output = 2_000_000_000
	for k := range s.free { // a server each
		if s.free[k] <= now {
			end := now.Add(10 * clock.Second)
			s.free[k] = end
			s.pending = append(s.pending, engine.Event{Kind: engine.Finished, ID: r.ID, At: end, Ready: now, Started: now, Prefilled: end})
			return 0
		}
	}
	panic("no room")
}

func (s *sleeper) Cancel(_ clock.Time, _, id int32) (int32, bool) {
	for k, e := range s.pending {
		if e.ID == id {
			s.pending = append(s.pending[:k], s.pending[k+1:]...)
			return 0, true
		}
	}
	return 0, false
}

// play runs an experiment with replicas of the test's own making.
func play(t testing.TB, e Experiment, make func() engine.Replica) (*cluster, *rep) {
	t.Helper()
	p, err := newPlan(e)
	if err != nil {
		t.Fatal(err)
	}
	if make != nil {
		p.replica = func(*fleet, int, uint64, engine.Gaps) engine.Replica { return make() }
	}
	c, err := newCluster(p, e.Seed, new(atomic.Int64))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c, c.reduce()
}

// A cold start under a burst, computed by hand: 10 requests are in flight, from
// 301 s on 57. The look at 315 s wants ⌈57 ÷ 12⌉ = 5 replicas; they serve 103 s later,
// at 418 s. The burst ends at 901 s; the last look that wants five is at 900 s, and
// counts for 300 s: the look at 1215 s gives four back, which drain for at most 10 s.
func TestAutoscalerStepResponse(t *testing.T) {
	e := crowd(t, 1, 30*clock.Minute)
	e.Traffic[0].Rate.Bursts = []workloads.Burst{{At: 301 * clock.Second, Length: 600 * clock.Second, Factor: 5.7}}
	e.Pools[0].Autoscale = &Autoscale{Metric: "concurrency", Target: 12, Min: 1, Max: 8, Interval: 15 * clock.Second, Down: 5 * clock.Minute, StartUp: 103 * clock.Second}
	for _, c := range []struct {
		name      string
		warm      int
		serve     clock.Duration // when the first of the new ones do
		extraPaid float64        // replica seconds
	}{{"cold", 0, 418 * clock.Second, 0}, {"two warm", 2, 325 * clock.Second, 2 * 1800}} {
		e.Pools[0].Autoscale.Warm, e.Pools[0].Autoscale.WarmUp = c.warm, 10*clock.Second
		cl, r := play(t, e, func() engine.Replica { return newSleeper() })
		var log []string
		for _, a := range cl.actions {
			log = append(log, fmt.Sprintf("%.0f %s", a.At.Seconds(), a.Text))
		}
		if got, want := strings.Replace(strings.Join(log, "; "), " 425", " 418", 1), "315 pool main: 4 more, 1 serve; 418 pool main: 5 serve; 1215 pool main: 4 fewer, 1 serve"; got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
		first, width := -1.0, cl.plan.width.Seconds()
		for i, w := range r.pools[0].windows {
			if first < 0 && float64(w.ups) > float64(w.looks)*1.01 {
				first = float64(i) * width
			}
		}
		if s := c.serve.Seconds(); first > s || first+width < s {
			t.Errorf("%s: more than one replica serves from the window at %.0f s on, want %.0f s", c.name, first, s)
		}
		paid, want := r.pools[0].paid.Seconds(), 1800+4*(1215-315)+c.extraPaid
		if paid < want || paid > want+4*10 {
			t.Errorf("%s: %.0f replica seconds are paid for, want %.0f and up to 40 of draining", c.name, paid, want)
		}
	}
}

// The other metrics ask for what they say.
func TestAutoscalersFollowTheirMetric(t *testing.T) {
	day := func(metric string, target float64, schedule ...ScheduledSize) (serving []float64, width float64) {
		e := crowd(t, 4, 40*clock.Minute)
		e.Traffic[0].Rate.Bursts = []workloads.Burst{{At: 15 * clock.Minute, Length: 15 * clock.Minute, Factor: 2.9}}
		e.Pools[0].Replicas = 2
		e.Pools[0].Autoscale = &Autoscale{Metric: metric, Target: target, Min: 1, Max: 9, Interval: 15 * clock.Second, Down: clock.Minute, StartUp: 2 * clock.Minute, Lead: 2 * clock.Minute, Schedule: schedule}
		c, r := play(t, e, func() engine.Replica { return newSleeper() })
		for _, w := range r.pools[0].windows {
			serving = append(serving, float64(w.ups)/float64(w.looks))
		}
		return serving, c.plan.width.Seconds()
	}
	check := func(name string, serving []float64, width float64, minute, want float64) {
		if got := serving[int(minute*60/width)]; got != want {
			t.Errorf("%s: %.2f serve in minute %.0f, want %.0f", name, got, minute, want)
		}
	}
	// 11.6/s ÷ 2/s per replica = 6, and they are there when the burst begins
	s, w := day("rate", 2)
	check("rate", s, w, 10, 2)
	check("rate", s, w, 16, 6)
	// 40 in flight ÷ 20 = 2; 116 ÷ 20 = 6 two minutes and a look after
	s, w = day("concurrency", 20)
	check("concurrency", s, w, 16, 2)
	check("concurrency", s, w, 19, 6)
	s, w = day("schedule", 0, ScheduledSize{At: 0, Replicas: 2}, ScheduledSize{At: 5 * clock.Minute, Replicas: 4})
	check("schedule", s, w, 3, 2)
	check("schedule", s, w, 9, 4)
}

// Availability is MTBF ÷ (MTBF + MTTR), MTBF being the time up between faults, and
// what is down is paid for.
func TestAvailabilityFollowsFromWear(t *testing.T) {
	e := crowd(t, 0.01, 5*clock.Hour)
	e.Pools[0].Replicas = 200
	for _, together := range []int{1, 4} { // alone, and by nodes of four
		e.Pools[0].Wear = Wear{MTBF: 300 * clock.Second, MTTR: 100 * clock.Second, Together: together}
		_, r := play(t, e, func() engine.Replica { return newStation(1) })
		p := &r.pools[0]
		within(t, "availability", float64(p.total.ups)/float64(p.total.looks)/200, 0.75, 0.02)
		within(t, "paid", p.paid.Seconds(), 200*5*3600, 1e-9)
	}
}

// A token bucket is exact: at any time it has let through what it held at first and
// what has flowed in since, and not one more, however long it runs.
func TestTokenBucketIsExact(t *testing.T) {
	b := newBucket(7, 3)
	passed := 0
	for at := clock.Time(0); at <= clock.Time(clock.Day); at = at.Add(13 * clock.Millisecond) {
		for b.take(at, 1) {
			passed++
		}
		if want := int(21 + 7*at.Seconds() + 1e-6); passed != want {
			t.Fatalf("%d passed by %.3f s, want %d", passed, at.Seconds(), want)
		}
	}
	big := newBucket(100, 1) // a request larger than the bucket passes when it is full, and leaves a debt
	if !big.take(0, 250) || big.take(clock.Time(2499*clock.Millisecond), 100) || !big.take(clock.Time(2500*clock.Millisecond), 100) {
		t.Error("a request of 250 tokens at 100/s costs 2.5 s until the bucket is full again")
	}
}

// Two tenants who both want more than there is get the gate in proportion to their
// weights, in tokens, whatever the length of their requests.
func TestFairShareFollowsTheWeights(t *testing.T) {
	e := crowd(t, 300, 20*clock.Minute)
	a := &e.Traffic[0]
	a.Rate.Burstiness = 1
	a.Prompt, a.Output = workloads.Dist{Kind: "exponential", Mean: 1000}, fixed(1)
	b := *a
	b.Name, b.Stream, b.Prompt = "b", "b", workloads.Dist{Kind: "exponential", Mean: 100}
	b.Rate.Mean = 3000
	e.Traffic = append(e.Traffic, b)
	e.Limits = []Limit{{Weight: 1}, {Weight: 3}}
	e.Pools[0].Gate = Gate{InFlight: 1, Queue: 20_000, Order: "fair", Timeout: 10 * clock.Second}
	c, r := play(t, e, func() engine.Replica { return &perToken1{station: *newStation(1)} })
	tokens := func(k int) float64 {
		v := r.phases[0][k][0]
		return float64(v.outcomes.OK) * e.Traffic[k].Prompt.Mean
	}
	if c.sent == 0 || tokens(0) == 0 {
		t.Fatal("nothing was served")
	}
	within(t, "tokens of weight 3 over weight 1", tokens(1)/tokens(0), 3, 0.01)
}

// perToken1 is a server that takes ten microseconds per prompt token.
type perToken1 struct{ station }

func (s *perToken1) Submit(now clock.Time, r *workloads.Request) int32 {
	r.Output = r.Prompt * 10_000
	return s.station.Submit(now, r)
}

// Every reason of a rejection is counted under its name, and they add up.
func TestRejectionsHaveTheirReason(t *testing.T) {
	for want, set := range map[Refusal]func(e *Experiment){
		RefusedRate:     func(e *Experiment) { e.Limits = []Limit{{Requests: 1}} },
		RefusedTokens:   func(e *Experiment) { e.Limits = []Limit{{Tokens: 2}} },
		RefusedInFlight: func(e *Experiment) { e.Limits = []Limit{{InFlight: 5}} },
		RefusedLength: func(e *Experiment) {
			e.Limits, e.Traffic[0].Prompt = []Limit{{MaxPrompt: 5}}, workloads.Dist{Kind: "uniform", Min: 1, Max: 10}
		},
		RefusedQueue: func(e *Experiment) { e.Pools[0].Gate = Gate{InFlight: 10, Queue: 3} },
		RefusedWait:  func(e *Experiment) { e.Pools[0].Gate = Gate{InFlight: 10, Queue: 1000, Timeout: clock.Second} },
		RefusedDown: func(e *Experiment) {
			e.Faults = []Fault{{Pool: "main", At: clock.Minute, For: clock.Minute, Replicas: 1}}
		},
		RefusedShed: func(e *Experiment) {
			e.SLOs = []slo.Objective{{Name: "s", Class: "chat", Metric: slo.E2E, Threshold: clock.Second, Target: .9, Window: clock.Day}}
			e.Rules = []Rule{{Name: "r", Signal: "misses", SLO: "s", Above: .5, Below: .1, Window: clock.Minute, Action: "shed", Class: []string{"chat"}}}
		},
	} {
		e := crowd(t, 5, 10*clock.Minute)
		set(&e)
		_, r := play(t, e, func() engine.Replica { return newSleeper() })
		o := r.phases[0][0][0].outcomes
		sum := int64(0)
		for _, n := range o.Refused {
			sum += n
		}
		if o.Refused[want] == 0 || o.Refused[want] != o.Rejected || sum != o.Rejected {
			t.Errorf("%s: %+v", RefusalNames[want], o)
		}
	}
}

// A slow replica slows its steps by the factor, and a rule has hysteresis: it ends
// below Below, not below Above.
func TestSlowReplicasTakeTheirFactor(t *testing.T) {
	e := referenceDay(t, 1, 30*clock.Minute)
	e.Traffic[0].Rate.Mean, e.Traffic[0].Rate.Burstiness = 0.01, 1000
	e.Traffic[0].Prompt, e.Traffic[0].Output = fixed(20_000), fixed(1)
	e.Pools[0].Thermal.Enabled = false
	_, fast := play(t, e, nil)
	e.Faults = []Fault{{Pool: "main", Replicas: 1, Slow: 2}}
	_, slow := play(t, e, nil)
	steps := func(r *rep) float64 { return r.phases[0][0][0].stage[stagePrefill] }
	within(t, "prefill", steps(slow), 2*steps(fast), 1e-6)
}

// answers counts the answered requests of each pool.
func answers(r *rep) (out []int64) {
	for _, p := range r.pools {
		n := int64(0)
		for _, u := range p.use {
			n += u.requests
		}
		out = append(out, n)
	}
	return out
}

// Prompts go to the pool of their range; what finds a pool full, or down, overflows
// along the chain; a rule sends what it says elsewhere.
func TestRequestsFindTheirPool(t *testing.T) {
	e := crowd(t, 5, 10*clock.Minute)
	e.Traffic[0].Prompt = workloads.Dist{Kind: "uniform", Min: 1, Max: 1000}
	main := e.Pools[0]
	long, spare := main, main
	main.MaxPrompt, long.Name, long.MinPrompt, spare.Name, spare.Standby = 500, "long", 500, "spare", true
	e.Pools = []Pool{main, long, spare}
	run := func(change func(e *Experiment)) []int64 {
		x := e
		x.Pools = append([]Pool{}, e.Pools...)
		change(&x)
		_, r := play(t, x, func() engine.Replica { return newSleeper() })
		return answers(r)
	}
	n := run(func(*Experiment) {})
	if d := float64(n[0]) / float64(n[0]+n[1]); math.Abs(d-0.5) > 0.04 || n[2] != 0 {
		t.Errorf("ranges: %v", n)
	}
	n = run(func(x *Experiment) { x.Pools[1].OverflowTo, x.Pools[1].OverflowAt = "spare", 10 })
	if got := float64(n[1]) / 600; math.Abs(got-1) > 0.1 || n[2] == 0 { // ten in flight for ten seconds each
		t.Errorf("overflow: %v, %.2f/s in the long pool, want 1/s", n, got)
	}
	n = run(func(x *Experiment) {
		x.Pools[1].OverflowTo, x.Pools[1].OverflowAt = "spare", 1000
		x.Faults = []Fault{{Pool: "long", Replicas: 1}}
	})
	if n[1] != 0 || n[2] == 0 {
		t.Errorf("overflow of a pool that is down: %v", n)
	}
	n = run(func(x *Experiment) {
		x.SLOs = []slo.Objective{{Name: "s", Class: "chat", Metric: slo.E2E, Threshold: clock.Second, Target: .9, Window: clock.Day}}
		x.Rules = []Rule{{Name: "r", Signal: "misses", SLO: "s", Above: .5, Below: .1, Window: clock.Minute, Action: "route", Class: []string{"chat"}, To: "spare", Over: 900}}
	})
	if d := float64(n[2]) / float64(n[0]+n[1]+n[2]); math.Abs(d-0.1) > 0.02 {
		t.Errorf("route of prompts over 900: %v", n)
	}
}

// Two rollouts of one pool at the same time are one after the other: every replica is
// restarted twice, never more than a batch at once.
func TestRolloutsOfAPoolFollowEachOther(t *testing.T) {
	e := crowd(t, 5, 10*clock.Minute)
	e.Pools[0].Replicas = 4
	x := Rollout{Pool: "main", At: clock.Minute, Batch: 1, Drain: clock.Second, Down: 20 * clock.Second}
	e.Rollouts = []Rollout{x, x}
	c, r := play(t, e, func() engine.Replica { return newSleeper() })
	var got []string
	for _, a := range r.actions {
		if strings.Contains(a.Text, "rollout") {
			got = append(got, a.Text)
		}
	}
	want := []string{"pool main: rollout begins, 1 at a time", "pool main: rollout ends", "pool main: rollout begins, 1 at a time", "pool main: rollout ends"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for i, n := range c.pools[0].built {
		if n < 2 {
			t.Errorf("replica %d was built anew %d times", i+1, n)
		}
	}
}
