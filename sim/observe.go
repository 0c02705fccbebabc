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
	outcome := OutcomeOK
	if e.Kind != engine.Finished {
		outcome = OutcomeRejected
	}
	s := c.lifeOf(f, outcome)
	if e.Kind == engine.Finished {
		s.Ready, s.Started, s.Prefilled = e.Ready, e.Started, e.Prefilled
		s.First, s.Last = min(f.first, e.At), e.At
	}
	c.plan.served(s)
}

// tellEnd reports a request that ended otherwise.
func (c *cluster) tellEnd(f *flight, outcome string) {
	if c.plan.served == nil {
		return
	}
	s := c.lifeOf(f, outcome)
	s.First = f.first
	c.plan.served(s)
}

func (c *cluster) lifeOf(f *flight, outcome string) Served {
	never := clock.Time(clock.Never)
	return Served{
		Replication: c.number, Class: f.req.Class, Cohort: f.req.Cohort, Index: f.req.Index, Attempt: f.attempt, Replica: f.replica,
		Prompt: f.req.Prompt, Output: f.req.Output, Outcome: outcome,
		Send: f.req.Send, Ready: never, Started: never, Prefilled: never, First: never, Last: never,
	}
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
