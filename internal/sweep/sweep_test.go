package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"slosim/internal/design"
	"slosim/internal/progress"
	"slosim/sim"
	"slosim/workloads"
)

const tiny = `duration = "4s"
warmup = "0s"
replications = 1
[[pool]]
name = "main"
model = "llama-3.1-8b"
gpu = "h100"
gpu_hour_usd = 3
thermal = { enabled = false }
[[traffic]]
class = "chat"
rate = "20/s"
prompt = 200
output = 10
[[slo]]
name = "fast"
class = "chat"
metric = "ttft"
threshold = "30ms"
objective = "90%"
`

// folder writes an experiment and returns the sweep that lies beside it.
func folder(t *testing.T, text string) (*File, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tiny.toml"), []byte(tiny), 0o644); err != nil {
		t.Fatal(err)
	}
	return Parse(filepath.Join(dir, "s.toml"), dir, text)
}

func prepared(t *testing.T, text string) *Plan {
	t.Helper()
	f, err := folder(t, text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const grid = `experiment = "tiny.toml"
[design]
seeds = 2
[[vary]]
set = "pool.main.replicas"
name = "replicas"
values = [1, 2]
[[vary]]
set = "traffic.chat.rate"
from = "10/s"
to = "40/s"
scale = "log"
steps = 3
[[vary]]
set = "traffic.chat.prompt"
values = [200, { dist = "lognormal", mean = 400, p99 = 2000 }]
labels = ["short", "long"]
`

// A grid has every combination, each a valid experiment with its settings, all on the
// same seeds.
func TestAGridIsLaidOutAsWritten(t *testing.T) {
	p := prepared(t, grid)
	var got []string
	for _, x := range p.Points {
		got = append(got, strings.Join(p.File.settings(x.Values), " "))
	}
	if len(got) != 12 || got[0] != "pool.main.replicas=1 traffic.chat.rate=10/s traffic.chat.prompt=200" ||
		got[11] != `pool.main.replicas=2 traffic.chat.rate=40/s traffic.chat.prompt={ "dist" = "lognormal", "mean" = 400, "p99" = 2000 }` {
		t.Errorf("%d points:\n%s", len(got), strings.Join(got, "\n"))
	}
	last := p.Points[11].Experiment
	if last.Pools[0].Replicas != 2 || last.Traffic[0].Rate.Mean != 40 || len(p.Seeds) != 2 || p.Seeds[0] != 1 {
		t.Errorf("%d replicas, %g/s, seeds %v", last.Pools[0].Replicas, last.Traffic[0].Rate.Mean, p.Seeds)
	}
	if p.Points[2].Values[1] != "20/s" {
		t.Errorf("the middle of 10/s to 40/s on a log scale is %s", p.Points[2].Values[1])
	}
}

// Each fault of a sweep is told where it is, with what is allowed.
func TestFaultsAreToldAtTheirPlace(t *testing.T) {
	const head = "experiment = \"tiny.toml\"\n"
	for want, text := range map[string]string{
		`the sweep has no "experiment"`: "[[vary]]\nset = \"pool.main.replicas\"\nvalues = [1, 2]\n",
		"there is nothing to vary":      head,
		"did you mean \"samples\"":      head + "[design]\nkind = \"lhs\"\nsample = 3\n",
		"samples has no meaning":        head + "[design]\nsamples = 3\n",
		`"grid", "latin-hypercube"`:     head + "[design]\nkind = \"random\"\n",
		"neither values nor a range":    head + "[[vary]]\nset = \"pool.main.replicas\"\n",
		"at least two values":           head + "[[vary]]\nset = \"pool.main.replicas\"\nvalues = [1]\n",
		`from is in "/s", to in "/min"`: head + "[[vary]]\nset = \"traffic.chat.rate\"\nfrom = \"1/s\"\nto = \"5/min\"\nsteps = 3\n",
		"is not above":                  head + "[[vary]]\nset = \"traffic.chat.rate\"\nfrom = \"5/s\"\nto = \"1/s\"\nsteps = 3\n",
		"a log scale has no 0":          head + "[[vary]]\nset = \"traffic.chat.rate\"\nfrom = \"0/s\"\nto = \"1/s\"\nscale = \"log\"\nsteps = 3\n",
		"not both whole":                head + "[[vary]]\nset = \"pool.main.replicas\"\nfrom = 1.5\nto = 4\ninteger = true\nsteps = 3\n",
		"steps belong to a grid":        head + "[design]\nkind = \"sobol\"\nsamples = 4\n[[vary]]\nset = \"pool.main.replicas\"\nfrom = 1\nto = 4\nsteps = 3\n",
		"2 labels for 3 values":         head + "[[vary]]\nset = \"pool.main.replicas\"\nvalues = [1, 2, 3]\nlabels = [\"a\", \"b\"]\n",
		"is varied twice":               head + strings.Repeat("[[vary]]\nset = \"pool.main.replicas\"\nvalues = [1, 2]\n", 2),
		"is about a range":              head + "[[vary]]\nset = \"pool.main.replicas\"\nvalues = [1, 2]\nsteps = 2\n",
		"did you mean \"ttft_p99\"":     head + "[report]\nmetrics = [\"ttftp99\"]\n",
		"it takes no \":main\"":         head + "[report]\nmetrics = [\"usd_per_hour:main\"]\n",
		"does not name two settings":    head + "[report]\nheat = [\"a\", \"b\"]\n[[vary]]\nset = \"pool.main.replicas\"\nvalues = [1, 2]\n",
		"1000000 points on 3 seeds":     head + "[[vary]]\nset = \"pool.main.replicas\"\nfrom = 1\nto = 1000\nsteps = 1000\n[[vary]]\nset = \"traffic.chat.rate\"\nfrom = \"1/s\"\nto = \"5/s\"\nsteps = 1000\n",
		"seed cannot be varied":         head + "[[vary]]\nset = \"seed\"\nvalues = [1, 2]\n",
		"2 is listed twice":             head + "[[vary]]\nset = \"pool.main.replicas\"\nvalues = [1, 2, 2]\n",
		"\"a\" labels two values":       head + "[[vary]]\nset = \"pool.main.replicas\"\nvalues = [1, 2]\nlabels = [\"a\", \"a\"]\n",
		"this is an experiment":         tiny,
		"has no value":                  head + "set = [\"duration\"]\n",
		"did you mean \"vary\"":         head + "[[varry]]\nset = \"pool.main.replicas\"\n",
	} {
		_, err := folder(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "s.toml") {
			t.Errorf("want %q:\n%v", want, err)
		}
	}
}

// Every point is tried before anything runs; errors come once, with the set that has
// them.
func TestEveryPointIsCheckedBeforeAnythingRuns(t *testing.T) {
	f, err := folder(t, `experiment = "tiny.toml"
[[vary]]
set = "pool.main.replicaz"
values = [1, 2, 3]
[[vary]]
set = "traffic.chat.rate"
values = ["10/s", "fast"]
`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Prepare(f)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"--set pool.main.replicaz=", "did you mean", "--set traffic.chat.rate=fast", "6 of 6 points are no valid experiment; nothing was simulated"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "traffic.chat.rate=fast"); n > 2 {
		t.Errorf("one error is told %d times:\n%v", n, err)
	}
}

// Points that are no valid experiment are left out when asked, and counted.
func TestInvalidPointsCanBeLeftOut(t *testing.T) {
	text := `experiment = "tiny.toml"
[design]
seeds = 1
[[vary]]
set = "pool.main.tensor_parallel"
values = [1, 3, 2]
`
	f, err := folder(t, text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(f); err == nil || !strings.Contains(err.Error(), `invalid = "skip"`) {
		t.Error(err)
	}
	p := prepared(t, strings.Replace(text, "seeds = 1", "seeds = 1\ninvalid = \"skip\"", 1))
	r, err := Run(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.leftOut() != 1 || p.Points[1].Invalid == "" || !math.IsNaN(r.Estimate(1, 0).V) || math.IsNaN(r.Estimate(2, 0).V) {
		t.Errorf("%d left out, %q", r.leftOut(), p.Points[1].Invalid)
	}
	if _, err := r.Files("sim sweep s.toml", "1"); err != nil {
		t.Error(err)
	}
}

// made fills a sweep's values with a function of the factors' numbers and the seed,
// instead of simulating.
func made(t *testing.T, text string, f func(x []float64, seed int) float64) *Result {
	t.Helper()
	p := prepared(t, text)
	r := &Result{Plan: p}
	for i := range p.Points {
		r.Values = append(r.Values, make([][]float64, len(p.Metrics)))
		var x []float64
		for _, v := range p.Points[i].Values {
			x = append(x, numberOf(v))
		}
		for m := range p.Metrics {
			for s := range p.Seeds {
				r.Values[i][m] = append(r.Values[i][m], f(x, s))
			}
		}
	}
	r.effects()
	return r
}

const twoRanges = `experiment = "tiny.toml"
[design]
seeds = 3
kind = "KIND"
[[vary]]
set = "traffic.chat.rate"
from = "10/s"
to = "50/s"
STEPS
[[vary]]
set = "traffic.chat.prompt"
from = 100
to = 500
integer = true
STEPS
[[vary]]
set = "pool.main.replicas"
values = [1, 2]
[report]
metrics = ["ttft_p99"]
`

// On y = 3·rate + 0.1·prompt + seed, replicas without effect, the main effects of a
// grid are the slopes times the ranges, exact on every seed, and the variance parts as
// the squares of these do.
func TestMainEffectsOfALinearGrid(t *testing.T) {
	text := strings.NewReplacer("KIND", "grid", "STEPS", "steps = 5").Replace(twoRanges)
	r := made(t, text, func(x []float64, seed int) float64 { return 3*x[0] + .1*x[1] + float64(seed) })
	list := r.of(0)
	if list[0].Factor != 0 || list[1].Factor != 1 || list[2].Factor != 2 {
		t.Fatalf("order: %+v", list)
	}
	for i, want := range []float64{120, 40, 0} {
		e := list[i].Range
		if math.Abs(e.V-want) > 1e-9 || math.Abs(e.Hi-e.Lo) > 1e-6 || e.R != 3 {
			t.Errorf("factor %d: %+v, want %g", i, e, want)
		}
	}
	// Sums of squares: 90 % and 10 %, less what four degrees of freedom of the rest explain.
	if s := list[0].Share; math.Abs(s-.9) > .02 {
		t.Errorf("the rate explains %.3f", s)
	}
	if s := list[1].Share; math.Abs(s-.1) > .09 {
		t.Errorf("the prompt explains %.3f", s)
	}
	if list[2].Share != 0 {
		t.Errorf("replicas explain %.3f", list[2].Share)
	}
	if l := list[0].Levels; len(l) != 5 || l[0].Label != "10/s" || l[4].Label != "50/s" || l[0].N != 10 || math.Abs(l[2].Mean.V-(90+30+1)) > 1e-9 {
		t.Errorf("%+v", l)
	}
}

// On samples the ranges are parted into five, and the effects are close to the slope
// times four fifths of the range, the distance of the outer parts' means.
func TestMainEffectsOfSamples(t *testing.T) {
	// What the other settings leave in a group's mean, three deviations of it: little in a
	// Sobol' design, as by chance in a hypercube.
	for kind, slack := range map[string]float64{"sobol": 6, "latin-hypercube": 3 * 3 * 40 / math.Sqrt(12) * math.Sqrt(2./51)} {
		text := strings.NewReplacer(`"KIND"`, fmt.Sprintf("%q\nsamples = 256", kind), "STEPS", "").Replace(twoRanges)
		r := made(t, text, func(x []float64, seed int) float64 { return 3*x[0] + .1*x[1] })
		list := r.of(0)
		if list[0].Factor != 0 || len(list[0].Levels) != 5 || math.Abs(list[0].Range.V-.8*120) > slack || math.Abs(list[1].Range.V-.8*40) > slack {
			t.Errorf("%s: %+v", kind, list)
		}
		if math.Abs(list[0].Share-.9) > .06 || list[2].Share > .04 {
			t.Errorf("%s: shares %.3f %.3f %.3f", kind, list[0].Share, list[1].Share, list[2].Share)
		}
		if label := list[0].Levels[0].Label; !strings.HasPrefix(label, "10") || !strings.HasSuffix(label, "/s") {
			t.Error(label)
		}
	}
}

// A quantile among requests never answered has no place in a mean: its point is left
// out of the effects, and counted.
func TestPointsWithoutABoundAreLeftOutAndCounted(t *testing.T) {
	text := strings.NewReplacer("KIND", "grid", "STEPS", "steps = 3").Replace(twoRanges)
	r := made(t, text, func(x []float64, seed int) float64 {
		if x[0] == 50 && x[2] == 1 && seed == 1 {
			return math.Inf(1)
		}
		return x[0]
	})
	if e := r.of(0)[0]; e.Gaps != 3 || e.Range.V != 40 || e.Levels[2].N != 3 {
		t.Errorf("%+v", e)
	}
	var page bytes.Buffer
	r.Markdown(&page)
	for _, want := range []string{"never", "3 of 18 points have no finite value"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is missing:\n%s", want, page.String())
		}
	}
	data, err := r.JSON("", "")
	if err != nil || !bytes.Contains(data, []byte(`"never":true`)) {
		t.Errorf("%v\n%s", err, data)
	}
}

// The whole way: simulated once, the same bytes again from the store, and every row in
// Parquet as simulated.
func TestASweepIsRememberedAndWrittenWhole(t *testing.T) {
	p := prepared(t, grid)
	store := t.TempDir()
	var last progress.State
	o := Options{Store: store, Progress: func(s progress.State) { last = s }}
	first, err := Run(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if last.Done != 24 || last.Known != 0 || last.Requests == 0 {
		t.Errorf("%+v", last)
	}
	again, err := Run(context.Background(), p, o)
	if err != nil || last.Known != 24 || last.Requests != 0 {
		t.Fatalf("%+v, %v", last, err)
	}
	a, errA := first.Files("sim sweep s.toml", "1")
	b, errB := again.Files("sim sweep s.toml", "1")
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if !bytes.Equal(a[i].Data, b[i].Data) {
			t.Errorf("%s differs", a[i].Name)
		}
	}
	var doc struct {
		Points      []struct{ Values []string }
		Effects     []any
		Simulations int
	}
	if err := json.Unmarshal(a[1].Data, &doc); err != nil || len(doc.Points) != 12 || doc.Simulations != 24 || len(doc.Effects) != 3*len(p.Metrics) {
		t.Errorf("%v: %+v", err, doc)
	}
	checkParquet(t, first, a[3].Data)
	if bytes.Contains(a[0].Data, []byte("http://")) && bytes.Contains(a[0].Data, []byte("<script src")) {
		t.Error("the page loads something")
	}
}

func checkParquet(t *testing.T, r *Result, data []byte) {
	t.Helper()
	type row struct {
		Point    int32   `parquet:"point"`
		Seed     int64   `parquet:"seed"`
		Replicas float64 `parquet:"pool_main_replicas"`
		Rate     float64 `parquet:"traffic_chat_rate"`
		Prompt   string  `parquet:"traffic_chat_prompt"`
		TTFT     float64 `parquet:"ttft_p99_s"`
		Bad      float64 `parquet:"bad_share"`
		USD      float64 `parquet:"usd_per_hour"`
	}
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	about, ok := file.Lookup("sim.columns")
	if !ok || !strings.Contains(about, `{"name":"traffic_chat_rate","set":"traffic.chat.rate","unit":"/s"}`) {
		t.Errorf("metadata: %s", about)
	}
	reader := parquet.NewGenericReader[row](file)
	rows := make([]row, reader.NumRows())
	if n, err := reader.Read(rows); n != 24 || err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(n, err)
	}
	last := rows[23]
	if last.Point != 12 || last.Seed != int64(r.Plan.Seeds[1]) || last.Replicas != 2 || last.Rate != 40 || last.Prompt != "long" || last.TTFT != r.Values[11][0][1] || last.USD != 6 {
		t.Errorf("%+v", last)
	}
}

// An interrupted sweep leaves whole results; the next run begins there.
func TestAnInterruptionLosesOnlyWhatWasRunning(t *testing.T) {
	p := prepared(t, grid)
	store := t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	_, err := Run(ctx, p, Options{Store: store, Progress: func(s progress.State) {
		if s.Done == 5 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	stored, err := filepath.Glob(filepath.Join(store, "*.result"))
	if err != nil || len(stored) < 5 || len(stored) == 24 {
		t.Fatalf("%d results, %v", len(stored), err)
	}
	var last progress.State
	if _, err := Run(context.Background(), p, Options{Store: store, Progress: func(s progress.State) { last = s }}); err != nil || last.Known != len(stored) || last.Done != 24 {
		t.Errorf("%d stored, %+v, %v", len(stored), last, err)
	}
}

// Every metric has a value, or a reason for none, on an experiment that has everything.
func TestMetricsAreDefined(t *testing.T) {
	text := strings.Replace(grid, "seeds = 2", "seeds = 1", 1)
	var all []string
	for _, name := range metricNames() {
		all = append(all, fmt.Sprintf("%q", name))
	}
	p := prepared(t, text+"[report]\nmetrics = ["+strings.Join(all, ", ")+"]\n")
	r, err := Run(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for m := range p.Metrics {
		v := r.Values[0][m][0]
		if math.IsNaN(v) || v < 0 {
			if !slices.Contains([]string{"temp_max", "power", "clock", "energy"}, p.Metrics[m].Name) { // heat is off
				t.Errorf("%s is %g", p.Metrics[m].Name, v)
			}
		}
		if p.Metrics[m].Show(v) == "" || p.Metrics[m].Title == "" {
			t.Errorf("%s has no name or value", p.Metrics[m].Name)
		}
	}
	share := func(name string) float64 {
		m := slices.IndexFunc(p.Metrics, func(m Metric) bool { return m.Name == name })
		return r.Values[0][m][0]
	}
	if share("ok_share") != 1 || share("gpus") != 1 || share("usd_per_hour") != 3 {
		t.Errorf("ok %g, GPUs %g, $%g an hour", share("ok_share"), share("gpus"), share("usd_per_hour"))
	}
}

// Metrics name what they are of when there are several.
func TestMetricsNameTheirClass(t *testing.T) {
	f := &File{Metrics: []string{"ttft_p99:batch jobs", "usd_per_hour"}, Path: "s.toml"}
	e := sim.Experiment{}
	e.Traffic = []workloads.Class{{Name: "chat"}, {Name: "batch jobs"}}
	list, err := f.metrics(&e)
	if err != nil || list[0].Column != "ttft_p99_s_batch_jobs" || list[0].Title != "TTFT P99, batch jobs" || list[1].Column != "usd_per_hour" {
		t.Errorf("%+v, %v", list, err)
	}
	f.Metrics = []string{"ttft_p99:nobody"}
	if _, err := f.metrics(&e); err == nil || !strings.Contains(err.Error(), "chat, batch jobs") {
		t.Error(err)
	}
	for _, metrics := range [][]string{{"ttft_p99:chat", "usd_per_hour", "ttft_p99:chat"}, {"ttft_p99", "ttft_p99: chat"}} {
		f.Metrics = metrics
		if _, err := f.metrics(&e); err == nil || !strings.Contains(err.Error(), "twice") {
			t.Error(metrics, err)
		}
	}
	e.Traffic = []workloads.Class{{Name: "a b"}, {Name: "a-b"}}
	f.Metrics = []string{"ttft_p99:a b", "ttft_p99:a-b"}
	if list, err := f.metrics(&e); err != nil || list[0].Column == list[1].Column {
		t.Errorf("two classes in one column: %+v, %v", list, err)
	}
	f.Metrics = []string{"bad_share"}
	if _, err := f.metrics(&e); err == nil || !strings.Contains(err.Error(), "no slo") {
		t.Error(err)
	}
}

// The shipped sweep is valid, point by point.
func TestTheShippedSweepIsValid(t *testing.T) {
	f, err := Load("sweep")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(f)
	if err != nil {
		t.Fatal(err)
	}
	if f.Kind != Grid || len(p.Points) < 12 || len(p.Metrics) < 3 {
		t.Errorf("%+v", f)
	}
	if _, err := Load("nowhere.toml"); err == nil || !strings.Contains(err.Error(), "there is no such file") {
		t.Error(err)
	}
}

// What the README says of the shipped sweep: a batch limit of 48 ruins P99 in one corner
// and does nothing elsewhere.
func TestTheShippedSweepShowsACorner(t *testing.T) {
	f, err := Load("sweep")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(f)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"2", "13/s", "48"}, {"2", "13/s", "256"}, {"4", "13/s", "48"}, {"4", "13/s", "256"}}
	p.Points = slices.DeleteFunc(p.Points, func(x Point) bool {
		return !slices.ContainsFunc(want, func(v []string) bool { return slices.Equal(v, x.Values) })
	})
	r, err := Run(context.Background(), p, Options{})
	if err != nil || len(p.Points) != 4 {
		t.Fatal(len(p.Points), err)
	}
	var p99 []float64
	for i := range p.Points {
		p99 = append(p99, r.Estimate(i, 0).V)
	}
	if !(p99[0] > 5 && p99[1] < 1 && p99[2] == p99[3]) {
		t.Errorf("TTFT P99 %v", p99)
	}
}

// The guide's sweep is one.
func TestTheGuidesSweepIsValid(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```toml sweep\n")
	if !ok {
		t.Fatal("no sweep is shown")
	}
	block, _, _ = strings.Cut(block, "```")
	f, err := Parse("guide.toml", ".", block)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := Prepare(f); err != nil || len(p.Points) != 64 {
		t.Error(err)
	}
	for key := range schema { // and it says what every key is
		for _, k := range schema[key] {
			if k != "title" && k != "design" && k != "vary" && k != "report" && !strings.Contains(string(text), "`"+strings.TrimPrefix(key+"."+k, ".")) && k != "to" && k != "labels" {
				t.Errorf("the guide does not tell of %s", strings.TrimPrefix(key+"."+k, "."))
			}
		}
	}
}

func TestUnnumberedValuesAreText(t *testing.T) {
	for want, f := range map[bool]design.Factor{true: {Values: []string{"1/s", "2/s"}}, false: {Values: []string{"h100", "2/s"}}} {
		if _, ok := f.Numeric(); ok != want {
			t.Errorf("%v: %v", f.Values, ok)
		}
	}
}
