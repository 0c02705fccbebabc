package sim

import (
	"context"
	"math"
	"sync/atomic"
	"testing"

	"slosim/engine"
	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// linear is a step model without batching effects: a step takes perToken per
// scheduled token, whatever else is in it.
type linear struct{ perToken int64 }

func (m linear) Step(b models.Batch, _ int) models.Cost {
	return models.Cost{Gemm: m.perToken * int64(b.Tokens)}
}
func (m linear) Slope(int32, int) models.Cost { return models.Cost{} }

// queueing is an experiment of one class through one replica. Its unit of time
// is a millisecond, so that ten million customers pass in few simulated seconds:
// rate is per millisecond, and lengths stand for service times at one nanosecond
// per token.
func queueing(customers, perMs float64, prompt, output workloads.Dist) Experiment {
	rate := 1000 * perMs
	return Experiment{
		Name: "queue", Seed: 5, Replications: 1,
		Duration: clock.FromSeconds(customers / rate),
		Pools:    []Pool{{Name: "q", Replicas: 1, Router: "round-robin", Engine: EngineSpec{MaxModelLen: math.MaxInt32}}},
		Traffic: []workloads.Class{{
			Name: "c", Stream: "c", Prompt: prompt, Output: output,
			Rate: workloads.Rate{Mean: rate, Shape: "constant", Burstiness: 1},
		}},
		SLOs: []slo.Objective{{Name: "s", Class: "c", Metric: slo.E2E, Threshold: 10 * clock.Second, Target: .9, Window: clock.Day}},
	}
}

// simulate runs an experiment with a replica of the test's own making and
// returns the closed cluster and its statistics.
func simulate(t *testing.T, e Experiment, model models.StepModel, make func() engine.Replica) (*cluster, *rep) {
	t.Helper()
	p := &plan{exp: e, phases: phasesOf(e), models: []models.StepModel{model}, poolOf: []int32{0}, poolsOf: [][]int32{nil}, overflow: []int32{-1}, prefillOf: []int32{-1}}
	p.replica = func(*fleet, int, uint64, engine.Gaps) engine.Replica { return make() }
	p.addGroups()
	p.addGoals()
	p.windows, p.width = 1, e.Duration
	p.coolDown = minCoolDown * 100
	c, err := newCluster(p, e.Seed, new(atomic.Int64))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c, c.reduce()
}

// syncEngine is the real scheduler as a single server: one request at a time, no
// host overhead, service = its prompt's one step.
func syncEngine() engine.Replica {
	return engine.NewVLLM(&engine.Config{
		MaxBatchedTokens: math.MaxInt32 / 4, MaxSeqs: 1, MaxModelLen: math.MaxInt32 / 4, BlockSize: 1 << 20, KVBlocks: 1024,
		Model: linear{perToken},
	})
}

// erlang returns a distribution with the quantiles of a sum of k exponentials,
// hyper those of a two-point mixture: both by tabulated quantiles.
func tabulated(mean float64, quantile func(u float64) float64) workloads.Dist {
	d := workloads.Dist{Kind: "empirical", Points: []workloads.Point{{Tokens: 0, P: 0}}}
	const n = 4000
	for k := 1; k <= n; k++ {
		u := (float64(k) - 0.5) / n
		if k == n {
			u = 1 - 1e-7
		}
		d.Points = append(d.Points, workloads.Point{Tokens: mean * quantile(u), P: float64(k) / n})
	}
	return d
}

const (
	million  = 1_000_000 // tokens of one millisecond's service
	perToken = 1000      // picoseconds
	ms       = 1e3       // seconds → milliseconds
)

func exponential() workloads.Dist { return workloads.Dist{Kind: "exponential", Mean: million} }
func fixed(n float64) workloads.Dist {
	return workloads.Dist{Kind: "fixed", Mean: n}
}

const customers = 10_000_000

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= tolerance) {
		t.Errorf("%s: %.6f, closed form %.6f (%+.2f %%, allowed %.0f %%)", what, got, want, 100*(got/want-1), 100*tolerance)
	}
}

// M/M/1 at ρ = 0.8, μ = 1 through the real scheduler, kernel and recorder:
// W = 5, Wq = 4, P99 of the sojourn 23.026.
func TestMM1ThroughTheRealEngine(t *testing.T) {
	t.Parallel()
	_, r := simulate(t, queueing(customers, 0.8, exponential(), fixed(1)), linear{perToken}, syncEngine)
	v := r.phases[0][0][0]
	within(t, "mean sojourn", ms*v.e2e.mean, 5, 0.02)
	within(t, "mean wait", ms*v.stage[stageQueue], 4, 0.02)
	within(t, "P99 sojourn", ms*v.e2e.p99, 23.026, 0.03)
	within(t, "P50 sojourn", ms*v.e2e.p50, 5*math.Ln2, 0.02)
}

