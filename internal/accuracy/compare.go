// Package accuracy replays measured runs in the simulator and compares. It never
// fits anything: constants come from the catalogue, or from a calibration file
// that somebody names.
package accuracy

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"slosim/internal/measured"
)

// Row is one measured figure beside its prediction.
type Row struct {
	Source    string   `json:"source"`
	Run       string   `json:"run"`
	Phase     string   `json:"phase,omitempty"`
	Group     string   `json:"group"` // model, engine, GPU and parallelism
	Engine    string   `json:"engine"`
	GPU       string   `json:"gpu"`
	Metric    string   `json:"metric"`
	Measured  float64  `json:"measured"` // seconds, per second, or blocks
	Predicted *float64 `json:"predicted"`
	Error     *float64 `json:"error"`              // predicted/measured − 1
	NoiseLo   *float64 `json:"noise_lo,omitempty"` // 95 % interval of the measured figure, relative
	NoiseHi   *float64 `json:"noise_hi,omitempty"`
	Fitted    bool     `json:"fitted,omitempty"`    // the constants were fitted on this run
	Saturated bool     `json:"saturated,omitempty"` // judged by capacity, not by latency
	Reason    string   `json:"reason,omitempty"`    // why it was not simulated

	concurrency int
	load        string // residency: "even" or "mixed" prompts
	moe         bool
}

// Report is what a comparison found.
type Report struct {
	Version     string `json:"version"`
	Command     string `json:"command"`
	Calibration string `json:"calibration,omitempty"`

	Rows    []Row    `json:"rows"`
	Bars    []Bar    `json:"bars"`
	Bands   []Band   `json:"bands"`
	Notes   []string `json:"notes,omitempty"`
	Ignored []string `json:"ignored,omitempty"`
	Faults  []string `json:"faults,omitempty"`
}

// Options of a comparison.
type Options struct {
	Calibration string         // file; "" = the catalogue's constants
	Engine      string         // that the calibration is of; runs of others keep theirs
	Progress    func(done int) // called after every run, from one goroutine at a time
	// Fitted tells which runs the constants were fitted on.
	Fitted func(source, run, phase string) bool
}

// Compare replays every run. Rows come in the order of the runs.
func Compare(ctx context.Context, runs []measured.Run, o Options) ([]Row, error) {
	results := make([][]Row, len(runs))
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(runtime.GOMAXPROCS(0), len(runs)) {
		wg.Go(func() {
			for i := range next {
				results[i] = one(ctx, &runs[i], o)
				mu.Lock()
				if done++; o.Progress != nil {
					o.Progress(done)
				}
				mu.Unlock()
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	wg.Wait()
	var rows []Row
	for _, list := range results {
		rows = append(rows, list...)
	}
	return rows, ctx.Err()
}

// one compares one run. A panic in the simulator becomes the reason of its rows:
// one broken run must not hide the others.
func one(ctx context.Context, run *measured.Run, o Options) (rows []Row) {
	defer func() {
		if r := recover(); r != nil {
			rows = rowsOf(run, nil, fmt.Sprintf("internal error: %v", r), o)
		}
	}()
	if ctx.Err() != nil {
		return nil
	}
	calibration := o.Calibration
	if run.Setup.Engine != o.Engine {
		calibration = ""
	}
	e, err := Experiment(run, calibration)
	if err != nil {
		return rowsOf(run, nil, err.Error(), o)
	}
	p, err := Predict(ctx, run, e)
	if err != nil {
		return rowsOf(run, nil, err.Error(), o)
	}
	return rowsOf(run, p, "", o)
}

// rowsOf writes a run's rows.
func rowsOf(run *measured.Run, p *Prediction, reason string, o Options) []Row {
	var rows []Row
	saturated := saturatedPhases(run)
	figures := run.Figures
	if run.Setup.Pool > 0 {
		figures = append(figures[:len(figures):len(figures)], measured.Figure{Metric: measured.PoolBlocks, Value: float64(run.Setup.Pool)})
	}
	for _, f := range figures {
		r := Row{Source: run.Source, Run: run.Name, Group: run.Group, Engine: run.Setup.Engine, GPU: run.Setup.GPU, Metric: f.Metric, Measured: f.Value, Reason: reason, concurrency: run.Load.InFlight}
		r.load, r.moe = mixOf(run), moeName(run.Setup.Model)
		if gpu, err := gpuOf(run.Setup.GPU); err == nil {
			r.GPU = gpu
		}
		if f.Phase < len(run.Phases) {
			r.Phase = run.Phases[f.Phase]
		}
		r.Saturated = saturated[f.Phase]
		if lo, hi, ok := Noise(f, run.Name+r.Phase); ok {
			r.NoiseLo, r.NoiseHi = &lo, &hi
		}
		if p != nil {
			if v := p.Of(f.Metric, f.Phase); !math.IsNaN(v) && !math.IsInf(v, 0) {
				err := v/f.Value - 1
				r.Predicted, r.Error = &v, &err
			} else {
				r.Reason = "nothing was predicted for it"
			}
			if p.Unserved > 0 {
				r.Reason = fmt.Sprintf("%d requests were not served", p.Unserved)
			}
		}
		r.Fitted = (fittedHere(r.Source, r.Run) || o.Fitted != nil && o.Fitted(r.Source, r.Run, r.Phase)) && f.Metric != measured.PoolBlocks
		rows = append(rows, r)
	}
	return rows
}

// saturatedPhases finds, from the measurements alone, the phases in which the
// engine was full: as many requests in flight as may run. Closed loops that are
// meant to fill it do not count.
func saturatedPhases(run *measured.Run) map[int]bool {
	out := map[int]bool{0: run.Full}
	if run.Setup.MaxSeqs == 0 {
		return out
	}
	return fullPhases(run, func(i int) (from, to float64, ok bool) {
		q := &run.Load.Requests[i]
		return q.At + q.Lag, q.At + q.Lag + q.E2E, q.Seen
	}, out)
}
