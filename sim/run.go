package sim

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/rng"
)

// Options are how a run is carried out; they never change its result.
type Options struct {
	Workers  int            // replications side by side; 0 = GOMAXPROCS
	Progress func(Progress) // called from one goroutine at a time, about a thousand times per run

	// Served is called for every request that ends, in the order of the last tokens
	// within a replication. It must be safe for concurrent use with several workers.
	Served func(Served)
	// Step is called for every engine step, which makes the run slower: no stretch
	// of equal steps is skipped. The same about concurrency.
	Step func(pool int, b models.Batch, c models.Cost)
}

// Served is one request's life, for those who want more than statistics.
type Served struct {
	Replication int // from 0
	Class       int32
	Cohort      int32 // 0, or 1 + index of the change
	Index       int64
	Attempt     int32 // 0 = the first
	Replica     int32 // of the cluster, from 0; −1 = none
	Prompt      int32
	Output      int32
	Outcome     string

	// Times are clock.Never where a request did not get that far: sent by the client
	// after any wait for its own cap, handed to the scheduler, start of the step with
	// its first chunk, end of the step with its last one, first and last token.
	Send, Ready, Started, Prefilled, First, Last clock.Time
}

// Outcomes of a request, as Served has them.
const (
	OutcomeOK        = "ok"
	OutcomeRejected  = "rejected"
	OutcomeTimedOut  = "timed_out"
	OutcomeFailed    = "failed"
	OutcomeUndecided = "undecided"
)

// Progress is how far a run is.
type Progress struct {
	Done     float64 // share of all simulated time, 0..1
	Requests int64   // simulated so far
}

// Run simulates the experiment. When ctx is cancelled it returns, with ctx's
// error, the result of the replications that had ended, or else of the first one
// up to the time it had reached, marked Partial; nil when nothing was counted
// yet.
func Run(ctx context.Context, e Experiment, o Options) (*Result, error) {
	if o.Step != nil {
		e = stepping(e)
	}
	note := ""
	if e.Settle && e.Warmup > 0 {
		var err error
		if e, note, err = settle(ctx, e, o.Workers); err != nil {
			return nil, err
		}
	}
	p, err := newPlan(e)
	if err != nil {
		return nil, err
	}
	p.served, p.onStep = o.Served, o.Step
	most := max(e.Replications, e.MaxReplications)
	r := &runner{plan: p, options: o, n: e.Replications, covered: make([]atomic.Int64, most), sent: make([]atomic.Int64, most), reps: make([]*rep, most), errs: make([]error, most), stopped: make([]*cluster, most)}
	for i := range r.covered {
		r.covered[i].Store(int64(-e.Warmup))
	}
	from := 0
	for {
		r.all(ctx, from)
		result, err := r.result(ctx)
		if result != nil && note != "" {
			result.Warnings = append(result.Warnings, note)
		}
		if err != nil || e.Precision == 0 {
			return result, err
		}
		result.Precision = p.precision(result)
		more := result.Precision.next(r.n, most)
		if more == r.n {
			result.Warnings = append(result.Warnings, result.Precision.warning(r.n)...)
			return result, nil
		}
		from, r.n = r.n, more
	}
}

// seed returns the seed of replication i: any of them can be replayed alone by
// naming it.
func (e *Experiment) seed(i int) uint64 { return rng.Derive(e.Seed, i) }

// runner carries out the replications of one run.
type runner struct {
	plan    *plan
	options Options
	n       int            // replications so far, or in the making
	covered []atomic.Int64 // simulated time reached, per replication
	sent    []atomic.Int64 // requests so far, per replication
	reps    []*rep
	errs    []error
	stopped []*cluster // interrupted replications, by index

	mu       sync.Mutex
	reported int
}

// all runs the replications from one on, a few at a time.
func (r *runner) all(ctx context.Context, from int) {
	workers := r.options.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, r.n-from) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				r.one(ctx, i)
			}
		}()
	}
	for i := from; i < r.n; i++ {
		next <- i
	}
	close(next)
	wg.Wait()
}

// one runs replication i. A panic inside becomes its error.
func (r *runner) one(ctx context.Context, i int) {
	seed := r.plan.exp.seed(i)
	defer func() {
		if p := recover(); p != nil {
			r.errs[i] = fmt.Errorf("replication %d (seed %d): broken invariant: %v", i+1, seed, p)
		}
	}()
	if r.errs[i] = ctx.Err(); r.errs[i] != nil {
		return
	}
	c, err := newCluster(r.plan, seed, &r.covered[i])
	if err != nil {
		r.errs[i] = err
		return
	}
	c.number = i
	c.mon.progress = func() {
		r.sent[i].Store(c.sent)
		r.progress()
	}
	if r.errs[i] = c.run(ctx); r.errs[i] == nil {
		r.reps[i] = c.reduce()
	} else if ctx.Err() != nil {
		r.stopped[i] = c
	}
	r.progress()
}

// progress reports how far the run is, at most a thousand times.
func (r *runner) progress() {
	if r.options.Progress == nil {
		return
	}
	total := float64(r.n) * float64(r.plan.exp.Duration+r.plan.exp.Warmup)
	done, requests := 0.0, int64(0)
	for i := range r.n {
		requests += r.sent[i].Load()
		done += float64(min(r.covered[i].Load(), int64(r.plan.exp.Duration)) + int64(r.plan.exp.Warmup))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if mark := int(done / total * 1000); mark > r.reported {
		r.reported = mark
		r.options.Progress(Progress{Done: done / total, Requests: requests})
	}
}

// result combines what the replications left behind.
func (r *runner) result(ctx context.Context) (*Result, error) {
	for i, err := range r.errs[:r.n] {
		if err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("replication %d (seed %d): %w", i+1, r.plan.exp.seed(i), err)
		}
	}
	if ctx.Err() == nil {
		return r.plan.combine(r.reps[:r.n], r.seeds(r.reps[:r.n]), clock.Time(r.plan.exp.Duration), false), nil
	}
	var done []*rep
	for _, rep := range r.reps {
		if rep != nil {
			done = append(done, rep)
		}
	}
	if len(done) > 0 {
		return r.plan.combine(done, r.seeds(r.reps), clock.Time(r.plan.exp.Duration), true), ctx.Err()
	}
	for i, c := range r.stopped {
		if c != nil && c.loop.Now() > 0 {
			end := min(c.loop.Now(), clock.Time(r.plan.exp.Duration))
			r.reps[i] = c.reduce()
			return r.plan.combine([]*rep{r.reps[i]}, r.seeds(r.reps), end, true), ctx.Err()
		}
	}
	return nil, ctx.Err()
}

// seeds returns the seeds of the replications that count.
func (r *runner) seeds(reps []*rep) []uint64 {
	var out []uint64
	for i, rep := range reps {
		if rep != nil {
			out = append(out, r.plan.exp.seed(i))
		}
	}
	return out
}
