package ready

import (
	"os"
	"path/filepath"
	"testing"

	"slosim/experiments"
	"slosim/sim"
)

const bare = `duration = "2h"
[[pool]]
name = "main"
model = "llama-3.1-8b"
gpu = "h100-sxm-80gb"
replicas = 3
[[traffic]]
class = "chat"
rate = "2/s"
prompt = 500
output = 100
`

const written = `[[slo]]
name = "chat TTFT"
class = "chat"
metric = "ttft"
threshold = "2s"
objective = "99%"
window = "30d"
`

// Each item is met by what meets it, and by nothing else.
func TestItemsAreMetByTheirEvidence(t *testing.T) {
	good := &sim.Result{SLOs: []sim.SLO{{Status: sim.Met, Budget: sim.Budget{Total: 1000}}}, Pools: []sim.PoolResult{{Name: "main", Replicas: 3, PeakLoad: .5}}}
	tight := &sim.Result{SLOs: good.SLOs, Pools: []sim.PoolResult{{Name: "main", Replicas: 3, PeakLoad: .6}}}
	missed := &sim.Result{SLOs: []sim.SLO{{Status: sim.Missed}}, Pools: good.Pools}
	for _, c := range []struct {
		what string
		text string
		run  *sim.Result
		want [6]bool
	}{
		{"nothing", bare, nil, [6]bool{}},
		{"an SLO", bare + written, nil, [6]bool{true, true, true}},
		{"a run that meets it", bare + written, good, [6]bool{true, true, true, true}},
		{"too little headroom without a replica", bare + written, tight, [6]bool{true, true, true}},
		{"a run that misses it", bare + written, missed, [6]bool{true, true, false, false}},
		{"post-mortems", "postmortem = \"wiki\"\n" + bare + written, good, [6]bool{true, true, true, true, false, true}},
		{"a gate and a fault", bare + written + "[[fault]]\nname = \"loss\"\npool = \"main\"\nat = \"30m\"\nreplicas = 1\n", good, [6]bool{true, true, true, true}},
	} {
		file := filepath.Join(t.TempDir(), "x.toml")
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		var sets []string
		if c.what == "a gate and a fault" {
			sets, c.want[4] = []string{"pool.main.gate={in_flight=100}"}, true
		}
		e, p, err := experiments.Load(file, sets...)
		if err != nil {
			t.Fatal(c.what, err)
		}
		if len(e.SLOs) == 0 && c.run != nil {
			c.run = nil
		}
		for i, item := range Check(&e, &p, c.run) {
			if item.Met != c.want[i] {
				t.Errorf("%s: %s: met is %v (%v)", c.what, item.Name, item.Met, item.Evidence)
			}
			if len(item.Evidence) == 0 {
				t.Errorf("%s: %s has no evidence", c.what, item.Name)
			}
		}
	}
}
