package sim

import (
	"context"
	"errors"
)

// Options are how a run is carried out; they never change its result.
type Options struct {
	Workers  int            // replications side by side; 0 = GOMAXPROCS
	Progress func(Progress) // called from one goroutine at a time, a few times per second
}

// Progress is how far a run is.
type Progress struct {
	Done     float64 // share of all simulated time, 0..1
	Requests int64   // simulated so far
}

// Run simulates the experiment. When ctx is cancelled it returns the result of
// the span that all replications have covered, marked Partial, and ctx's error.
func Run(ctx context.Context, e Experiment, o Options) (*Result, error) {
	return nil, errors.New("sim: being built")
}
