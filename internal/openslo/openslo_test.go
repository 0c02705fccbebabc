package openslo_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"slosim/experiments"
	"slosim/internal/openslo"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// every is an objective of each kind, with everything that can be said of one.
func every() []openslo.SLO {
	base := slo.Objective{Class: "Chat users", Target: .999, Window: 30 * clock.Day}
	var out []openslo.SLO
	for _, m := range slo.Metrics {
		o := base
		o.Name, o.Metric = string(m)+" of chat", m
		switch m {
		case slo.Goodput:
			o.All = slo.Limits{TTFT: 2 * clock.Second, TPOT: 50 * clock.Millisecond}
		case slo.Availability:
		default:
			o.Threshold = 1500 * clock.Millisecond
		}
		out = append(out, openslo.SLO{Objective: o, Method: openslo.Occurrences})
	}
	full := base
	full.Name, full.Metric, full.Threshold = "full", slo.TTFT, 2*clock.Second
	full.Exclude, full.Skip, full.Spent, full.Rolling = []string{"feature", "other"}, []string{"rejected", "timeout"}, .25, true
	full.MinPrompt, full.MaxPrompt, full.MinEvents = 1000, 8000, 50
	full.Policy = slo.Policy{Warn: 40, Freeze: 75, Stop: 95}
	full.Alerts = []slo.Pair{{Long: 2 * clock.Hour, Short: 10 * clock.Minute, Factor: 10, Severity: "page"}, {Long: clock.Day, Short: clock.Hour, Factor: 2.5, Severity: "ticket"}}
	full.Adaptive = &slo.Adaptive{By: "feedback", Min: clock.Second, Max: 3 * clock.Second, Every: clock.Hour, Notice: 10 * clock.Minute, Step: .1, Low: .02, High: .1, Bearable: 2 * clock.Second, Voices: .05}
	slices := base
	slices.Name, slices.Metric, slices.Threshold = "slices", slo.E2E, 30*clock.Second
	return append(out, openslo.SLO{Objective: full, Method: openslo.Occurrences},
		openslo.SLO{Objective: slices, Method: openslo.Timeslices, SliceTarget: .95, SliceWindow: 5 * clock.Minute, Threshold: true})
}

// What is written comes back as it was, and writing it again gives the same bytes.
func TestDocumentsSurviveWriteReadWrite(t *testing.T) {
	want := every()
	var first, second bytes.Buffer
	if err := openslo.Write(&first, want, `model_name="chat"`); err != nil {
		t.Fatal(err)
	}
	got, _, err := openslo.Read(bytes.NewReader(first.Bytes()), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s: got\n%+v, want\n%+v", want[i].Name, got[min(i, len(got)-1)], want[i])
		}
	}
	if err := openslo.Write(&second, got, `model_name="chat"`); err != nil || first.String() != second.String() {
		t.Fatalf("%v: the second writing differs", err)
	}
}

// foreign is a document of another tool: references, percent, no annotations.
const foreign = `apiVersion: openslo/v1
kind: Service
metadata: {name: chat}
spec: {}
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: ttft}
spec:
  ratioMetric:
    counter: true
    good: {metricSource: {type: Prometheus, spec: {query: 'sum(rate(vllm:time_to_first_token_seconds_bucket{le="2.5"}[5m]))'}}}
    total: {metricSource: {type: Prometheus, spec: {query: 'sum(rate(vllm:time_to_first_token_seconds_count[5m]))'}}}
---
apiVersion: openslo/v1
kind: AlertCondition
metadata: {name: fast}
spec:
  severity: page
  condition: {kind: burnrate, op: gte, threshold: 14.4, lookbackWindow: 1h, alertAfter: 5m}
---
apiVersion: openslo/v1
kind: AlertPolicy
metadata: {name: fast}
spec:
  conditions: [{conditionRef: fast}]
  notificationTargets: []
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: chat-ttft}
spec:
  service: chat
  indicatorRef: ttft
  timeWindow: [{duration: 4w, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{targetPercent: 99.5}]
  alertPolicies: [{alertPolicyRef: fast}]
`

func TestDocumentsOfOthersAreUnderstood(t *testing.T) {
	got, notes, err := openslo.Read(strings.NewReader(foreign), "x.yaml")
	if err != nil || len(notes) > 0 || len(got) != 1 {
		t.Fatal(got, notes, err)
	}
	want := slo.Objective{Name: "chat-ttft", Class: "chat", Metric: slo.TTFT, Threshold: 2500 * clock.Millisecond, Target: .995, Window: 28 * clock.Day, Rolling: true,
		Alerts: []slo.Pair{{Long: clock.Hour, Short: 5 * clock.Minute, Factor: 14.4, Severity: "page"}}}
	if !reflect.DeepEqual(got[0].Objective, want) {
		t.Fatalf("%+v", got[0].Objective)
	}
}

// The tables made of documents load as the objectives that they were made of.
func TestTablesLoadAsTheObjectives(t *testing.T) {
	want := every()
	for i := range want {
		want[i].Class = "chat"
	}
	file := filepath.Join(t.TempDir(), "x.toml")
	text := "duration = \"2h\"\n[[pool]]\nname = \"main\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100-sxm-80gb\"\n[[traffic]]\nclass = \"chat\"\nrate = \"2/s\"\nprompt = 500\noutput = 100\n" +
		"[[change]]\nname = \"feature\"\nclass = \"chat\"\nat = \"1h\"\nshare = \"30%\"\nprompt = 900\n[[change]]\nname = \"other\"\nclass = \"chat\"\nat = \"90m\"\nshare = \"30%\"\nprompt = 900\n" + openslo.TOML(want)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	e, _, err := experiments.Load(file)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for i, o := range e.SLOs {
		if !reflect.DeepEqual(o, want[i].Objective) {
			t.Errorf("got\n%+v, want\n%+v", o, want[i].Objective)
		}
	}
}

// Every fault is reported, with its place.
func TestFaultsAreReportedTogether(t *testing.T) {
	bad := strings.NewReplacer("4w", "4 weeks", "99.5", "99.5e9", "indicatorRef: ttft", "indicatorRef: tpot", "alertPolicyRef: fast", "alertPolicyRef: slow").Replace(foreign)
	_, _, err := openslo.Read(strings.NewReader(bad), "x.yaml")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"x.yaml:29", `"4 weeks"`, "target", `indicatorRef "tpot"`, `alertPolicyRef "slow"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	for _, text := range []string{"a: [", "apiVersion: openslo/v2\nkind: SLO\n", "", "kind: [1]\n"} {
		if _, _, err := openslo.Read(strings.NewReader(text), "x.yaml"); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
