package review

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"slosim/internal/trials"
	"slosim/sim"
	"slosim/sim/rng"
)

// lab simulates what it is given, as many at a time as there are workers, and
// remembers it: the same experiment is simulated once.
type lab struct {
	slots    chan struct{}
	done     atomic.Int64 // simulations
	requests atomic.Int64
	mu       sync.Mutex
	known    map[string]*entry
	progress func(done int, requests int64)
}

type entry struct {
	once   sync.Once
	result *sim.Result
	err    error
}

func newLab(o Options) *lab {
	n := o.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return &lab{slots: make(chan struct{}, n), known: map[string]*entry{}, progress: o.Progress}
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
		o := trials.Run(ctx, []trials.Trial{{Name: e.Name, Experiment: e}}, trials.Options{Workers: 1})[0]
		if x.result, x.err = o.Result, o.Err; x.err != nil {
			return
		}
		n := l.requests.Add(o.Result.Requests)
		done := l.done.Add(1)
		if l.progress != nil {
			l.mu.Lock()
			l.progress(int(done), n)
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
