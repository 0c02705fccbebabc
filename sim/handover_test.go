package sim

import (
	"context"
	"math"
	"testing"

	"slosim/engine"
	"slosim/sim/clock"
	"slosim/workloads"
)

// disaggregated splits the reference replicas into prefill and decode.
func disaggregated(t testing.TB, prefill, decode int, span clock.Duration) Experiment {
	e := referenceDay(t, prefill, span)
	p := e.Pools[0]
	p.Name, p.Role, p.Link = "p", "prefill", Link{BytesPerS: 50e9, Latency: 5 * clock.Millisecond}
	d := p
	d.Name, d.Role, d.Replicas = "d", "decode", decode
	e.Pools = []Pool{p, d}
	return e
}

// A lone request's TTFT is the sum of its parts to the nanosecond; everything
// reserved or pinned is given back in the end.
func TestLoneHandoverIsTheSumOfItsParts(t *testing.T) {
	e := disaggregated(t, 1, 1, clock.Hour)
	e.Traffic[0].Rate.Mean, e.Traffic[0].Rate.Burstiness = 0.01, 1000
	e.Traffic[0].Prompt, e.Traffic[0].Output = fixed(20_000), fixed(50)
	for i := range e.Pools {
		e.Pools[i].Thermal.Enabled = false
	}
	p, c := replication(t, e)
	v := c.reduce().phases[0][0][0]
	want := p.idleTTFT(1, 20_000)
	if v.n == 0 || math.Abs(v.ttft.p50-want.Seconds()) > 2e-9 || math.Abs(v.ttft.most-want.Seconds()) > 2e-9 {
		t.Errorf("TTFT %.9f–%.9f s, parts %.9f s", v.ttft.p50, v.ttft.most, want.Seconds())
	}
	for i, r := range c.replicas {
		if l := r.Load(c.loop.Now()); l.Blocks != 0 || l.Tokens != 0 || l.Waiting != 0 {
			t.Errorf("replica %d keeps %+v", i, l)
		}
	}
}

// On the same GPUs disaggregation separates the tails: tokens come without the
// stalls of other requests' prefill, the first token pays for the hand-over, and
// the pair serves no more than replicas that do both.
func TestDisaggregationSeparatesTheTails(t *testing.T) {
	split := disaggregated(t, 2, 2, 40*clock.Minute)
	together := referenceDay(t, 4, 40*clock.Minute)
	results := map[string]*Result{}
	for name, e := range map[string]Experiment{"split": split, "together": together} {
		e.Warmup = 5 * clock.Minute
		e.Traffic[0].Rate.Mean = 12
		r, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := r.Phases[0].Classes[0]
		if c.Outcomes.OK != c.N {
			t.Errorf("%s: %d of %d ended: %+v", name, c.Outcomes.OK, c.N, c.Outcomes)
		}
		results[name] = r
		t.Logf("%-8s TTFT p50 %.3f p99 %.3f s, TPOT p50 %.4f p99 %.4f s", name, c.TTFT.P50.V, c.TTFT.P99.V, c.TPOT.P50.V, c.TPOT.P99.V)
	}
	s, m := results["split"].Phases[0].Classes[0], results["together"].Phases[0].Classes[0]
	if s.TPOT.P99.V >= m.TPOT.P99.V {
		t.Errorf("TPOT P99 %.4f s split, %.4f s together", s.TPOT.P99.V, m.TPOT.P99.V)
	}
	if s.TTFT.P50.V <= m.TTFT.P50.V {
		t.Errorf("TTFT P50 %.4f s split, %.4f s together: the hand-over is free", s.TTFT.P50.V, m.TTFT.P50.V)
	}
	capacity := func(e Experiment) float64 {
		e.Traffic[0].Rate.Mean = 100
		e.Traffic[0].Client = workloads.Client{MaxInFlight: 3000}
		e.Warmup, e.Duration = 10*clock.Minute, 20*clock.Minute
		r, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		done := 0.0
		for _, x := range r.Series.Classes[0].Arrivals { // behind its cap the client sends what completes
			done += x / float64(len(r.Series.T))
		}
		return done
	}
	a, b := capacity(split), capacity(together)
	t.Logf("capacity: split %.1f/s, together %.1f/s", a, b)
	if a > b {
		t.Errorf("split serves %.1f/s, together %.1f/s", a, b)
	}
}

// The max–min rates by hand: into 2 only 4 fit, so flow 1 gets 4 and leaves 6 of
// link 0; into 1 flows 0 and 2 share 10.
func TestLinksAreSharedMaxMin(t *testing.T) {
	l := &links{capacity: []float64{10, 10, 4, 10}, out: make([]share, 4), in: make([]share, 4)}
	l.flows = []flow{{from: 0, to: 1}, {from: 0, to: 2}, {from: 3, to: 1}}
	l.share()
	for i, want := range []float64{5, 4, 5} {
		if math.Abs(l.flows[i].rate-want) > 1e-9 {
			t.Errorf("flow %d: %.3f, want %.3f", i, l.flows[i].rate, want)
		}
	}
}

// Short prompts stay where they decode.
func TestOnlyLongPromptsAreHandedOver(t *testing.T) {
	e := disaggregated(t, 1, 1, 10*clock.Minute)
	e.Traffic[0].Rate.Mean = 2
	e.Traffic[0].Prompt = workloads.Dist{Kind: "uniform", Min: 1, Max: 4000}
	e.Pools[1].Link.MinTokens = 2000
	_, c := atRest(t, e)
	var halves [3]int
	for i := range c.replicas {
		c.replicas[i] = &spy{Handing: c.replicas[i].(engine.Handing), halves: &halves, t: t}
	}
	if err := c.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if halves[workloads.Whole] == 0 || halves[workloads.PrefillHalf] == 0 || halves[workloads.PrefillHalf] < halves[workloads.DecodeHalf] {
		t.Errorf("%v", halves)
	}
}

type spy struct {
	engine.Handing
	halves *[3]int
	t      *testing.T
}

func (s *spy) Submit(now clock.Time, r *workloads.Request) int32 {
	s.halves[r.Handover]++
	if (r.Handover == workloads.Whole) != (r.Prompt < 2000) {
		s.t.Errorf("%d tokens as half %d", r.Prompt, r.Handover)
	}
	return s.Handing.Submit(now, r)
}
