package report

import (
	"strings"
	"testing"

	"slosim/sim"
	"slosim/sim/stats"
)

// What nobody answered is not laid on load.
func TestIdleFloorNamesWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		bad   int64
		blame []sim.Blame
		want  string
	}{
		{0, nil, "only load could"},
		{9, []sim.Blame{{Stage: "queue", Share: .7}, {Stage: "rejected", Share: .3}}, "all misses come from load"},
		{9, []sim.Blame{{Stage: "rejected", Share: .4}, {Stage: "never answered", Share: .3}, {Stage: "queue", Share: .3}}, "got no answer"},
	} {
		got := idleFloor(&sim.SLO{Bad: c.bad, Blame: c.blame, IdleFloor: stats.Estimate{R: 2}})
		if !strings.Contains(got, c.want) {
			t.Errorf("%d bad, %v: %q", c.bad, c.blame, got)
		}
	}
}
