package sim

import (
	"context"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// drawTrouble makes a small cluster in which everything happens at once: faults
// every few seconds, wear, rollouts, autoscaling, gates, limits, overflow, rules,
// clients who give up and come back, with and without a prefill pool.
func drawTrouble(t *rapid.T, base Experiment) Experiment {
	e := base
	e.Seed = rapid.Uint64().Draw(t, "seed")
	seconds := func(least, most int, name string) clock.Duration {
		return clock.Duration(rapid.IntRange(least*1000, most*1000).Draw(t, name)) * clock.Millisecond
	}
	yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
	pool := e.Pools[0]
	pool.Replicas = rapid.IntRange(1, 4).Draw(t, "replicas")
	pool.Zones = rapid.IntRange(1, 2).Draw(t, "zones")
	pool.Router = rapid.SampledFrom(Routers).Draw(t, "router")
	pool.Stale = 200 * clock.Millisecond
	pool.Engine.MaxSeqs = int32(rapid.IntRange(2, 24).Draw(t, "seqs"))
	pool.Engine.PrefixCache = yes("cache")
	pool.Thermal.Enabled = yes("thermal")
	if yes("worn") {
		pool.Wear = Wear{MTBF: seconds(2, 20, "mtbf"), MTTR: seconds(1, 5, "mttr"), Together: rapid.IntRange(0, 2).Draw(t, "together")}
	}
	if yes("scaled") {
		pool.Autoscale = &Autoscale{
			Metric: rapid.SampledFrom([]string{"concurrency", "queue", "kv", "ttft", "rate"}).Draw(t, "metric"), Target: rapid.SampledFrom([]float64{.2, 2, 8}).Draw(t, "target"),
			Min: 1, Max: pool.Replicas + 2, Interval: clock.Second, Down: 2 * clock.Second, StartUp: seconds(0, 4, "start-up"),
			Warm: rapid.IntRange(0, 1).Draw(t, "warm"), WarmUp: clock.Second,
		}
	}
	if yes("gated") {
		pool.Gate = Gate{InFlight: rapid.IntRange(0, 30).Draw(t, "inside"), Queue: rapid.IntRange(0, 40).Draw(t, "queue"), Timeout: seconds(0, 4, "wait"), Order: rapid.SampledFrom([]string{"fcfs", "priority", "fair"}).Draw(t, "order")}
	}
	e.Pools = []Pool{pool}
	if split := yes("split"); split {
		p := pool
		p.Name, p.Role, p.Link = "p", "prefill", Link{BytesPerS: 1e9}
		d := p
		d.Name, d.Role = "d", "decode"
		d.Link = Link{BytesPerS: 1e9, Latency: seconds(0, 1, "hop"), Overlap: yes("overlap"), MinTokens: int32(rapid.IntRange(0, 1000).Draw(t, "short"))}
		e.Pools = []Pool{d, p}
	}
	if yes("spare") {
		s := pool
		s.Name, s.Standby, s.Autoscale = "spare", true, nil
		e.Pools = append(e.Pools, s)
		e.Pools[0].OverflowTo, e.Pools[0].OverflowAt = "spare", rapid.Float64Range(1, 20).Draw(t, "overflow")
	}
	for at := seconds(0, 5, "fault"); at < e.Duration; at += seconds(1, 8, "next") {
		p := e.Pools[rapid.IntRange(0, len(e.Pools)-1).Draw(t, "whose")]
		f := Fault{Pool: p.Name, At: at, For: seconds(0, 6, "for"), Replicas: rapid.IntRange(1, p.Replicas).Draw(t, "hit")}
		if rapid.IntRange(0, 3).Draw(t, "slow") == 0 {
			f.Slow = 2
		} else {
			f.Cut = yes("cut")
			if yes("zone") {
				f.Replicas, f.Zone = 0, 1
			}
		}
		e.Faults = append(e.Faults, f)
	}
	for range rapid.IntRange(0, 2).Draw(t, "rollouts") {
		p := e.Pools[rapid.IntRange(0, len(e.Pools)-1).Draw(t, "upgraded")]
		e.Rollouts = append(e.Rollouts, Rollout{Pool: p.Name, At: seconds(0, 20, "rollout"), Batch: rapid.IntRange(1, 2).Draw(t, "batch"), Drain: seconds(0, 6, "drain"), Down: seconds(0, 5, "down")})
	}
	e.Network = seconds(0, 1, "network")
	class := e.Traffic[0]
	class.Rate.Mean = rapid.Float64Range(1, 30).Draw(t, "rate")
	class.Prompt, class.Output = workloads.Dist{Kind: "exponential", Mean: 800, Max: 8000}, workloads.Dist{Kind: "exponential", Mean: 40, Max: 400}
	if yes("impatient") {
		class.Client.Timeout = seconds(1, 8, "timeout")
		class.Client.Patience = workloads.Dist{Kind: "exponential", Mean: 2}
	}
	if yes("stubborn") {
		class.Client.Retry = workloads.Retry{Times: rapid.IntRange(1, 3).Draw(t, "times"), Backoff: seconds(0, 2, "backoff"), Factor: 2, Jitter: .5}
	}
	if yes("capped") {
		class.Client.MaxInFlight = rapid.IntRange(1, 40).Draw(t, "cap")
	}
	other := class
	other.Name, other.Stream, other.Priority = "other", "other", -1
	if yes("talk") {
		other.Client.MaxInFlight = 0
		other.Session = workloads.Session{Turns: fixed(3), Think: workloads.Dist{Kind: "exponential", Mean: 1}}
		other.Rate.Mean /= 3
	}
	e.Traffic = []workloads.Class{class, other}
	if yes("limited") {
		e.Limits = []Limit{{Requests: 10, Burst: 2}, {Tokens: 8000, InFlight: 20, MaxPrompt: 4000, Weight: 2}}
	}
	e.SLOs = []slo.Objective{{Name: "s", Class: "chat", Metric: slo.TTFT, Threshold: clock.Second, Target: .9, Window: clock.Day}}
	if yes("ruled") {
		e.Rules = []Rule{
			{Name: "shed", Signal: "misses", SLO: "s", Above: .3, Below: .2, Window: clock.Minute, Action: "shed", Class: []string{"other"}},
			{Name: "cap", Signal: "queue", Pool: e.Pools[0].Name, Above: 3, Below: 1, Action: "cap", Class: []string{"chat"}, Cap: 5},
		}
		if last := e.Pools[len(e.Pools)-1]; last.Role == "" {
			e.Rules = append(e.Rules, Rule{Name: "route", Signal: "kv", Pool: e.Pools[0].Name, Above: .01, Action: "route", Class: []string{"chat"}, To: last.Name, Over: 500})
		}
	}
	return e
}

// TestNoRequestIsLostOrCountedTwice: whatever breaks whenever, every attempt has one
// outcome, every book agrees with the requests that are under way, and what has left
// a replica holds nothing there.
func TestNoRequestIsLostOrCountedTwice(t *testing.T) {
	base := referenceDay(t, 1, 30*clock.Second)
	rapid.Check(t, func(t *rapid.T) {
		e := drawTrouble(t, base)
		p, err := newPlan(e)
		if err != nil {
			t.Fatal(err)
		}
		c, err := newCluster(p, e.Seed, new(atomic.Int64))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		c.audit(t)
		r := c.reduce()
		for class := range e.Traffic {
			v := r.phases[0][class][0]
			o := v.outcomes
			if sum := o.OK + o.Rejected + o.TimedOut + o.Failed + o.Late + o.Young; sum != v.n {
				t.Errorf("class %d: %d attempts, %+v", class, v.n, o)
			}
			sum := int64(0)
			for _, n := range o.Refused {
				sum += n
			}
			if sum != o.Rejected {
				t.Errorf("%d rejected, by reason %v", o.Rejected, o.Refused)
			}
		}
	})
}

// audit compares every book of a cluster with the requests that are under way.
func (c *cluster) audit(t interface{ Errorf(string, ...any) }) {
	now := c.loop.Now()
	on := make([]int32, len(c.replicas))     // requests on the books of each replica
	living := make([]int32, len(c.replicas)) // of these: with a client
	keeps := make([]int32, len(c.replicas))  // prompts that it keeps for a decode replica
	waiting := make([]int, len(c.pools))     // at each gate
	admitted := make([]int, len(c.limits))   // of each class
	waits := make([]bool, len(c.flights))    // of the flight slots: free
	alive, unfinished := int64(0), int64(0)  // clients who wait; counted ones of them
	for id := c.free; id >= 0; id = c.flights[id].handle {
		if waits[id] || c.flights[id].live || c.flights[id].dead {
			t.Errorf("slot %d is free twice, or in use", id)
			return
		}
		waits[id] = true
	}
	for id := range c.flights {
		f := &c.flights[id]
		if !f.live {
			continue
		}
		if !f.dead {
			alive++
			if f.counted() {
				unfinished++
			}
		}
		if f.admitted {
			admitted[f.req.Class]++
		}
		if f.gate > 0 {
			waiting[f.gate-1]++
		}
		h := c.half(f, int32(id))
		if f.replica >= 0 && (h == nil || h.stage != hopping) {
			on[f.replica]++
			if !f.dead {
				living[f.replica]++
			}
		}
		if h != nil && h.stage != atPrefill && !h.moved {
			keeps[h.replica]++
		}
	}
	if alive != c.inFlight || unfinished != c.open {
		t.Errorf("%d clients wait, %d in flight; %d of them counted, %d open", alive, c.inFlight, unfinished, c.open)
	}
	for k := range c.limits {
		if admitted[k] != c.limits[k].inFlight {
			t.Errorf("class %d: %d admitted, its limit counts %d", k, admitted[k], c.limits[k].inFlight)
		}
	}
	for k := range c.pools {
		f := &c.pools[k]
		inside := 0
		for i := range f.views {
			g := f.first + int32(i)
			v := &f.views[i]
			inside += int(v.Outstanding)
			l := c.replicas[g].Load(now)
			if v.Outstanding != on[g] || f.handing[i] != keeps[g] {
				t.Errorf("%s %d: %d on its books, %d requests; it keeps %d, and %d", f.spec.Name, i, v.Outstanding, on[g], f.handing[i], keeps[g])
			}
			if on[g]+keeps[g] == 0 && (l.Running+l.Waiting != 0 || l.Blocks != 0 || l.Tokens != 0 || v.Tokens != 0 || v.Backlog != 0) {
				t.Errorf("%s %d: empty, but holds %+v, %+v", f.spec.Name, i, l, *v)
			}
			if l.Running+l.Waiting > on[g]+keeps[g] {
				t.Errorf("%s %d: %d requests on its books, its engine has %+v", f.spec.Name, i, on[g], l)
			}
			if v.Up != (f.stage[i] == serving) || f.stage[i] == broken && living[g] > 0 || f.stage[i] == off && on[g]+keeps[g] > 0 {
				t.Errorf("%s %d: stage %d, up %v, %d requests", f.spec.Name, i, f.stage[i], v.Up, on[g])
			}
		}
		if inside != f.gate.inside || waiting[k] != f.gate.waiting || f.gate.waiting > 0 && !f.gate.full(f) {
			t.Errorf("gate of %s: %d inside, counts %d; %d wait, counts %d", f.spec.Name, inside, f.gate.inside, waiting[k], f.gate.waiting)
		}
	}
}