// Pollaczek–Khinchine at ρ = 0.8: Wq = 2 (M/D/1), 2.5 (M/E4/1).
func TestPollaczekKhinchineThroughTheRealEngine(t *testing.T) {
	for name, c := range map[string]struct {
		service workloads.Dist
		wq      float64
	}{
		"M/D/1":  {fixed(million), 2},
		"M/E4/1": {tabulated(million, func(u float64) float64 { return gammaQuantile(u, 4) }), 2.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := simulate(t, queueing(customers, 0.8, c.service, fixed(1)), linear{perToken}, syncEngine)
			within(t, "mean wait", ms*r.phases[0][0][0].stage[stageQueue], c.wq, 0.02)
		})
	}
}

// M/M/c through the Replica seam: Erlang's C decides the mean wait.
func TestMMcThroughTheReplicaSeam(t *testing.T) {
	for _, c := range []struct {
		servers int
		rate    float64
		wq, p99 float64 // P99 of the wait where ENGINE §10 gives it
	}{{2, 1.6, 1.777778, 0}, {4, 3.2, 0.745541, 5.1105}, {8, 6.4, 0.286028, 0}, {16, 14.4, 0.369590, 0}} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			cl, r := simulate(t, queueing(customers, c.rate, fixed(1), exponential()), linear{1}, func() engine.Replica { return newStation(c.servers) })
			v := r.phases[0][0][0]
			within(t, "mean wait", ms*v.stage[stageQueue], c.wq, 0.02)
			within(t, "Wq from Erlang C", erlangC(c.servers, c.rate)/(float64(c.servers)-c.rate), c.wq, 1e-5)
			if c.p99 > 0 {
				waits := cl.replicas[0].(*station).waits
				within(t, "P99 wait", waits.Quantiles(.99)[0]/1e6, c.p99, 0.03)
			}
		})
	}
}

// Little's law and conservation on any finite run: the integral of the number in
// the system equals the sum of the sojourns, to the nanosecond, and every
// request that went in came out.
func TestTimeInSystemIsTheIntegralOfTheNumber(t *testing.T) {
	e := queueing(200_000, 0.012, workloads.Dist{Kind: "lognormal", Mean: 900, P99: 5000}, workloads.Dist{Kind: "exponential", Mean: 40})
	var w *watched
	c, r := simulate(t, e, linear{20_000_000}, func() engine.Replica {
		w = &watched{Replica: engine.NewVLLM(&engine.Config{
			MaxBatchedTokens: 4096, MaxSeqs: 64, MaxModelLen: 60_000, BlockSize: 16, KVBlocks: 4000, Model: linear{20_000_000},
			Host: models.Host{Async: true, FrontFixedPs: 4_500_000_000, PublishPerSeqPs: 65_000_000},
		})}
		return w
	})
	v := r.phases[0][0][0]
	if v.outcomes.OK+v.outcomes.Rejected+v.outcomes.Late+v.outcomes.Young != v.n || v.outcomes.OK < v.n-v.outcomes.Rejected {
		t.Errorf("%d requests in, outcomes %+v", v.n, v.outcomes)
	}
	if w.in != w.out+c.inFlight || w.in != c.sent {
		t.Errorf("%d in, %d out, %d in flight, %d sent", w.in, w.out, c.inFlight, c.sent)
	}
	w.sync()
	if w.area != w.sojourns || w.in == 0 {
		t.Errorf("∫N dt = %d ns, Σ sojourns = %d ns over %d requests", w.area, w.sojourns, w.in)
	}
}

// A lone request takes exactly network + front end + its steps + publication.
func TestLoneRequestIsExactToTheNanosecond(t *testing.T) {
	e := referenceDay(t, 1, clock.Hour)
	e.Traffic[0].Rate.Mean, e.Traffic[0].Rate.Burstiness = 0.004, 1000 // far and evenly apart
	for _, host := range []models.Host{{}, {Async: true}, models.DefaultHost(8)} {
		for _, network := range []clock.Duration{0, 13 * clock.Millisecond} {
			for _, prompt := range []float64{1, 700, 20_000} {
				for _, output := range []float64{1, 2, 300} {
					e.Network = network
					e.Pools[0].Deployment.Host = host
					e.Pools[0].Thermal.Enabled = false
					e.Traffic[0].Prompt, e.Traffic[0].Output = fixed(prompt), fixed(output)
					p, c := replication(t, e)
					v := c.reduce().phases[0][0][0]
					ttft := p.idleTTFT(0, int32(prompt))
					decode := clock.Duration(0)
					m := p.models[0]
					if output > 1 {
						a := m.Step(models.Batch{Tokens: 1, Seqs: 1, DecodeSeqs: 1, DecodeCtx: int64(prompt) + 1}, 0).Total()
						b := m.Slope(1, 0).Total()
						n := int64(output) - 1
						decode = clock.Duration((a*n + b*(n*(n-1)/2)) / 1000)
					}
					if v.n == 0 || v.ttft.most != ttft.Seconds() || v.ttft.p50 != ttft.Seconds() || v.e2e.most != (ttft+decode).Seconds() {
						t.Fatalf("host %+v, network %v, %v+%v tokens: TTFT %.9f want %.9f, E2E %.9f want %.9f (%d requests)", host, network, prompt, output, v.ttft.most, ttft.Seconds(), v.e2e.most, (ttft + decode).Seconds(), v.n)
					}
				}
			}
		}
	}
}
