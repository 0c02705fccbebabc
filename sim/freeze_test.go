package sim

import (
	"context"
	"strings"
	"testing"

	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// shift is three hours on one replica with a burst after half an hour, which burns
// the budget of a two-hour window, and a launch at 90 minutes that the budget gates.
func shift(t testing.TB) Experiment {
	e := referenceDay(t, 1, 3*clock.Hour)
	e.Warmup, e.Replications = 5*clock.Minute, 2
	e.Traffic[0].Rate = workloads.Rate{Mean: 1.5, Shape: "constant", Burstiness: 1, Bursts: []workloads.Burst{{At: 30 * clock.Minute, Length: 10 * clock.Minute, Factor: 8}}}
	e.Traffic[0].Prompt = workloads.Dist{Kind: "lognormal", Mean: 2000, P99: 8000}
	long := workloads.Dist{Kind: "lognormal", Mean: 4000, P99: 16000}
	e.Changes = []workloads.Change{{Name: "launch", Class: "chat", At: 90*clock.Minute + 20*clock.Second, Ramp: 10 * clock.Minute, Share: .5, RateFactor: 1, Prompt: &long}}
	e.SLOs = []slo.Objective{{Name: "ttft", Class: "chat", Metric: slo.TTFT, Threshold: 2 * clock.Second, Target: .99, Window: 2 * clock.Hour}}
	e.Holds = []Hold{{Change: "launch", SLOs: []string{"ttft"}}}
	return e
}

// joined counts the requests of the cohort that were sent, and the first of them.
func joined(t testing.TB, e Experiment) (r *Result, n int, first clock.Time) {
	t.Helper()
	first = clock.Never
	r, err := Run(context.Background(), e, Options{Workers: 1, Served: func(s Served) {
		if s.Cohort > 0 {
			n++
			first = min(first, s.Send)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r, n, first
}

// While the budget is frozen the launch waits; it starts to the nanosecond when the
// next calendar window begins, and not at all when there is none.
func TestAFrozenBudgetHoldsALaunchBack(t *testing.T) {
	e := shift(t)
	r, n, first := joined(t, e)
	h := r.Held[0]
	if h.Held != 2 || h.Never != 0 || h.Start.V != 7200 || n == 0 || first < clock.Time(2*clock.Hour) {
		t.Fatalf("%+v, %d requests from %s on", h, n, first.Label(0))
	}
	text := ""
	for _, a := range r.Actions {
		text += a.Text + "\n"
	}
	for _, want := range []string{"non-essential changes are frozen", "alarm", `"launch" is held back`, "a new window", `"launch" starts`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	e.SLOs[0].Window = 3 * clock.Hour
	if r, n, _ := joined(t, e); r.Held[0].Never != 2 || n != 0 || len(r.Warnings) == 0 {
		t.Errorf("%+v, %d requests", r.Held[0], n)
	}
	e.SLOs[0].Spent, e.Traffic[0].Rate.Bursts = 0, nil
	e.SLOs[0].Target = .5 // nothing burns
	gated, _, _ := joined(t, e)
	e.Holds = nil
	free, _, _ := joined(t, e)
	if gated.Held[0].Held != 0 || gated.SLOs[0].Bad != free.SLOs[0].Bad || gated.Requests != free.Requests || gated.Steps != free.Steps {
		t.Errorf("a gate that holds nothing changes the run: %d and %d steps", gated.Steps, free.Steps)
	}
}

// An essential change waits only while the budget is gone: at 90 % spent it starts.
func TestAnEssentialChangeWaitsForAnEmptyBudgetOnly(t *testing.T) {
	e := shift(t)
	e.Traffic[0].Rate.Bursts = nil
	e.SLOs[0].Spent, e.SLOs[0].Target = .9, .9
	if r, _, _ := joined(t, e); r.Held[0].Held != 2 {
		t.Errorf("%+v", r.Held[0])
	}
	e.Holds[0].Essential = true
	if r, _, first := joined(t, e); r.Held[0].Held != 0 || first < clock.Time(e.Changes[0].At) {
		t.Errorf("%+v", r.Held[0])
	}
}

// The decision uses what was known then: whatever comes after the launch's time does
// not alter what the policy did up to it.
func TestThePolicyDoesNotSeeTheFuture(t *testing.T) {
	e := shift(t)
	until := func(r *Result, at clock.Time) string {
		text := ""
		for _, a := range r.Actions {
			if a.At <= at {
				text += a.At.Label(0) + " " + a.Text + "\n"
			}
		}
		return text
	}
	at := clock.Time(e.Changes[0].At)
	e.Traffic[0].Rate.Bursts[0].Factor = 1.5 // nothing is frozen by then
	calm, _, _ := joined(t, e)
	e.Traffic[0].Rate.Bursts = append(e.Traffic[0].Rate.Bursts, workloads.Burst{At: clock.Duration(at) + clock.Second, Length: 20 * clock.Minute, Factor: 8})
	e.SLOs[0].Window = 2*clock.Hour + clock.Minute
	e.SLOs[0].Window = 2 * clock.Hour
	storm, _, _ := joined(t, e)
	if calm.Held[0].Held != 0 || storm.Held[0].Held != 0 {
		t.Fatalf("%+v %+v", calm.Held[0], storm.Held[0])
	}
	if a, b := until(calm, at), until(storm, at); a != b {
		t.Errorf("up to the launch:\n%s\nwith a storm after it:\n%s", a, b)
	}
	if last := until(storm, clock.Time(e.Duration)); !strings.Contains(last, "frozen") {
		t.Errorf("the storm freezes nothing:\n%s", last)
	}
}

// A held change of the rate leaves the arrivals those of the world without it, and
// after its start those of a change planned for then.
func TestAHeldRateComesLater(t *testing.T) {
	sends := func(e Experiment) (out []clock.Time) {
		e.Replications = 1
		if _, err := Run(context.Background(), e, Options{Workers: 1, Served: func(s Served) { out = append(out, s.Send) }}); err != nil {
			t.Fatal(err)
		}
		seen := map[clock.Time]int{}
		for _, s := range out {
			seen[s]++
		}
		return out
	}
	e := shift(t)
	e.Changes[0] = workloads.Change{Name: "launch", Class: "chat", At: 90 * clock.Minute, RateFactor: 1.5}
	count := func(list []clock.Time, from, to clock.Duration) (n int, sum clock.Time) {
		for _, s := range list {
			if s >= clock.Time(from) && s < clock.Time(to) {
				n++
				sum += s
			}
		}
		return n, sum
	}
	held := sends(e)
	e.Holds, e.Changes[0].At = nil, 2*clock.Hour
	later := sends(e)
	a, x := count(held, 0, 3*clock.Hour)
	b, y := count(later, 0, 3*clock.Hour)
	if a != b || max(x-y, y-x) > clock.Time(a) { // a nanosecond each: the curves have other knots
		t.Errorf("%d arrivals when held until 2 h, %d when planned for it; sums differ by %d ns", a, b, x-y)
	}
}
