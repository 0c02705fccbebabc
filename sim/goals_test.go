package sim

import (
	"context"
	"math"
	"testing"

	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// busyHour is one replica at a load at which some requests of every kind miss, with
// clients that give up.
func busyHour(t testing.TB) Experiment {
	e := referenceDay(t, 1, 30*clock.Minute)
	e.Warmup, e.Replications = 5*clock.Minute, 1
	e.Traffic[0].Rate = workloads.Rate{Mean: 2.2, Shape: "constant", Burstiness: 1}
	e.Traffic[0].Prompt = workloads.Dist{Kind: "lognormal", Mean: 3000, P99: 20000}
	e.Traffic[0].Client.Timeout = 20 * clock.Second
	base := slo.Objective{Class: "chat", Target: .99, Window: 30 * clock.Day}
	add := func(name string, m slo.Metric, f func(o *slo.Objective)) {
		o := base
		o.Name, o.Metric = name, m
		f(&o)
		e.SLOs = append(e.SLOs, o)
	}
	e.SLOs = nil
	add("queue", slo.Queue, func(o *slo.Objective) { o.Threshold = 200 * clock.Millisecond })
	add("all", slo.Goodput, func(o *slo.Objective) {
		o.All = slo.Limits{TTFT: clock.Second, TPOT: 25 * clock.Millisecond, E2E: 15 * clock.Second}
	})
	add("one", slo.Goodput, func(o *slo.Objective) { o.All = slo.Limits{TTFT: clock.Second} })
	add("short", slo.TTFT, func(o *slo.Objective) { o.Threshold, o.MaxPrompt = clock.Second, 4000 })
	add("long", slo.TTFT, func(o *slo.Objective) { o.Threshold, o.MinPrompt = clock.Second, 4000 })
	add("any", slo.TTFT, func(o *slo.Objective) { o.Threshold = clock.Second })
	add("itl", slo.ITL, func(o *slo.Objective) { o.Threshold = 60 * clock.Millisecond })
	e.StageBudgets = []StageBudget{{Class: "chat", Limits: [stages]clock.Duration{20e6, 2e8, 5e8, 25e6, 2e8}}}
	return e
}

// Good and bad events are those that a count over the rows of all requests gives.
func TestObjectivesCountWhatTheRequestsShow(t *testing.T) {
	e := busyHour(t)
	var want [4]int64 // bad: queue, all, one, TTFT of any length
	var over, finished int64
	result, err := Run(context.Background(), e, Options{Workers: 1, Served: func(s Served) {
		if s.Send < 0 || s.Send >= clock.Time(e.Duration) || s.Outcome == OutcomeUndecided {
			return
		}
		ok := s.Outcome == OutcomeOK
		late := s.First == clock.Never || s.First.Sub(s.Send) > clock.Second
		count := func(k int, bad bool) {
			if bad {
				want[k]++
			}
		}
		count(3, late)
		count(2, late || !ok)
		if s.First == clock.Never {
			count(0, true)
		} else if ok { // rows of broken-off streams do not say when they started
			count(0, s.Started.Sub(s.Ready) > 200*clock.Millisecond)
		}
		tpot := clock.Duration(0)
		if ok && s.Output > 1 {
			tpot = s.Last.Sub(s.First) / clock.Duration(s.Output-1)
		}
		count(1, late || !ok || tpot > 25*clock.Millisecond || s.Last.Sub(s.Send) > 15*clock.Second)
		if ok {
			finished++
			if tpot > 25*clock.Millisecond {
				over++
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := func(k int) int64 { return result.SLOs[k].Bad }
	t.Logf("bad of queue, all, one, any: %v of %d; ITL %d of %d", want, result.SLOs[1].Good+result.SLOs[1].Bad, got(6), got(6)+result.SLOs[6].Good)
	for i, k := range []int{1, 2, 5} {
		// Requests still open at the end count too, once they are late.
		if late := result.Phases[0].Classes[0].Outcomes.Late; got(k) < want[i+1] || got(k) > want[i+1]+late {
			t.Errorf("%s: %d bad, the rows show %d and %d late ones", result.SLOs[k].Name, got(k), want[i+1], late)
		}
		if want[i+1] == 0 {
			t.Errorf("%s: nothing is bad: the test proves nothing", result.SLOs[k].Name)
		}
	}
	if got(0) < want[0] || want[0] == 0 || float64(got(0)) > 1.2*float64(want[0])+5 {
		t.Errorf("queue: %d bad, the rows show %d", got(0), want[0])
	}
	for _, f := range []func(s *SLO) int64{func(s *SLO) int64 { return s.Bad }, func(s *SLO) int64 { return s.Good }} {
		if s, l, a := f(&result.SLOs[3]), f(&result.SLOs[4]), f(&result.SLOs[5]); s+l != a || s == 0 || l == 0 {
			t.Errorf("bands hold %d and %d events, all of them %d", s, l, a)
		}
	}
	row := result.Stages[0].Phases[0].Rows[stageDecode]
	if w := float64(over) / float64(finished); math.Abs(row.Over.V-w) > 1e-9 {
		t.Errorf("decode: %g over its budget, the rows show %g", row.Over.V, w)
	}
}

// What the stages cause and what has no answer are all of the violations.
func TestStagesShareOutTheViolations(t *testing.T) {
	e := busyHour(t)
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := r.Stages[0].Phases[0]
	sum := p.Lost.V
	for _, row := range p.Rows {
		sum += row.Caused.V
		if row.P50.V > row.P95.V || row.P95.V > row.P99.V {
			t.Errorf("%s: quantiles fall", row.Stage)
		}
	}
	if math.Abs(sum-1) > 1e-9 || p.Violations == 0 {
		t.Fatalf("shares of %d violations add up to %g", p.Violations, sum)
	}
}

// A token is good when its gap is: the share of bad ones and the pool's quantile of
// the gap tell the same.
func TestITLObjectiveAgreesWithThePoolsGaps(t *testing.T) {
	e := busyHour(t)
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p99 := r.Pools[0].ITL[0].P99.V
	for _, c := range []struct {
		factor float64
		less   bool
	}{{1.02, true}, {.98, false}} {
		e.SLOs = []slo.Objective{{Name: "itl", Class: "chat", Metric: slo.ITL, Threshold: clock.FromSeconds(c.factor * p99), Target: .99, Window: 30 * clock.Day}}
		r, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if share := r.SLOs[0].Phases[0].BadShare.V; share <= 0.01 != c.less {
			t.Errorf("threshold %.2f × P99: %g of the tokens are bad", c.factor, share)
		}
	}
}
