package experiments

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// enough is traffic and time for every phase.
var enough = []string{"traffic.chat.rate=20/s", "duration=48h"}

// suspects are valid experiments that are likely not meant so: changes to base.
var suspects = []struct {
	what     string
	old, new string
	sets     []string
	more     string // tables to add
}{
	{what: "nothing wrong", sets: []string{"traffic.chat.rate=20/s", "duration=48h"}},
	{what: "few requests in several phases", sets: []string{"traffic.chat.rate=10/min"}},
	{what: "part of a day, and no whole day after the change", sets: []string{`traffic.chat.rate={ mean = "20/s", shape = "diurnal", peak = "14:00", peak_to_trough = 3 }`}},
	{what: "a day after the change", sets: []string{"traffic.chat.rate=20/s", "duration=26h"}},
	{what: "budgets that end with the run", sets: []string{"traffic.chat.rate=20/s", "slo.chat TTFT.window=2h"}},
	{what: "a client-side limit", sets: []string{"traffic.chat.rate=20/s", "duration=48h", "traffic.chat.max_in_flight=20"}},
	{what: "a priority that nobody looks at", sets: []string{"traffic.chat.rate=20/s", "duration=48h", "traffic.chat.priority=-1"}},
	{what: "a priority that counts", sets: []string{"traffic.chat.rate=20/s", "duration=48h", "traffic.chat.priority=-1", "pool.main.engine.policy=priority"}},
	{what: "a shared prompt without a cache", sets: []string{"traffic.chat.rate=20/s", "duration=48h", "traffic.chat.system_prompt.tokens=100", "pool.main.engine.kind=tgi"}},
	{what: "a shared prompt longer than prompts", sets: []string{"traffic.chat.rate=20/s", "duration=48h", "traffic.chat.system_prompt.tokens=600"}},
	{what: "users", old: `rate = "2/s"`, new: "users = 3"},
	{what: "a cluster whose settings never act", old: someGPU, new: someGPU + `
zones = 5
uncached = true
gate = { in_flight = 50, timeout = "5s", order = "fair" }
overflow = { to = "spare", at = 20 }
autoscale = { target = 40, min = 1, max = 1, warm_up = "20s", lead = "9m" }
replicas = 1`, sets: enough, more: `
[[pool]]
name = "spare"
model = "qwen3-8b"
gpu = "h100"
standby = true
[[pool]]
name = "long"
min_prompt = 100000
model = "llama-3.1-8b"
gpu = "h100"
`},
	{what: "a limit that limits nothing", old: someRate, new: someRate + "\nlimit = { burst = \"2s\" }", sets: enough},
	{what: "a limit with parts that hold nothing", old: someRate, new: someRate + "\nlimit = { in_flight = 500, burst = \"9s\", weight = 2 }", sets: enough},
	{what: "rollouts that come too late", sets: enough, more: `
[[rollout]]
name = "never"
at = "72h"
[[rollout]]
name = "half"
at = "47h58m"
`},
	{what: "rules without effect", sets: enough, more: `
[[pool]]
name = "spare"
model = "qwen3-8b"
gpu = "h100"
standby = true
[[rule]]
name = "cap"
signal = "kv"
pool = "main"
above = 0.9
action = "cap"
classes = ["chat"]
cap = 99999
[[rule]]
name = "to itself"
signal = "kv"
pool = "main"
above = 0.9
action = "route"
classes = ["chat"]
to = "main"
[[rule]]
name = "away"
signal = "queue"
pool = "main"
above = 10
action = "route"
classes = ["chat"]
to = "spare"
`},
	{what: "a small trace", old: "rate = \"2/s\"\nprompt = 500\noutput = { dist = \"exponential\", mean = 100 }", new: `trace = { file = "azure.csv", format = "azure" }`, sets: []string{"change=[]", "warmup=0s", "duration=1h"}},
}

// TestWarnings shows every warning as a person sees it.
func TestWarnings(t *testing.T) {
	const file = "testdata/suspect.toml"
	defer os.Remove(file)
	var b strings.Builder
	for _, c := range suspects {
		if err := os.WriteFile(file, []byte(strings.Replace(base, c.old, c.new, 1)+c.more), 0o644); err != nil {
			t.Fatal(err)
		}
		_, p := load(t, file, c.sets...)
		fmt.Fprintf(&b, "### %s\n", c.what)
		for _, w := range p.Warnings {
			fmt.Fprintf(&b, "%s\n\n", w)
		}
	}
	golden(t, "testdata/warnings.txt", b.String())
}

// TestShippedExperimentsGiveNoWarnings: what ships is meant as it is.
func TestShippedExperimentsGiveNoWarnings(t *testing.T) {
	for _, name := range Names() {
		if name == "azure-replay" { // the trace of the tests is tiny
			continue
		}
		if _, p := load(t, name); len(p.Warnings) > 0 {
			t.Errorf("%s: %s", name, p.Warnings[0])
		}
	}
}
