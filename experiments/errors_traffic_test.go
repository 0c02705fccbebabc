package experiments

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slosim/internal/config"
)

const (
	someRate    = `rate = "2/s"`
	somePrompt  = `prompt = 500`
	someShare   = "ramp = \"10m\"\nshare = \"30%\""
	someTraffic = "rate = \"2/s\"\nprompt = 500\noutput = { dist = \"exponential\", mean = 100 }"
)

// trafficBreaks are the ways to break what is said about traffic.
var trafficBreaks = []struct{ what, old, new string }{
	{"hours of half a day", someRate, `rate = { mean = "2/s", shape = "hourly", hours = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] }`},
	{"hours without hourly", someRate, `rate = { mean = "2/s", hours = [1, 2] }`},
	{"a week of zeros", someRate, `rate = { mean = "2/s", weekdays = [0, 0, 0, 0, 0, 0, 0] }`},
	{"windows that do not rise", someRate, `rate = { shape = "windows", windows = [["0s", "1/s"], ["0s", "2/s"]] }`},
	{"windows that begin later", someRate, `rate = { shape = "windows", windows = [["5m", "1/s"]] }`},
	{"windows without a rate", someRate, `rate = { shape = "windows", windows = [["0s", "0/s"], ["5m", "0/s"]] }`},
	{"windows from nowhere", someRate, `rate = { shape = "windows", windows = "nowhere.csv" }`},
	{"windows from another file", someRate, `rate = { shape = "windows", windows = "trace.csv" }`},
	{"a ladder without steps", someRate, `rate = { mean = "2/s", ladder = { step = "1/s", every = "2m" } }`},
	{"one regime", someRate, `rate = { mean = "2/s", regimes = [{ factor = 2, length = "5m" }] }`},
	{"regimes that flicker", someRate, `rate = { mean = "2/s", regimes = [{ factor = 2, length = "1s" }, { factor = 1, length = "1s" }] }`},
	{"a critical Hawkes process", someRate, `rate = { mean = "2/s", hawkes = { branching = 1, decay = "5s" } }`},
	{"two processes", someRate, `rate = { mean = "2/s", burstiness = 0.5, hawkes = { branching = 0.5, decay = "5s" } }`},
	{"vllm bench on a curve", someRate, `rate = { mean = "2/s", shape = "diurnal", peak = "14:00", peak_to_trough = 2, arrivals = "vllm-bench" }`},
	{"a process of an added rate", someRate, `rate = { mean = "2/s", add = [{ mean = "1/s", burstiness = 0.5 }] }`},
	{"too many parameters", somePrompt, `prompt = { dist = "lognormal", mean = 500, p50 = 300, p99 = 2000 }`},
	{"too few parameters", somePrompt, `prompt = { dist = "lognormal", p50 = 300 }`},
	{"percentiles upside down", somePrompt, `prompt = { dist = "lognormal", p50 = 3000, p99 = 2000 }`},
	{"a median above the mean", somePrompt, `prompt = { dist = "lognormal", mean = 300, p50 = 3000 }`},
	{"a normal without deviation", somePrompt, `prompt = { dist = "normal", mean = 300 }`},
	{"a tail that is too heavy", somePrompt, `prompt = { dist = "exponential", mean = 300, tail = { from = "99%", alpha = 0.9 } }`},
	{"a mixture of nothing", somePrompt, `prompt = { dist = "mixture" }`},
	{"a mixture of more than all", somePrompt, `prompt = { dist = "mixture", parts = [{ share = "70%", dist = "fixed", mean = 3 }, { share = "70%", dist = "fixed", mean = 9 }] }`},
	{"a mixture of mixtures", somePrompt, `prompt = { dist = "mixture", parts = [{ share = "100%", dist = "mixture" }] }`},
	{"a histogram from nowhere", somePrompt, `prompt = { dist = "histogram", file = "nowhere.csv" }`},
	{"a histogram of text", somePrompt, `prompt = { dist = "histogram", file = "broken.csv" }`},
	{"a perfect correlation", somePrompt, "prompt = 500\ncorrelation = 1"},
	{"a canary that falls", someShare, `canary = ["10%", "5%"]` + "\nevery = \"5m\""},
	{"a canary beside a share", someShare, someShare + "\ncanary = [\"1%\", \"5%\"]\nevery = \"5m\""},
	{"a canary without a pace", someShare, `canary = ["1%", "10%"]`},
	{"a pace without a canary", someShare, someShare + "\nevery = \"5m\""},
	{"a roll-back before the change", someShare, someShare + "\nrollback = \"30m\""},
	{"a roll-back after the end", someShare, someShare + "\nrollback = \"3h\""},
	{"a trace in an unknown format", someTraffic, `trace = { file = "trace.csv", format = "azur" }`},
	{"a trace that nobody recognises", someTraffic, `trace = "notes.txt"`},
	{"a trace with columns of its own", someTraffic, `trace = { file = "azure.csv", arrival = "ts", unit = "1ms", block = 16 }`},
	{"a class of a trace without columns", someTraffic, `trace = { file = "requests.jsonl", where = { column = "model", is = "a" } }`},
	{"a class that the trace does not have", someTraffic, `trace = { file = "trace.csv", arrival = "ts", prompt = "in", output = "out", where = { column = "model", is = "a" } }`},
	{"a trace that is played backwards", someTraffic, `trace = { file = "azure.csv", speed = -1, rate = 0 }`},
}

// TestBadTraffic shows every error about traffic as a person sees it.
func TestBadTraffic(t *testing.T) {
	for name, text := range map[string]string{
		"case.toml": base, "notes.txt": "remember the milk\n",
		"requests.jsonl": `{"timestamp": 0, "input_length": 100, "output_length": 9, "hash_ids": [1]}`,
	} {
		if err := os.WriteFile(filepath.Join("testdata", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(filepath.Join("testdata", name))
	}
	var b strings.Builder
	for _, c := range trafficBreaks {
		if !strings.Contains(base, c.old) {
			t.Errorf("%s: nothing to replace", c.what)
		}
		if err := os.WriteFile("testdata/case.toml", []byte(strings.Replace(base, c.old, c.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load("testdata/case.toml")
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.what)
			continue
		case !config.IsInput(err):
			t.Errorf("%s: %v is no error of the input", c.what, err)
		}
		fmt.Fprintf(&b, "### %s\n%s\n\n", c.what, err)
	}
	golden(t, filepath.Join("testdata", "errors-traffic.txt"), b.String())
}
