package accuracy

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"slosim/internal/measured"
	"slosim/models"
	"slosim/sim"
	"slosim/sim/clock"
)

// Prediction is what the simulator says of a run.
type Prediction struct {
	phases []measured.Latencies
	steps  []step
	batch  int
	served float64 // requests per second
	tokens float64 // output tokens per second
	blocks float64 // KV pool; NaN if it is not predicted
	// Unserved requests were rejected or had no answer when the run was cut.
	Unserved int
}

// step is one engine step: how many rows got a token, and how long it took.
type step struct {
	rows int32
	ps   int64
}

// Predict simulates a run. The experiment is Experiment's.
func Predict(ctx context.Context, run *measured.Run, e sim.Experiment) (*Prediction, error) {
	p := &Prediction{phases: make([]measured.Latencies, max(1, len(run.Phases))), batch: run.Load.SteadyBatch, blocks: math.NaN()}
	if run.Setup.Pool > 0 {
		if n, err := poolBlocks(e); err == nil {
			p.blocks = n
		}
	}
	requests := run.Load.Requests
	served := make([]sim.Served, len(requests))
	for i := range served {
		served[i].Last = clock.Never
	}
	o := sim.Options{Workers: 1, Served: func(s sim.Served) { served[s.Index] = s }}
	if p.batch > 0 {
		o.Step = func(_ int, b models.Batch, c models.Cost) {
			p.steps = append(p.steps, step{b.DecodeSeqs, c.Total()})
		}
	}
	if _, err := sim.Run(ctx, e, o); err != nil {
		return nil, err
	}
	first, last, tokens := clock.Never, clock.Time(0), 0.0
	for i, s := range served {
		if s.Last == clock.Never {
			p.Unserved++
			continue
		}
		first, last = min(first, s.Send), max(last, s.Last)
		tokens += float64(s.Output)
		if q := &requests[i]; !q.Skip && !q.Failed {
			p.phases[q.Phase].Add(s.First.Sub(s.Send).Seconds(), s.Last.Sub(s.Send).Seconds(), int(s.Output))
		}
	}
	if p.Unserved == len(served) {
		return nil, fmt.Errorf("none of the %d requests was served", len(served))
	}
	seconds := last.Sub(first).Seconds()
	p.served, p.tokens = float64(len(served)-p.Unserved)/seconds, tokens/seconds
	return p, nil
}

// Of returns the prediction of a metric in a phase, NaN if there is none.
func (p *Prediction) Of(metric string, phase int) float64 {
	switch metric {
	case measured.Served:
		return p.served
	case measured.TokenRate:
		return p.tokens
	case measured.PoolBlocks:
		return p.blocks
	case measured.ITLP50:
		return p.itl(.5)
	case measured.ITLP99:
		return p.itl(.99)
	}
	values := p.phases[phase].Of(metric)
	if len(values) == 0 {
		return math.NaN()
	}
	return measured.Statistic(metric, values)
}

// fullBatch is the share of the largest batch from which on a step counts as one
// of the steady state.
const fullBatch = 0.95

// itl returns a quantile of the gaps between tokens, over all tokens of steps with
// a full batch: a step is a gap of every row that decodes in it.
func (p *Prediction) itl(q float64) float64 {
	most := int32(0)
	for _, s := range p.steps {
		most = max(most, s.rows)
	}
	var full []step
	weight := 0.0
	for _, s := range p.steps {
		if float64(s.rows) >= fullBatch*float64(most) && s.rows > 0 {
			full = append(full, s)
			weight += float64(s.rows)
		}
	}
	slices.SortFunc(full, func(a, b step) int { return cmp.Compare(a.ps, b.ps) })
	sum := 0.0
	for _, s := range full {
		if sum += float64(s.rows); sum >= q*weight {
			return float64(s.ps) / 1e12
		}
	}
	return math.NaN()
}
