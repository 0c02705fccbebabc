package sim

import (
	"errors"
	"slices"

	"slosim/sim/clock"
	"slosim/workloads"
)

// quickSpan is how much of an experiment --quick simulates.
const quickSpan = 2 * clock.Hour

// quickStep is the grid on which the busiest span is looked for.
const quickStep = 15 * clock.Minute

// ErrNoQuick says that the busiest hours are not known before a run.
var ErrNoQuick = errors.New("the busiest hours are known ahead only where rates are: a trace, users or a number of requests have none")

// Quick returns the busiest two hours of an experiment as an experiment of one
// replication, and when they begin: those in which most tokens arrive. What was
// drawn or scheduled before them is in force, not simulated.
func Quick(e Experiment) (Experiment, clock.Time, error) {
	for _, c := range e.Traffic {
		if c.Trace != nil || c.Client.Users > 0 || c.Rate.Requests > 0 || len(c.Rate.Clients) > 0 {
			return e, 0, ErrNoQuick
		}
	}
	e.Replications = 1
	if e.Duration <= quickSpan {
		return e, 0, nil
	}
	p, err := newPlan(e)
	if err != nil {
		return e, 0, err
	}
	at, most := clock.Time(0), -1.0
	for t := clock.Time(0); t.Add(quickSpan) <= clock.Time(e.Duration); t = t.Add(quickStep) {
		if n := p.tokensIn(t, t.Add(quickSpan)); n > most*(1+1e-9) {
			at, most = t, n
		}
	}
	return e.shifted(clock.Duration(at)), at, nil
}

// Window returns the two hours of an experiment that begin at a time, as Quick does:
// for variants of an experiment that are to be compared on the same hours.
func Window(e Experiment, at clock.Time) Experiment {
	e.Replications = 1
	if e.Duration <= quickSpan {
		return e
	}
	return e.shifted(clock.Duration(at))
}

// tokensIn returns the prompt and output tokens that arrive in [from, to).
func (p *plan) tokensIn(from, to clock.Time) float64 {
	sum := 0.0
	same := func(x float64) float64 { return x }
	for c := range p.exp.Traffic {
		in := workloads.NewIntensity(&p.exp.Traffic[c], p.exp.Changes, p.exp.Start)
		n := in.Expected(from, to)
		for _, g := range p.classGroups(c) {
			if prompt, output, ok := p.lengthsOf(g); ok {
				n2 := n * p.shareOf(g, to-1)
				sum += n2 * (prompt.Mean(same) + output.Mean(same))
			} else {
				sum += n * p.shareOf(g, to-1)
			}
		}
	}
	return sum
}

// shifted returns the two hours of an experiment that begin d after its start.
func (e Experiment) shifted(d clock.Duration) Experiment {
	e.Start += d
	e.Duration = quickSpan
	e.Traffic = slices.Clone(e.Traffic)
	for k := range e.Traffic {
		e.Traffic[k].Rate = e.Traffic[k].Rate.Shifted(d)
	}
	e.Changes = slices.Clone(e.Changes)
	for k := range e.Changes {
		c := &e.Changes[k]
		if c.At -= d; c.Ramp > 0 && c.At+c.Ramp <= 0 && len(c.Steps) == 0 {
			c.At, c.Ramp = c.At+c.Ramp, 0 // it is over
		}
		if c.Until > 0 {
			c.Until = max(1, c.Until-d)
		}
	}
	e.Faults = slices.Clone(e.Faults)
	kept := e.Faults[:0]
	for _, f := range e.Faults {
		end := f.At + f.For - d
		if f.For > 0 && end <= 0 {
			continue
		}
		if f.At = f.At - d; f.At < 0 {
			f.At = 0
			if f.For > 0 {
				f.For = end
			}
		}
		kept = append(kept, f)
	}
	e.Faults = kept
	e.Rollouts = slices.Clone(e.Rollouts)
	for k := range e.Rollouts {
		e.Rollouts[k].At -= d
	}
	e.Rollouts = slices.DeleteFunc(e.Rollouts, func(r Rollout) bool { return r.At < 0 })
	return e
}
