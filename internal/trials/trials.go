// Package trials simulates many experiments, a few at a time, and remembers their
// results: what sweeps, reviews and planners have in common.
//
// A result is addressed by what it is the result of: the resolved experiment (its
// hash covers seed, replications and traces) and the binary. A finished trial is
// therefore never simulated twice, and an interruption loses only what was running.
package trials

import (
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"slosim/experiments"
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
	Workers  int            // trials side by side; 0 = one per core
	Store    string         // folder of results; "" = nothing is remembered
	Progress func(Progress) // called from one goroutine at a time, after each trial
}

// Run simulates the trials and returns their outcomes in the same order. Each trial
// runs its replications one after the other, so that any number of workers gives
// the same. When ctx is cancelled the trials that have not ended carry its error.
func Run(ctx context.Context, list []Trial, o Options) []Outcome {
	r := &runner{options: o, out: make([]Outcome, len(list))}
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, max(1, len(list))) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				r.one(ctx, i, list[i])
			}
		}()
	}
	for i := range list {
		next <- i
	}
	close(next)
	wg.Wait()
	return r.out
}

type runner struct {
	options Options
	out     []Outcome
	mu      sync.Mutex
	passed  Progress
}

func (r *runner) one(ctx context.Context, i int, t Trial) {
	o := Outcome{Trial: t}
	key := ""
	if r.options.Store != "" {
		key = Key(t.Experiment)
		o.Result = read(r.options.Store, key)
		o.Known = o.Result != nil
	}
	if o.Result == nil {
		if o.Err = ctx.Err(); o.Err == nil {
			o.Result, o.Err = sim.Run(ctx, t.Experiment, sim.Options{Workers: 1})
		}
		if o.Err != nil {
			o.Result = nil // a part of a result is no result
		} else if r.options.Store != "" {
			o.Err = write(r.options.Store, key, o.Result)
		}
	}
	r.out[i] = o
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.passed
	p.Total = len(r.out)
	p.Done++
	switch {
	case o.Err != nil:
		p.Failed++
	case o.Known:
		p.Known++
	default:
		p.Requests += o.Result.Requests
	}
	if r.options.Progress != nil {
		r.options.Progress(*p)
	}
}

// Key is the address of an experiment's result.
func Key(e sim.Experiment) string {
	sum := sha256.Sum256([]byte(experiments.Hash(e) + "\n" + binary() + "\n" + e.Name + "\n" + e.Title))
	return hex.EncodeToString(sum[:])
}

// binary identifies the running program by its content.
var binary = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "unknown"
	}
	return hex.EncodeToString(h.Sum(nil))
})

// read returns a stored result; nil when there is none, or none that can be read.
func read(dir, key string) *sim.Result {
	f, err := os.Open(filepath.Join(dir, key+".gob"))
	if err != nil {
		return nil
	}
	defer f.Close()
	var r sim.Result
	if err := gob.NewDecoder(f).Decode(&r); err != nil {
		return nil
	}
	return &r
}

// write stores a result; it appears when it is complete.
func write(dir, key string, r *sim.Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".result-*")
	if err != nil {
		return err
	}
	err = errors.Join(gob.NewEncoder(f).Encode(r), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, key+".gob"))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
