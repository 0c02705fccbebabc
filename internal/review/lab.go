package review

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"slosim/internal/progress"
	"slosim/internal/trials"
	"slosim/sim"
	"slosim/sim/rng"
)

// lab simulates what it is given, as many at a time as there are workers, and
// remembers it: the same experiment is simulated once.
type lab struct {
	slots    chan struct{}
	done     atomic.Int64 // simulations
	stored   atomic.Int64 // of them: found in the store
	requests atomic.Int64
	mu       sync.Mutex
	known    map[string]*entry
	options  trials.Options
	progress func(progress.State)
}

// mostSide bounds the simulations side by side: a time limit cuts off the last ones,
// so they are begun in order.
const mostSide = 64

type entry struct {
	once   sync.Once
	result *sim.Result
	err    error
}

func newLab(o Options) *lab {
	t := trials.Options{Queue: o.Queue, Store: o.Store}
	if t.Queue == nil {
		t.Queue = trials.Local(o.Workers)
	}
	return &lab{slots: make(chan struct{}, min(t.Side(), mostSide)), known: map[string]*entry{}, options: t, progress: o.Progress}
}

// one runs a single replication of e.
func (l *lab) one(ctx context.Context, e sim.Experiment) (*sim.Result, error) {
	e.Replications = 1
	key := trials.Key(e)
	l.mu.Lock()
	x := l.known[key]
	if x == nil {
		x = &entry{}
		l.known[key] = x
	}
	l.mu.Unlock()
	x.once.Do(func() {
		l.slots <- struct{}{}
		defer func() { <-l.slots }()
		o := trials.Run(ctx, []trials.Trial{{Name: fmt.Sprintf("%s, seed %d", e.Name, e.Seed), Experiment: e}}, l.options)[0]
		if x.result, x.err = o.Result, o.Err; x.err != nil {
			return
		}
		n := l.requests.Add(o.Result.Requests)
		if o.Known {
			l.stored.Add(1)
		}
		done := l.done.Add(1)
		if l.progress != nil {
			l.mu.Lock()
			l.progress(progress.State{Stage: "review", Done: int(done), Unit: "simulations", Requests: n, Known: int(l.stored.Load())})
			l.mu.Unlock()
		}
	})
	return x.result, x.err
}

// all runs replications [from, to) of e side by side, each on the seed that a run of
// e gives it.
func (l *lab) all(ctx context.Context, e sim.Experiment, from, to int) ([]*sim.Result, error) {
	out := make([]*sim.Result, to-from)
	errs := make([]error, to-from)
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() {
			r := e
			r.Seed = rng.Derive(e.Seed, from+i)
			out[i], errs[i] = l.one(ctx, r)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
