package sim

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
	"slosim/workloads"
)

// launch is a small world with a launch, a burst and two objectives.
func launch(t testing.TB, replicas int) Experiment {
	e := referenceDay(t, replicas, 2*clock.Hour)
	e.Warmup, e.Replications = 10*clock.Minute, 3
	longer := workloads.Dist{Kind: "lognormal", Mean: 12000, P99: 50000}
	e.Traffic[0].Rate.Bursts = []workloads.Burst{{At: 20 * clock.Minute, Length: 5 * clock.Minute, Every: clock.Hour, Factor: 1.5}}
	e.Changes = []workloads.Change{{Name: "feature", Class: "chat", At: 40 * clock.Minute, Ramp: 10 * clock.Minute, Share: .1, Prompt: &longer}}
	e.SLOs = append(e.SLOs, slo.Objective{Name: "existing", Class: "chat", Exclude: []string{"feature"}, Metric: slo.TTFT, Threshold: clock.Second, Target: .99, Window: 7 * clock.Day})
	return e
}

// encode writes a result with its NaN and Inf as text, so that equal bytes mean
// equal results.
func encode(t *testing.T, r *Result) string {
	t.Helper()
	text, err := json.Marshal(struct {
		Verdict Verdict
		Phases  int
		Bad     []int64
		Numbers []uint64
	}{r.Verdict, len(r.Phases), badCounts(r), fingerprints(r)})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func badCounts(r *Result) (out []int64) {
	for _, s := range r.SLOs {
		out = append(out, s.Good, s.Bad)
	}
	return out
}

// fingerprints returns the bits of every number that a report prints.
func fingerprints(r *Result) (out []uint64) {
	add := func(vs ...float64) {
		for _, v := range vs {
			out = append(out, math.Float64bits(v))
		}
	}
	for _, ph := range r.Phases {
		for _, c := range ph.Classes {
			for _, d := range []Distribution{c.TTFT, c.Answered, c.TPOT, c.E2E, c.Prompt, c.Output} {
				add(d.Mean.V, d.Mean.Lo, d.P50.V, d.P90.V, d.P95.V, d.P99.V, d.P99.Hi, d.Max)
			}
		}
	}
	for _, c := range r.Series.Classes {
		add(c.Arrivals...)
		add(c.TTFTP99...)
		add(c.Queue...)
	}
	for _, p := range r.Series.Pools {
		add(p.Running...)
		add(p.KVUse...)
		add(p.ClockMHz...)
		add(p.TempC...)
	}
	for _, p := range r.Pools {
		add(p.Busy.V, p.PowerW.V, p.SaturationRate)
	}
	return out
}

func TestSameSeedSameBytesAtAnyParallelism(t *testing.T) {
	e := launch(t, 4)
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	one, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GOMAXPROCS(2)
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // another rhythm of the garbage collector
	two, err := Run(context.Background(), e, Options{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := encode(t, one), encode(t, two); a != b {
		t.Fatalf("results differ:\n%.300s\n%.300s", a, b)
	}
	e.Seed = 99
	other, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if encode(t, other) == encode(t, one) {
		t.Fatal("another seed gave the same result")
	}
}

// The closed-form engine and the stepping one agree through the whole simulator.
func TestSteppingGivesTheSameResult(t *testing.T) {
	e := launch(t, 2)
	e.Replications = 1
	fast, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.Pools[0].Engine.Stepping = true
	slow, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if encode(t, fast) != encode(t, slow) {
		t.Fatal("results differ")
	}
}

// More replicas do not worsen P99 in at least 19 of 20 seeds.
func TestMoreReplicasDoNotWorsenP99(t *testing.T) {
	worse := 0
	for seed := range uint64(20) {
		e := referenceDay(t, 2, 30*clock.Minute)
		e.Traffic[0].Rate.Mean = 11
		e.Seed = seed
		few, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		e.Pools[0].Replicas = 3
		more, err := Run(context.Background(), e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if more.Phases[0].Classes[0].TTFT.P99.V > few.Phases[0].Classes[0].TTFT.P99.V {
			worse++
		}
	}
	if worse > 1 {
		t.Fatalf("worse in %d of 20 seeds", worse)
	}
}

// The stages of TTFT add up to it, per view and phase.
func TestStagesAddUpToTTFT(t *testing.T) {
	r, err := Run(context.Background(), launch(t, 3), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ph := range r.Phases {
		for _, c := range ph.Classes {
			s := c.Stages
			if sum := s.Network.V + s.Queue.V + s.Prefill.V + s.Publish.V; math.Abs(sum/c.TTFT.Mean.V-1) > 1e-9 {
				t.Errorf("%s/%s: stages %.9f s, TTFT %.9f s", ph.Name, c.Cohort, sum, c.TTFT.Mean.V)
			}
			if o := c.Outcomes; o.OK+o.Rejected+o.TimedOut+o.Failed+o.Late+o.Young != c.N {
				t.Errorf("%s/%s: %d requests, outcomes %+v", ph.Name, c.Cohort, c.N, o)
			}
		}
	}
}

// Overload cut at the end: what was never answered is bad, and P99 is infinite.
func TestUnansweredRequestsCountAsBad(t *testing.T) {
	e := referenceDay(t, 1, 20*clock.Minute)
	e.Traffic[0].Rate.Mean = 40 // four times what it can serve
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, s := r.Phases[0].Classes[0], r.SLOs[0]
	if !math.IsInf(c.TTFT.P99.V, 1) || math.IsInf(c.Answered.P99.V, 1) || c.Outcomes.Late == 0 {
		t.Errorf("P99 %v, of the answered %v, late %d", c.TTFT.P99.V, c.Answered.P99.V, c.Outcomes.Late)
	}
	if s.Good+s.Bad != c.N || s.Status != Missed || s.Bad < c.Outcomes.Late {
		t.Errorf("%d good + %d bad of %d, %s", s.Good, s.Bad, c.N, s.Status)
	}
}

// Over-long prompts are a rejected outcome: bad for TTFT and availability,
// unless the objective skips them.
func TestRejectedRequestsCountPerObjective(t *testing.T) {
	e := referenceDay(t, 1, 20*clock.Minute)
	e.Traffic[0].Rate.Mean = 2
	e.Traffic[0].Prompt = workloads.Dist{Kind: "uniform", Min: 1, Max: 2000}
	e.Pools[0].Engine.MaxModelLen = 1000
	e.SLOs = []slo.Objective{
		{Name: "a", Class: "chat", Metric: slo.Availability, Target: .9, Window: clock.Day},
		{Name: "b", Class: "chat", Metric: slo.Availability, Target: .9, Window: clock.Day, Skip: []string{"rejected"}},
		{Name: "c", Class: "chat", Metric: slo.TTFT, Threshold: 10 * clock.Second, Target: .9, Window: clock.Day},
		{Name: "d", Class: "chat", Metric: slo.TPOT, Threshold: clock.Second, Target: .9, Window: clock.Day},
	}
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := r.Phases[0].Classes[0].Outcomes.Rejected
	if n == 0 || r.SLOs[0].Bad != n || r.SLOs[1].Bad != 0 || r.SLOs[2].Bad != n || r.SLOs[3].Bad != 0 {
		t.Fatalf("%d rejected; bad %d %d %d %d", n, r.SLOs[0].Bad, r.SLOs[1].Bad, r.SLOs[2].Bad, r.SLOs[3].Bad)
	}
}

// A client-side cap holds requests back and a closed loop keeps its number.
func TestClientsKeepTheirLimits(t *testing.T) {
	e := referenceDay(t, 1, 20*clock.Minute)
	e.Traffic[0].Rate.Mean = 30
	e.Traffic[0].Client.MaxInFlight = 16
	capped, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.Traffic[0].Client = workloads.Client{Users: 16}
	looped, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Result{"max_in_flight": capped, "users": looped} {
		s := r.Series.Pools[0]
		for i := range s.Running {
			if n := s.Running[i] + s.Waiting[i]; n > 16.0001 {
				t.Fatalf("%s: %.3f requests in flight in window %d", name, n, i)
			}
		}
		c := r.Phases[0].Classes[0]
		if x := float64(c.N) / (20 * 60) * c.E2E.Mean.V; math.Abs(x-16) > 0.5 {
			t.Errorf("%s: Little's law gives %.2f in flight, want 16", name, x)
		}
	}
}

func TestCancelledRunIsMarkedPartial(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	e := launch(t, 4)
	e.Replications, e.Duration = 1, 20*clock.Hour
	r, err := Run(ctx, e, Options{Progress: func(p Progress) {
		if p.Done > 0.3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || r == nil || !r.Partial || r.End <= 0 || r.End >= clock.Time(e.Duration) {
		t.Fatalf("%v, %+v", err, r)
	}
	if len(r.Series.T) == 0 || r.Series.T[len(r.Series.T)-1] >= r.End {
		t.Fatal("the series run beyond the covered span")
	}
}

// Steady state allocates nothing per request, and memory does not grow with the
// span: a run twelve times as long keeps the same heap.
func TestMemoryDoesNotGrowWithTheSpan(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates 0.3 M requests")
	}
	live := func(span clock.Duration) (bytes uint64, allocs, requests float64, windows int) {
		e := referenceDay(t, 20, span)
		p, c := atRest(t, e)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if err := c.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		allocs = float64(after.Mallocs - before.Mallocs)
		// What the recorder keeps exactly is bounded by its own limit; the rest must stay.
		for g := range c.rec.cells {
			for ph := range c.rec.cells[g] {
				cell := &c.rec.cells[g][ph]
				cell.ttft, cell.tpot, cell.e2e = stats.Sample{}, stats.Sample{}, stats.Sample{}
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		bytes = after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
		runtime.KeepAlive(c)
		return bytes, allocs, float64(c.sent), p.windows
	}
	short, _, _, _ := live(5 * clock.Minute)
	long, allocs, requests, windows := live(29 * clock.Minute) // 2 % of the reference day
	// What is bounded by the span and not by the requests: the monitor's closures,
	// and the histograms of at most 720 windows.
	bounded := 3*29*60 + 40*float64(windows)
	if per := (allocs - bounded) / requests; per > 0.01 {
		t.Errorf("%.4f allocations per request", per)
	}
	if float64(long) > 1.5*float64(short)+4e6 {
		t.Errorf("%d bytes after five minutes, %d after twenty-nine", short, long)
	}
}

func TestPhasesAreNamedAndCut(t *testing.T) {
	e := Experiment{Duration: 10 * clock.Hour, Changes: []workloads.Change{
		{Name: "a", At: 2 * clock.Hour, Ramp: clock.Hour}, {Name: "b", At: 5 * clock.Hour}, {Name: "late", At: 11 * clock.Hour},
	}}
	var got []string
	for _, ph := range phasesOf(e) {
		got = append(got, ph.name+" "+clock.Duration(ph.from).String()+"–"+clock.Duration(ph.to).String())
	}
	want := "before 0ns–2h; ramp a 2h–3h; after a 3h–5h; after b 5h–10h"
	if s := strings.Join(got, "; "); s != want {
		t.Fatalf("%s, want %s", s, want)
	}
}
