package traffic

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slosim/experiments"
	"slosim/sim/clock"
	"slosim/workloads"
)

// shared returns a public trace that is not part of the repository.
func shared(t *testing.T, name string) workloads.Trace {
	t.Helper()
	spec := workloads.Trace{File: filepath.Join("..", "..", "..", "shared", "data", "traces", name)}
	if _, err := os.Stat(spec.File); err != nil {
		t.Skip("needs the public traces in ../shared/data, which are not part of the repository")
	}
	var err error
	if spec.Format, err = workloads.DetectFormat(spec.File); err != nil {
		t.Fatal(err)
	}
	spec.SetDefaults()
	return spec
}

const around = `
duration = "3500s"
warmup = "0s"
[[pool]]
name = "main"
model = "llama-3.1-8b"
gpu = "h100"
`

// The fit of the Azure conversation trace loads as written, and what it sends has
// the trace's rate, its gap CV of 1.09 and its prompt P50, P95 and P99 (1,020,
// 4,083 and 4,142 tokens) within 5 %.
func TestAzureFitMatches(t *testing.T) {
	spec := shared(t, "AzureLLMInferenceTrace_conv.csv")
	a, _, err := Trace(spec)
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]float64{"CV of the gaps": 1.09, "prompt P50": 1020, "prompt P95": 4083, "prompt P99": 4142}
	for _, c := range figures(a) {
		if want := published[c.What]; want > 0 && math.Abs(c.Fitted/want-1) > 0.005 {
			t.Errorf("the trace's %s is %g, published %g", c.What, c.Fitted, want)
		}
	}
	fit, err := NewFit(spec, a)
	if err != nil {
		t.Fatal(err)
	}
	list, err := fit.Goodness(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		strict := published[c.What] > 0 || c.What == "requests per second" || strings.HasPrefix(c.What, "output")
		if strict && math.Abs(c.Error()) > 0.05 {
			t.Errorf("%s: %.4g fitted, the trace has %.4g", c.What, c.Fitted, c.Trace)
		}
		if strings.HasPrefix(c.What, "χ²") && (c.Fitted < 0.5 || c.Fitted > 1.5) {
			t.Errorf("%s: %.2f", c.What, c.Fitted)
		}
	}

	path := filepath.Join(t.TempDir(), "fit.toml")
	if err := os.WriteFile(path, []byte(around+fit.TOML()), 0o644); err != nil {
		t.Fatal(err)
	}
	e, _, err := experiments.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPreview(e)
	if err != nil {
		t.Fatal(err)
	}
	got := p.Classes[0].A
	if r := float64(got.Rows) / 3500; math.Abs(r/a.Rate()-1) > 0.05 || math.Abs(got.GapCV()/1.094-1) > 0.05 || math.Abs(got.Prompt.Quantile(.5)/1020-1) > 0.05 {
		t.Errorf("as loaded: %.2f/s, CV %.3f, prompt P50 %.0f", r, got.GapCV(), got.Prompt.Quantile(.5))
	}
}

// What is said of a stream is what it was made of: rates, gap CV, dispersion,
// correlation, within sampling error.
func TestAnalysisFindsWhatWasPutIn(t *testing.T) {
	c := workloads.Class{Name: "x", Stream: "x", Correlation: 0.4, Rate: workloads.Rate{Mean: 20, Shape: "constant", Burstiness: 0.5},
		Prompt: workloads.LogNormal(.5, 1000, .99, 9000), Output: workloads.Dist{Kind: "exponential", Mean: 300}}
	const span = 4 * clock.Hour
	a := NewAnalysis(span, 20*4*3600)
	var ranked int
	err := Draw(&c, nil, 0, 11, 0, clock.Time(span), func(at clock.Time, r *workloads.Request) {
		a.Add(clock.Duration(at), r.Prompt, r.Output, nil)
		ranked++
	})
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want, tolerance float64) {
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s: %.4g, want %.4g ± %.2g", what, got, want, tolerance)
		}
	}
	n := math.Sqrt(float64(a.Rows))
	near("rate", a.Rate(), 20, 4*20*math.Sqrt(2)/n)
	near("gap CV", a.GapCV(), math.Sqrt2, 0.03)
	near("rank correlation", a.Correlation(), 0.4, 4/math.Sqrt(sampleSize))
	near("prompt P50", a.Prompt.Quantile(.5), 1000, 25)
	near("prompt P99", a.Prompt.Quantile(.99), 9000, 350)
	w, d := a.Dispersion()
	for i := range w { // counts of a renewal process over long windows have CV² of the gaps
		if w[i] >= 10*clock.Second && w[i] <= clock.Minute {
			near("dispersion", d[i], 2, 0.35)
		}
	}
	sum := 0.0
	for _, x := range a.Windows {
		sum += x.N
	}
	if int64(sum) != a.Rows || ranked != int(a.Rows) {
		t.Errorf("%v requests in windows of %d", sum, a.Rows)
	}
}

// The Mooncake trace's prefix reuse is the published 0.366 of the blocks.
func TestMooncakeReuse(t *testing.T) {
	a, _, err := Trace(shared(t, "mooncake_conversation_trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if rate := a.Reuse.BlockHitRate(); math.Abs(rate-0.366) > 0.0005 || a.Rows != 12031 {
		t.Errorf("%.4f of the blocks in %d requests", rate, a.Rows)
	}
}

// Little's law on an empty pool gives the time of a lone request; at a rate that
// no replica can serve it says so, and load never shortens a request.
func TestConcurrencyKnowsItsLimits(t *testing.T) {
	load := func(rate string) Concurrency {
		path := filepath.Join(t.TempDir(), "x.toml")
		text := around + "[[traffic]]\nclass = \"a\"\nrate = \"" + rate + "\"\nprompt = 1000\noutput = 200\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		e, _, err := experiments.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPreview(e)
		if err != nil {
			t.Fatal(err)
		}
		return p.Loads[0]
	}
	idle, busy, over := load("0.01/s"), load("10/s"), load("200/s")
	if idle.Full || idle.E2E < 0.8 || idle.E2E > 2.5 || math.Abs(idle.InFlight-idle.Rate*idle.E2E) > 1e-9 {
		t.Errorf("idle: %+v", idle)
	}
	if busy.Full || busy.E2E <= idle.E2E || math.Abs(busy.InFlight/(busy.Rate*busy.E2E)-1) > 0.03 {
		t.Errorf("busy: %+v", busy)
	}
	if !over.Full {
		t.Errorf("overload: %+v", over)
	}
}

// Pages are whole: no reference to anything outside, and every chart has data.
func TestPagesStandAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte("arrival,prompt,output\n0,10,1\n1,20,2\n5,3000,3\n5,10,400\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := workloads.Trace{File: path, Format: "csv"}
	spec.SetDefaults()
	a, about, err := Trace(spec)
	if err != nil {
		t.Fatal(err)
	}
	v := View{Spec: spec, About: about, A: a}
	fit, err := NewFit(spec, a)
	if err != nil {
		t.Fatal(err)
	}
	if v.Fit, err = fit.Goodness(a); err != nil {
		t.Fatal(err)
	}
	page, err := v.Document("sim trace t.csv").HTML()
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(page), "<noscript>") // ECharts comes after it
	if strings.Count(text, `class="chart-data"`) < 4 || strings.Contains(text, `src="http`) || strings.Contains(text, "NaN") {
		i := strings.Index(text, "NaN")
		t.Errorf("%d charts; %s", strings.Count(text, `class="chart-data"`), text[max(0, i-200):i+3])
	}
}
