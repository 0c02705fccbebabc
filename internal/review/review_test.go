package review

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"slosim/experiments"
	"slosim/sim"
	"slosim/sim/rng"
)

// launch is a small launch: long prompts on two replicas, eight minutes.
const launch = `
title = "Small launch"
start = "Mon 10:00"
duration = "8m"
warmup = "1m"
replications = 3
[[pool]]
name = "main"
model = "llama-3.3-70b"
gpu = "h100-sxm-80gb"
tensor_parallel = 8
replicas = 2
gpu_hour_usd = 2.95
[[traffic]]
class = "chat"
stream = "chat"
rate = "4/s"
prompt = { dist = "lognormal", mean = 2000, p99 = 8000 }
output = { dist = "lognormal", mean = 128, p99 = 512 }
[[change]]
name = "feature"
class = "chat"
at = "2m"
share = "30%"
prompt = { dist = "lognormal", mean = 20000, p99 = 60000 }
[[slo]]
name = "all"
class = "chat"
metric = "ttft"
threshold = "2s"
objective = "99%"
[[slo]]
name = "existing"
class = "chat"
exclude = "feature"
metric = "ttft"
threshold = "2s"
objective = "99%"
`

func parse(t *testing.T, text string, sets ...string) sim.Experiment {
	t.Helper()
	e, _, err := experiments.Parse("launch.toml", ".", text, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func run(t *testing.T, base, change sim.Experiment, text string, o Options) *Review {
	t.Helper()
	r, err := Run(context.Background(), base, change, Source{Name: "launch.toml", Dir: ".", Text: text}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The main experiment, cut to the hours around a peak: blocked by the rule that it
// names, for the reasons and with the levers that are known. What a lever's TOML holds
// is the experiment that was simulated.
func TestPromptGrowthIsBlockedAndMended(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates some hundred hours of traffic")
	}
	name, dir, text, err := experiments.Text("prompt-growth")
	if err != nil {
		t.Fatal(err)
	}
	source := Source{name, dir, text, []string{"start=Mon 12:00", "duration=4h", "change.feature.at=1h", "change.feature.ramp=10m", "replications=2"}}
	e, _, err := experiments.Load("prompt-growth", source.Sets...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), Without(e), e, source, Options{Levers: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Call != Block || !strings.Contains(r.Verdict.Rule, "MISSED with it") {
		t.Fatalf("%+v", r.Verdict)
	}
	for _, c := range r.Classes {
		if c.Hurt != "worse" || !(c.P99.Diff.Lo > 0) {
			t.Errorf("%s is %s: %+v", c.Cohort, c.Hurt, c.P99)
		}
	}
	if why := strings.Join(r.Why, "\n"); !strings.Contains(why, "are requests of feature") || !strings.Contains(why, "existing requests that waited") || !strings.Contains(why, "no number of these replicas restores it") {
		t.Error(why)
	}
	levers := map[string]*Lever{}
	for i := range r.Levers {
		l := &r.Levers[i]
		levers[l.Name] = l
		t.Logf("%s: %s: restores %v, confirmed %v on %s", l.Name, l.Dose, l.Restores, l.Confirmed, l.Basis)
	}
	dose := func(lever, path string, low, high float64) {
		l := levers[lever]
		if l == nil || len(l.Misses) > 0 {
			t.Errorf("%s: %+v; not tried: %v", lever, l, r.NotTried)
			return
		}
		x := parse(t, l.text).Changes[0]
		got := map[string]float64{"share": x.Share}[path]
		if path == "prompt" {
			got = x.Prompt.Mean
		}
		if got < low || got > high {
			t.Errorf("%s: %s = %g, expected %g to %g", lever, path, got, low, high)
		}
	}
	dose("shorter prompts", "prompt", 10000, 14000)
	dose("smaller exposure", "share", .05, .08)
	for _, name := range []string{"chunk limit", "pool for long prompts", "more replicas"} {
		if l := levers[name]; l == nil || !l.Confirmed || len(l.Restores) != 1 || l.Restores[0] != "chat TTFT, existing prompts" {
			t.Errorf("%s: %+v; not tried: %v", name, l, r.NotTried)
		}
	}
	if l := levers["token rate limit"]; l == nil || l.Confirmed || !(l.Rejected > .01) {
		t.Errorf("token rate limit: %+v; not tried: %v", l, r.NotTried)
	}
	if r.Recommended != "shorter prompts" {
		t.Errorf("recommended: %q", r.Recommended)
	} else {
		sameAsItsFile(t, e, levers[r.Recommended])
	}
	if c := r.Causes[0]; c.Kind != "with" || !(c.Bad > .01) || r.Causes[2].Explains < r.Causes[3].Explains {
		t.Errorf("%+v", r.Causes)
	}
	if first, on, ok := r.detected(); !ok || on != "chat TTFT" || first.Fired < r.began() {
		t.Errorf("detected by %+v on %q, %v", first, on, ok)
	}
	items := fmt.Sprint(r.prevention())
	for _, want := range []string{"shorter prompts", "A canary at", "An alarm on prompt length", "Another promise"} {
		if !strings.Contains(items, want) {
			t.Errorf("prevention lacks %q: %s", want, items)
		}
	}
	r.incidental = true
	for _, text := range []string{string(r.Markdown()), string(r.PostMortemMarkdown()), fmt.Sprint(r.Document().Facts)} {
		if strings.Contains(text, "NaN") || strings.Contains(text, "%!") {
			t.Error(text)
		}
	}
	if err := r.Write(t.TempDir() + "/review"); err != nil {
		t.Error(err)
	}
}

// sameAsItsFile simulates a lever's TOML again.
func sameAsItsFile(t *testing.T, e sim.Experiment, l *Lever) {
	t.Helper()
	again := parse(t, l.text)
	w := &world{e: again}
	for i := fullFrom; i < fullFrom+2; i++ {
		one := again
		one.Seed, one.Replications = rng.Derive(e.Seed, i), 1
		x, err := sim.Run(context.Background(), one, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.reps = append(w.reps, x)
	}
	for k := range again.SLOs {
		if got := Number(w.bad(k).V); got != l.SLOs[k].Bad || got > .01 {
			t.Errorf("%s misses %v, its TOML %v", again.SLOs[k].Name, l.SLOs[k].Bad, got)
		}
	}
}

// Changes of names, prose and order are no changes: every difference is exactly zero.
func TestHarmlessChangesDifferByNothing(t *testing.T) {
	base := parse(t, launch, "replications=2", "duration=4m")
	texts := map[string]string{
		"title":        strings.Replace(launch, "Small launch", "Another title", 1),
		"comment":      "# a comment\n" + launch,
		"pool renamed": strings.Replace(launch, `name = "main"`, `name = "gpus"`, 1),
		"SLO renamed":  strings.Replace(launch, `name = "existing"`, `name = "the others"`, 1),
	}
	class := strings.ReplaceAll(launch, `class = "chat"`, `class = "talk"`)
	texts["class renamed, stream kept"] = class
	i, j := strings.Index(launch, "[[pool]]"), strings.Index(launch, "[[traffic]]")
	texts["order of tables"] = launch[:i] + launch[j:] + launch[i:j]
	for name, text := range texts {
		e := parse(t, text, "replications=2", "duration=4m")
		r := run(t, Aligned(base, e), e, text, Options{})
		if r.Verdict.Call != Pass {
			t.Errorf("%s: %+v", name, r.Verdict)
		}
		var pairs []Paired
		for _, s := range r.SLOs {
			pairs = append(pairs, s.Bad, s.Burn, s.Spent, s.Quantile)
		}
		for _, c := range r.Classes {
			pairs = append(pairs, c.P50, c.P99, c.TPOT, c.E2E, c.Rate, c.Failed)
		}
		for _, c := range r.Cost {
			pairs = append(pairs, c.Value)
		}
		for i, p := range pairs {
			if p.Diff != (Estimate{}) {
				t.Errorf("%s: pair %d differs: %+v", name, i, p)
			}
		}
	}
}

// More GPUs never block.
func TestMoreGPUsNeverBlock(t *testing.T) {
	base := parse(t, launch, "replications=3", "duration=4m")
	for n := 3; n <= 6; n++ {
		e := parse(t, launch, "replications=3", "duration=4m", fmt.Sprintf("pool.main.replicas=%d", n))
		r := run(t, base, e, launch, Options{})
		if r.Verdict.Call != Pass {
			t.Errorf("%d replicas: %+v", n, r.Verdict)
		}
		if c := r.Cost[0]; c.Value.Diff.V != Number(8*(n-2)) {
			t.Errorf("%+v", c)
		}
	}
}

// Without any change and with independent seeds in the two worlds, a call other than
// PASS is an error; the family-wise level is 2 %. Of these 24 pairs at most 3 may be:
// more would come with probability 0.1 % at that level, and with 50 % at 15 %.
func TestIndependentWorldsWithoutAChangePass(t *testing.T) {
	const pairs, most = 24, 3
	wrong := 0
	for i := range pairs {
		a := parse(t, launch, "replications=3", "duration=3m", "warmup=20s", "change.feature.at=1m", "change.feature.share=6%", fmt.Sprintf("seed=%d", 100+2*i))
		b := a
		b.Seed++
		if r := run(t, a, b, launch, Options{}); r.Verdict.Call != Pass {
			wrong++
			t.Logf("seed %d: %+v", a.Seed, r.Verdict)
		}
	}
	if wrong > most {
		t.Errorf("%d of %d pairs without any difference are called otherwise", wrong, pairs)
	}
}

// The rules, one by one.
func TestRulesOfTheVerdict(t *testing.T) {
	slo := func(before, after sim.Status, base, bad []float64) SLO {
		s := SLO{Name: "x", Allowed: .01, Before: before, Status: after, Bad: pair(base, bad)}
		s.Burn = scaled(s.Bad, 100)
		for i := range bad {
			s.diffs = append(s.diffs, bad[i]-base[i])
		}
		return s
	}
	flat := []float64{.001, .0011, .0009, .001}
	for _, c := range []struct {
		what string
		slo  SLO
		want Call
	}{
		{"nothing changes", slo(sim.Met, sim.Met, flat, flat), Pass},
		{"breaks", slo(sim.Met, sim.Missed, flat, []float64{.05, .052, .049, .051}), Block},
		{"worse, still met", slo(sim.Met, sim.Met, flat, []float64{.005, .0052, .0049, .0051}), Warn},
		{"worse by little", slo(sim.Met, sim.Met, flat, []float64{.0012, .0013, .0011, .0012}), Pass},
		{"missed in either world", slo(sim.Missed, sim.Missed, []float64{.05, .052, .049, .051}, []float64{.051, .05, .05, .05}), Pass},
		{"missed and worse", slo(sim.Missed, sim.Missed, []float64{.05, .052, .049, .051}, []float64{.07, .072, .069, .071}), Block},
		{"better", slo(sim.Missed, sim.Met, []float64{.05, .052, .049, .051}, flat), Pass},
		{"new and missed", SLO{Name: "x", Allowed: .01, New: true, Status: sim.Missed}, Block},
	} {
		if v := decide([]SLO{c.slo}, DefaultMaterial, familyWise); v.Call != c.want {
			t.Errorf("%s: %+v, want %s", c.what, v, c.want)
		}
	}
}

// A lever's smallest dose is found by halving when more is better, and by trying all
// otherwise.
func TestDoseIsTheSmallestThatRestoresMost(t *testing.T) {
	met := map[int][]int{}
	for d := 0; d <= 20; d++ {
		if d >= 13 {
			met[d] = []int{1}
		}
	}
	look := func(d int) (*world, error) { return &world{e: sim.Experiment{Replications: d}}, nil }
	meets := func(w *world) []int { return met[w.e.Replications] }
	if d, goal, err := (&candidate{doses: 20}).search(2, look, meets); d != 13 || !slices.Equal(goal, []int{1}) || err != nil {
		t.Error(d, goal, err)
	}
	met = map[int][]int{2: {0}, 3: {0, 1}, 4: {0}}
	if d, goal, err := (&candidate{doses: 5, scan: true}).search(2, look, meets); d != 3 || len(goal) != 2 || err != nil {
		t.Error(d, goal, err)
	}
	if d, goal, _ := (&candidate{doses: 5}).search(2, look, func(*world) []int { return nil }); d != 5 || goal != nil {
		t.Error(d, goal)
	}
}

// Overrides of the command line reach the text that levers are made from.
func TestOverridesReachTheText(t *testing.T) {
	s := Source{Name: "launch.toml", Dir: ".", Text: launch, Sets: []string{"pool.main.replicas=3", `slo."all".threshold=3s`, "change.feature.share=10%", `traffic.chat.rate={ mean = "2/s", shape = "diurnal", peak = "14:00", peak_to_trough = 2 }`}}
	tr, err := s.parse()
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.load(tr)
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, launch, s.Sets...)
	if experiments.Hash(e) != experiments.Hash(want) {
		t.Errorf("%+v\n%+v", e, want)
	}
}

// The paired bound is Student's, one-sided.
func TestLowerBound(t *testing.T) {
	got := lowerBound([]float64{1, 2, 3, 4, 5}, .05)
	if want := 3 - 2.1318467863*math.Sqrt(2.5/5); math.Abs(got-want) > 1e-6 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := lowerBound([]float64{0, 0, 0}, .01); got != 0 {
		t.Error(got)
	}
}
