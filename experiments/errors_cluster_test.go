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
	someGPU = "gpu = \"h100-sxm-80gb\""
	small   = "\n[[pool]]\nname = \"small\"\nmodel = \"qwen3-8b\"\ngpu = \"h100-sxm-80gb\"\n"
	someSLO = "objective = \"99%\""
)

// clusterBreaks are the ways to break what is said about the cluster: text to
// replace in the base, and tables to add.
var clusterBreaks = []struct{ what, old, new, more string }{
	{"an unknown router", someGPU, someGPU + "\nrouter = \"fastest\"", ""},
	{"stale metrics that nobody reads", someGPU, someGPU + "\nstale = \"1s\"", ""},
	{"a range upside down", someGPU, someGPU + "\nmin_prompt = 8000\nmax_prompt = 4000", ""},
	{"a pool that no class can reach", someGPU, someGPU + "\nmax_prompt = 8000", small + "max_prompt = 4000\n"},
	{"a pool that ranges leave nothing to", someGPU, someGPU, small + "max_prompt = 4000\n[[pool]]\nname = \"long\"\nmin_prompt = 4000\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\n"},
	{"a standby pool that nothing sends to", someGPU, someGPU, small + "standby = true\n"},
	{"a standby pool with classes and a range", someGPU, someGPU + "\noverflow = { to = \"small\", at = 20 }", small + "standby = true\nclasses = [\"chat\"]\nmax_prompt = 100\n"},
	{"an overflow loop", someGPU, someGPU + "\noverflow = { to = \"small\", at = 20 }", small + "standby = true\noverflow = { to = \"main\", at = 20 }\n"},
	{"an overflow to nowhere", someGPU, someGPU + "\noverflow = { to = \"smal\", at = 20 }", small + "standby = true\n"},
	{"a gate with words for numbers", someGPU, someGPU + "\ngate = { in_flight = \"many\", order = \"lifo\" }", ""},
	{"min above max", someGPU, someGPU + "\nautoscale = { target = 40, min = 4, max = 2 }", ""},
	{"a start outside of min and max", someGPU, someGPU + "\nautoscale = { target = 40, min = 2, max = 8 }", ""},
	{"an autoscaler without a target", someGPU, someGPU + "\nautoscale = { max = 8 }", ""},
	{"a share of KV above 1", someGPU, someGPU + "\nautoscale = { metric = \"kv\", target = 90, max = 8 }", ""},
	{"an autoscaler on a TTFT that nobody promised", "metric = \"ttft\"", "metric = \"tpot\"", "\n[[pool]]\nname = \"b\"\nmodel = \"qwen3-8b\"\ngpu = \"h100\"\nmin_prompt = 400\nautoscale = { metric = \"ttft\", target = 0.8, max = 8 }\n"},
	{"two sizes at one time", someGPU, someGPU + "\nautoscale = { metric = \"schedule\", max = 8, schedule = [{ at = \"08:00\", replicas = 4 }, { at = \"08:00\", replicas = 6 }] }", ""},
	{"a rule about nobody", someSLO, someSLO, "\n[[rule]]\nname = \"r\"\nsignal = \"kv\"\nabove = 0.5\naction = \"shed\"\nclasses = []\n"},
	{"a schedule without sizes", someGPU, someGPU + "\nautoscale = { metric = \"schedule\", target = 4, max = 8 }", ""},
	{"a start-up and its parts", someGPU, someGPU + "\nautoscale = { target = 40, max = 8, start_up = \"103s\", image = \"10s\" }", ""},
	{"wear that never lets anything run", someGPU, someGPU + "\nwear = { mtbf = \"0s\" }", ""},
	{"a limit below one request", someRate, someRate + "\nlimit = { requests = \"0.5/s\", burst = \"1s\" }", ""},
	{"a limit that rejects every prompt", someRate, someRate + "\nlimit = { max_prompt = 400 }", ""},
	{"an unknown pool in a fault", someSLO, someSLO, "\n[[fault]]\nname = \"f\"\npool = \"mian\"\nat = \"1h\"\n"},
	{"more replicas down than there are", someSLO, someSLO, "\n[[fault]]\nname = \"f\"\nreplicas = 3\n"},
	{"a zone that the pool does not have", someSLO, someSLO, "\n[[fault]]\nname = \"f\"\nzone = 2\nreplicas = 1\n"},
	{"a slow replica that nobody reaches", someSLO, someSLO, "\n[[fault]]\nname = \"f\"\nslow = 2\ncut = true\n"},
	{"a slow replica that is fast", someSLO, someSLO, "\n[[fault]]\nname = \"f\"\nslow = 0.5\n"},
	{"a rollout without a time", someSLO, someSLO, "\n[[rollout]]\nname = \"r\"\n"},
	{"a rule that never begins", someSLO, someSLO, "\n[[rule]]\nname = \"r\"\nsignal = \"burn\"\nslo = \"chat TTFT\"\nabove = 100\naction = \"shed\"\nclasses = [\"chat\"]\n"},
	{"a rule that ends where it begins", someSLO, someSLO, "\n[[rule]]\nname = \"r\"\nsignal = \"kv\"\nabove = 0.5\nbelow = 0.9\naction = \"shed\"\nclasses = [\"chat\"]\n"},
	{"a rule on an unknown SLO and class", someSLO, someSLO, "\n[[rule]]\nname = \"r\"\nsignal = \"misses\"\nslo = \"chat TTTF\"\nabove = 0.1\naction = \"cap\"\nclasses = [\"chta\"]\n"},
	{"a rule with the keys of another", someSLO, someSLO, "\n[[rule]]\nname = \"r\"\nsignal = \"queue\"\nslo = \"chat TTFT\"\nabove = 10\naction = \"shed\"\nto = \"small\"\nclasses = [\"chat\"]\n"},
	{"a hot aisle larger than the pool", someGPU, someGPU + "\nthermal = { hot_aisle = { replicas = 2, warmer = 10 } }", ""},
	{"a rack that cannot idle", someGPU, someGPU + "\nthermal = { rack = { power = 50 } }", ""},
	{"a warmest hour of a flat day", someGPU, someGPU + "\nthermal = { hottest = \"14:00\" }", ""},
}

// TestBadClusters shows every error about the cluster as a person sees it.
func TestBadClusters(t *testing.T) {
	defer os.Remove("testdata/cluster-case.toml")
	var b strings.Builder
	for _, c := range clusterBreaks {
		if !strings.Contains(base, c.old) {
			t.Errorf("%s: nothing to replace", c.what)
		}
		if err := os.WriteFile("testdata/cluster-case.toml", []byte(strings.Replace(base, c.old, c.new, 1)+c.more), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load("testdata/cluster-case.toml")
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.what)
			continue
		case !config.IsInput(err):
			t.Errorf("%s: %v is no error of the input", c.what, err)
		}
		fmt.Fprintf(&b, "### %s\n%s\n\n", c.what, err)
	}
	golden(t, filepath.Join("testdata", "errors-cluster.txt"), b.String())
}
