// Package trials simulates many experiments, wherever its queue has them done, and
// remembers their results: what sweeps, reviews and planners have in common.
//
// A result is addressed by what it is the result of: the resolved experiment (its
// hash covers seed, replications and traces) and the binary. A finished trial is
// therefore never simulated twice, and an interruption loses only what was running.
// The folder of results is the truth: what is in it needs no queue.
package trials

import (
	"context"
	"runtime"
	"sync"

	"slosim/internal/queue"
	"slosim/sim"
)

// Trial is one experiment of many.
type Trial struct {
	Name       string // for progress and messages
	Experiment sim.Experiment
}

// Outcome is what became of a trial.
type Outcome struct {
	Trial  Trial
	Result *sim.Result // nil with Err
	Err    error
	Known  bool // it came from the store
}

// Progress is how far all trials are.
type Progress struct {
	Done, Total int
	Known       int   // of Done: from the store
	Failed      int   // of Done
	Requests    int64 // simulated, without known ones
}

// Options are how trials are carried out; they never change a result.
type Options struct {
	Queue    queue.Queue    // who simulates; nil = goroutines
	Workers  int            // without Queue: trials side by side; 0 = one per core
	Store    string         // folder of results; "" = nothing is remembered
	Progress func(Progress) // called from one goroutine at a time, first and after each trial
}

// Local returns the queue of n goroutines; 0 = one per core.
func Local(n int) queue.Queue { return queue.NewLocal(n, Work) }

// Side returns how many trials are worth having side by side.
func (o Options) Side() int {
	switch {
	case o.Queue != nil:
		return o.Queue.Width()
	case o.Workers > 0:
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Run simulates the trials and returns their outcomes in the same order. Each trial
// runs its replications one after the other, so that any number of workers gives
// the same. When ctx is cancelled the trials that have not ended carry its error.
func Run(ctx context.Context, list []Trial, o Options) []Outcome {
	out := make([]Outcome, len(list))
	Each(ctx, list, o, func(i int, x Outcome) { out[i] = x })
	return out
}

// Each is Run for those who keep only a part of each outcome: got is called with the
// index of a trial, from one goroutine at a time.
func Each(ctx context.Context, list []Trial, o Options, got func(i int, x Outcome)) {
	if o.Queue == nil {
		o.Queue = Local(o.Workers)
	}
	r := &runner{options: o, got: got}
	r.passed.Total = len(list)
	if o.Progress != nil {
		o.Progress(r.passed)
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(o.Side(), max(1, len(list))) {
		wg.Go(func() {
			for i := range next {
				r.one(ctx, i, list[i])
			}
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	wg.Wait()
}

type runner struct {
	options Options
	got     func(int, Outcome)
	mu      sync.Mutex
	passed  Progress
}

func (r *runner) one(ctx context.Context, i int, t Trial) {
	o := Outcome{Trial: t}
	key := Key(t.Experiment)
	if r.options.Store != "" {
		o.Result = read(r.options.Store, key, &t.Experiment)
		o.Known = o.Result != nil
	}
	if o.Result == nil {
		if o.Err = ctx.Err(); o.Err == nil {
			o.Result, o.Err = r.simulate(ctx, key, t)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.passed
	if o.Err != nil && ctx.Err() != nil { // cut off, not failed
		r.got(i, o)
		return
	}
	p.Done++
	switch {
	case o.Err != nil:
		p.Failed++
	case o.Known:
		p.Known++
	default:
		p.Requests += o.Result.Requests
	}
	r.got(i, o)
	if r.options.Progress != nil {
		r.options.Progress(*p)
	}
}

// simulate has a trial carried out and stores its result before the queue forgets it.
func (r *runner) simulate(ctx context.Context, key string, t Trial) (*sim.Result, error) {
	if l, ok := r.options.Queue.(*queue.Local); ok {
		return r.here(ctx, l, key, t)
	}
	task, err := encode(key, t)
	if err != nil {
		return nil, err
	}
	var result *sim.Result
	err = r.options.Queue.Do(ctx, task, func(answer []byte) error {
		var err error
		if result, err = decodeResult(answer, &t.Experiment); err != nil {
			return err
		}
		if r.options.Store == "" {
			return nil
		}
		return write(r.options.Store, key, answer)
	})
	if err != nil {
		return nil, err // a part of a result is no result
	}
	return result, nil
}

// here is simulate without the detour over bytes, which costs more than a small
// simulation; what it stores is the same.
func (r *runner) here(ctx context.Context, l *queue.Local, key string, t Trial) (result *sim.Result, err error) {
	err = l.Hold(ctx, func() error {
		if result, err = run(ctx, t.Experiment); err != nil || r.options.Store == "" {
			return err
		}
		data, err := encodeResult(result, &t.Experiment)
		if err != nil {
			return err
		}
		return write(r.options.Store, key, data)
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}
