package promrules

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slosim/sim/clock"
	"slosim/sim/slo"
)

func watched() []Watched {
	var out []Watched
	for _, m := range slo.Metrics {
		o := slo.Objective{Name: string(m) + " of \"chat\"", Class: "chat", Metric: m, Target: .99, Window: 30 * clock.Day}
		if m != slo.Availability && m != slo.Goodput {
			o.Threshold = 2 * clock.Second
		}
		out = append(out, Watched{Objective: o})
	}
	low := out[4]
	low.Name, low.Threshold = "low", 100*clock.Millisecond
	out[0].BreakLength, out[0].Why = 13_000, "even an idle replica is too slow for them"
	out[1].Alerts = []slo.Pair{{Long: 2 * clock.Hour, Short: 10 * clock.Minute, Factor: 10, Severity: "page"}}
	out[1].MinEvents = 100
	banded := out[0]
	banded.Name, banded.MinPrompt = "long", 4000
	return append(out, banded, low)
}

// promtool itself accepts the rules: the Debian package prometheus has it.
func TestPromtoolAcceptsTheRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("SIM_REQUIRE_PROMTOOL") != "" {
			t.Fatal("promtool is not installed (Debian package prometheus)")
		}
		t.Skip("promtool is not installed (Debian package prometheus)")
	}
	for _, selector := range []string{"", `model_name="chat",namespace="a"`} {
		rules, notes := Of("x", selector, watched())
		var text bytes.Buffer
		if err := rules.Write(&text, notes); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "rules.yml")
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(promtool, "check", "rules", "--lint-fatal", file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, text.String())
		}
	}
}

// A threshold between two buckets is interpolated, one on a bucket is exact.
func TestThresholdsMeetTheBuckets(t *testing.T) {
	h, _ := HistogramOf(slo.TTFT)
	good, note := h.Good(2.5, "", "5m")
	if good != `sum(rate(vllm:time_to_first_token_seconds_bucket{le="2.5"}[5m]))` || note != "" {
		t.Fatal(good, note)
	}
	good, note = h.Good(2, "", "5m")
	want := `(0.333333 * sum(rate(vllm:time_to_first_token_seconds_bucket{le="1.0"}[5m])) + 0.666667 * sum(rate(vllm:time_to_first_token_seconds_bucket{le="2.5"}[5m])))`
	if good != want || !strings.Contains(note, "between 1 and 2.5") {
		t.Fatal(good, note)
	}
}

// What vLLM's metrics cannot show is named, not left out in silence; the alarm on
// lengths stands at the bucket below the length that breaks the objective.
func TestRulesSayWhatTheyCannotDo(t *testing.T) {
	rules, notes := Of("x", "", watched())
	text := strings.Join(notes, "\n")
	for _, want := range []string{"goodput of", "long: not exported", "low: not exported", "no bucket"} {
		if !strings.Contains(text, want) {
			t.Errorf("no note on %q in\n%s", want, text)
		}
	}
	last := rules.Groups[len(rules.Groups)-1]
	if last.Name != "prompt-length-drift" || !strings.Contains(last.Rules[0].Expr, `le="10000.0"`) {
		t.Fatalf("%+v", last)
	}
	if a := rules.Groups[3].Rules[0]; !strings.Contains(a.Expr, "ratio_rate2h") || !strings.Contains(a.Expr, ">= 0.1 and") || !strings.Contains(a.Expr, ">= 100") {
		t.Fatalf("own pair: %s", a.Expr)
	}
}
