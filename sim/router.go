package sim

import (
	"slosim/sim/clock"
	"slosim/workloads"
)

// View is what a router knows of a replica.
type View struct {
	Outstanding int32 // requests sent to it and not finished
}

// Router picks the replica of a request. Implementations may keep state: one
// router serves one pool of one replication.
type Router interface {
	Pick(now clock.Time, r *workloads.Request, views []View) int
}

func newRouter(kind string) Router {
	if kind == "round-robin" {
		return &roundRobin{}
	}
	return &leastOutstanding{}
}

// roundRobin sends each request to the next replica.
type roundRobin struct{ next int }

func (r *roundRobin) Pick(_ clock.Time, _ *workloads.Request, views []View) int {
	i := r.next % len(views)
	r.next = i + 1
	return i
}

// leastOutstanding sends each request to the replica with the fewest unfinished
// requests; ties go round, so that an idle fleet shares the load.
type leastOutstanding struct{ next int }

func (r *leastOutstanding) Pick(_ clock.Time, _ *workloads.Request, views []View) int {
	start := r.next % len(views)
	best := start
	for k := 1; k < len(views); k++ {
		i := start + k
		if i >= len(views) {
			i -= len(views)
		}
		if views[i].Outstanding < views[best].Outstanding {
			best = i
		}
	}
	r.next = best + 1
	return best
}
