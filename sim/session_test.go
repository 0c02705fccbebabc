package sim

import (
	"context"
	"math"
	"testing"

	"slosim/sim/clock"
	"slosim/workloads"
)

// chatting is a replica under conversations of five turns with half a minute of
// thought between them.
func chatting(t testing.TB, replicas int, span clock.Duration) Experiment {
	e := referenceDay(t, replicas, span)
	e.Warmup = 20 * clock.Minute
	e.Pools[0].Thermal.Enabled = false
	e.Pools[0].Engine.PrefixCache = true
	c := &e.Traffic[0]
	c.Rate.Mean = 5 * float64(replicas)
	c.Prompt = workloads.Dist{Kind: "lognormal", Mean: 400, P99: 2000}
	c.Output = workloads.Dist{Kind: "exponential", Mean: 200, Max: 2000}
	c.System = workloads.System{Tokens: 800, Variants: 3}
	c.Session = workloads.Session{Turns: workloads.Dist{Kind: "uniform", Min: 1, Max: 9}, Think: workloads.Dist{Kind: "exponential", Mean: 30}}
	return e
}

// Turns keep the rate of requests; their prompts are what was said before and
// something new, which is all that a cache does not find.
func TestSessionsGrowTheirContext(t *testing.T) {
	e := chatting(t, 1, 90*clock.Minute)
	e.Replications = 4
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := r.Phases[0].Classes[0]
	if rate := float64(c.N) / 4 / e.Duration.Seconds(); math.Abs(rate/5-1) > 0.03 {
		t.Errorf("%.3f requests/s, the experiment says 5", rate)
	}
	// Request-weighted: a session of k turns has turns 0 … k−1, turn j has seen j
	// prompts and j outputs. E[j] = E[K(K − 1)]/2/E[K], K uniform on the rounded 1 … 9.
	turns, err := e.Traffic[0].Session.Turns.Compile()
	if err != nil {
		t.Fatal(err)
	}
	pairs := turns.Mean(func(k float64) float64 { return k * (k - 1) / 2 }) / turns.MeanTurns()
	fresh, answer := c.Prompt.Mean.V, c.Output.Mean.V
	prompts, err := e.Traffic[0].Prompt.Compile()
	if err != nil {
		t.Fatal(err)
	}
	one := prompts.Mean(func(x float64) float64 { return x })
	want := 800 + one + pairs*(one+answer)
	if math.Abs(fresh/want-1) > 0.03 {
		t.Errorf("prompts of %.0f tokens on average, want %.0f", fresh, want)
	}
	// On one replica with room for all nothing is lost: all but the new tokens are
	// found, less what is not a full block, and less the last token of each answer,
	// whose KV nobody has computed.
	miss := (1 - r.Pools[0].PrefixHit.V) * fresh
	if miss < one || miss > one+16+3*800/pairs {
		t.Errorf("%.0f tokens of each prompt computed, %.0f are new", miss, one)
	}
}

// A context that grows too long begins anew.
func TestSessionsForgetAtTheirLimit(t *testing.T) {
	e := chatting(t, 1, 30*clock.Minute)
	e.Replications = 1
	e.Traffic[0].Session.Turns = workloads.Dist{Kind: "fixed", Mean: 40}
	e.Traffic[0].Session.Think = workloads.Dist{}
	e.Traffic[0].Session.MaxContext = 4000
	e.Traffic[0].Prompt.Max = 1500
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if most := r.Phases[0].Classes[0].Prompt.Max; most > 4000 || most < 3500 {
		t.Errorf("longest prompt %.0f, the limit is 4000", most)
	}
}

// However long sessions last, a class is in full swing from the start: those that
// began before it go on.
func TestLongSessionsAreThereFromTheStart(t *testing.T) {
	e := chatting(t, 2, 20*clock.Minute)
	e.Warmup, e.Replications = 10*clock.Minute, 2
	c := &e.Traffic[0]
	c.Rate.Mean = 4
	c.Prompt = workloads.Dist{Kind: "fixed", Mean: 20}
	c.Output = workloads.Dist{Kind: "fixed", Mean: 20}
	c.Session = workloads.Session{Turns: workloads.Dist{Kind: "fixed", Mean: 200}, Think: workloads.Dist{Kind: "exponential", Mean: 60}}
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if rate := float64(r.Phases[0].Classes[0].N) / 2 / e.Duration.Seconds(); math.Abs(rate/4-1) > 0.06 {
		t.Errorf("%.3f requests/s, the experiment says 4", rate)
	}
	// In the middle of their lives sessions have said half of what they will say.
	if mean := r.Phases[0].Classes[0].Prompt.Mean.V; math.Abs(mean/(800+20+99.5*40)-1) > 0.1 {
		t.Errorf("prompts of %.0f tokens on average", mean)
	}
}
