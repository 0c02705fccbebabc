package sim

import (
	"context"
	"sync/atomic"
	"testing"

	"slosim/engine"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// storm is one replica, 240 users at about 90 % of what it can serve, who give an
// answer up after ten seconds, and two minutes of others that double the load.
func storm(t testing.TB, retry workloads.Retry) Experiment {
	e := referenceDay(t, 1, 50*clock.Minute)
	e.Warmup = 5 * clock.Minute
	e.Pools[0].Thermal.Enabled = false
	e.Pools[0].Engine.MaxSeqs = 32
	users := &e.Traffic[0]
	users.Output = workloads.Dist{Kind: "exponential", Mean: 64, Max: 4095}
	users.Client = workloads.Client{Users: 240, Think: workloads.Dist{Kind: "exponential", Mean: 31}, Timeout: 10 * clock.Second, Retry: retry}
	others := *users
	others.Name, others.Stream, others.Client = "others", "others", workloads.Client{Timeout: 10 * clock.Second}
	others.Rate = workloads.Rate{Mean: 0.001, Shape: "constant", Burstiness: 1, Bursts: []workloads.Burst{{At: 10 * clock.Minute, Length: 2 * clock.Minute, Factor: 8000}}}
	e.Traffic = append(e.Traffic, others)
	e.SLOs = []slo.Objective{{Name: "answered", Class: "chat", Metric: slo.Availability, Target: .99, Window: 30 * clock.Day}}
	return e
}

// unanswered is the mean share of attempts without an answer in the windows of
// [from, to), and all outcomes of the users.
func unanswered(t testing.TB, e Experiment, from, to clock.Duration) (bad float64, o Outcomes) {
	t.Helper()
	e.Replications = 1
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Series.Classes[0]
	n := 0
	for i, at := range r.Series.T {
		if at >= clock.Time(from) && at < clock.Time(to) {
			bad += s.Bad[i]
			n++
		}
	}
	return bad / float64(n), r.Phases[0].Classes[0].Outcomes
}

// With retries at once, two minutes of overload do not clear by themselves: those
// who gave up come back as fast as they leave, and what is computed for them is
// lost. Without retries, or with exponential back-off, all is well half an hour
// later. (The users are a closed loop: in an open loop back-off only puts the same
// attempts off.)
func TestRetriesKeepAnOverloadAlive(t *testing.T) {
	const minute = clock.Minute
	for _, c := range []struct {
		name   string
		retry  workloads.Retry
		clears bool
	}{
		{"no retries", workloads.Retry{}, true},
		{"retries at once", workloads.Retry{Times: 100, Factor: 1}, false},
		{"back-off", workloads.Retry{Times: 100, Backoff: 2 * clock.Second, Factor: 2, Limit: minute, Jitter: 1}, true},
	} {
		e := storm(t, c.retry)
		before, _ := unanswered(t, e, 0, 10*minute)
		after, o := unanswered(t, e, 40*minute, 50*minute)
		if before > 0.001 || (after < 0.001) != c.clears || o.TimedOut == 0 || (o.Retries > 0) != (c.retry.Times > 0) {
			t.Errorf("%s: %.4f unanswered before, %.4f half an hour later; %+v", c.name, before, after, o)
		}
	}
}

// Whoever gives up, at whatever point: every attempt has one outcome, and what it
// held comes back on every replica, on both sides of a hand-over too.
func TestGivingUpLeavesNothingBehind(t *testing.T) {
	for name, split := range map[string]bool{"one pool": false, "prefill and decode": true} {
		for _, timeout := range []clock.Duration{30 * clock.Millisecond, 400 * clock.Millisecond, 900 * clock.Millisecond, 3 * clock.Second} {
			e := referenceDay(t, 1, 10*clock.Minute)
			if split {
				e = disaggregated(t, 1, 1, 10*clock.Minute)
			}
			e.Network = 5 * clock.Millisecond
			e.Traffic[0].Rate.Mean = 6
			e.Traffic[0].Client = workloads.Client{
				Timeout: timeout, Patience: workloads.Dist{Kind: "exponential", Mean: 1},
				Retry: workloads.Retry{Times: 2, Backoff: clock.Second, Factor: 2, Jitter: .5},
			}
			p, err := newPlan(e)
			if err != nil {
				t.Fatal(err)
			}
			var sides []engine.Replica
			make := p.replica
			p.replica = func(f *fleet, i int, seed uint64, g engine.Gaps) engine.Replica {
				r := make(f, i, seed, g)
				sides = append(sides, r)
				return r
			}
			c, err := newCluster(p, 1, new(atomic.Int64))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.run(context.Background()); err != nil {
				t.Fatal(err)
			}
			end := c.loop.Now()
			live := 0
			for i := range c.flights {
				if f := &c.flights[i]; f.live || f.dead {
					live++
				}
			}
			held := int32(0)
			for _, r := range sides {
				l := r.Load(end)
				held += l.Running + l.Waiting
				if l.Running+l.Waiting == 0 && (l.Blocks != 0 || l.Tokens != 0) {
					t.Errorf("%s, %v: an empty replica holds %+v", name, timeout, l)
				}
			}
			if int(held) > live {
				t.Errorf("%s, %v: %d requests on the replicas, %d of clients", name, timeout, held, live)
			}
			o := c.reduce().phases[0][0][0]
			if sum := o.outcomes.OK + o.outcomes.TimedOut + o.outcomes.Rejected + o.outcomes.Late + o.outcomes.Young; sum != o.n || o.outcomes.TimedOut == 0 {
				t.Errorf("%s, %v: %d attempts, %+v", name, timeout, o.n, o.outcomes)
			}
		}
	}
}
