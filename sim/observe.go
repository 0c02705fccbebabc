package sim

import (
	"slices"

	"slosim/engine"
	"slosim/models"
	"slosim/sim/clock"
)

// tell reports a request that has ended to whoever listens.
func (c *cluster) tell(f *flight, e *engine.Event) {
	if c.plan.served == nil {
		return
	}
	s := Served{Class: f.req.Class, Index: f.req.Index, Prompt: f.req.Prompt, Output: f.req.Output, Send: f.req.Send, First: clock.Never, Last: clock.Never}
	if e.Kind == engine.Finished {
		s.First, s.Last = min(f.first, e.At), e.At
	}
	c.plan.served(s)
}

// stepping returns the experiment with every engine visiting every step.
func stepping(e Experiment) Experiment {
	e.Pools = slices.Clone(e.Pools)
	for i := range e.Pools {
		e.Pools[i].Engine.Stepping = true
	}
	return e
}

// modelOf returns the step model of a pool's engines, which report their steps to
// whoever listens.
func (p *plan) modelOf(pool int) models.StepModel {
	if p.onStep == nil {
		return p.models[pool]
	}
	return stepWatch{p.models[pool], pool, p.onStep}
}

// stepWatch is a step model that reports what it is asked.
type stepWatch struct {
	models.StepModel
	pool int
	f    func(pool int, b models.Batch, c models.Cost)
}

// Step implements models.StepModel.
func (w stepWatch) Step(b models.Batch, clockBin int) models.Cost {
	c := w.StepModel.Step(b, clockBin)
	w.f(w.pool, b, c)
	return c
}
