package sim

import (
	"testing"

	"pgregory.net/rapid"
)

// leastOutstanding keeps books of its own. Here they are compared with a scan of the
// views, in fleets of one word of bits and of several, whose replicas come and go.
func TestLeastOutstandingIsThatOfAScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 3, 20, 63, 64, 65, 130, 200}).Draw(t, "replicas")
		r, views, next := newLeastOutstanding(n), make([]View, n), 0
		up := 0
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "replica")
			v := &views[i]
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what == 0 || up == 0: // it comes or goes
				v.Up = !v.Up
				r.file(i, int(v.Outstanding), v.Up)
				if up--; v.Up {
					up += 2
				}
			case what < 4 && v.Outstanding > 0: // a request leaves it
				if v.Outstanding--; v.Up {
					r.left(i, int(v.Outstanding))
				}
			default:
				best := -1
				for k := range n {
					j := (next + k) % n
					if views[j].Up && (best < 0 || views[j].Outstanding < views[best].Outstanding) {
						best = j
					}
				}
				if got := r.pick(); got != best {
					t.Fatalf("picks %d, the scan %d", got, best)
				}
				views[best].Outstanding++
				next = best + 1
			}
		}
	})
}
