package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"slosim/internal/accuracy"
	"slosim/internal/measured"
	"slosim/sim"
	"slosim/sim/clock"
)

// Case is a measured run with the experiment that replays it.
type Case struct {
	Run        measured.Run
	Experiment sim.Experiment
	Phase      int // of the run, that is compared; earlier ones are replayed too

	targets map[string][2]float64 // measured figures of folds and their noise, computed once
}

// target returns a measured figure and what it is trusted to, as a relative error.
func (c *Case) target(name string, f fold, values []float64) (want, sigma float64) {
	key := fmt.Sprint(name, f.part)
	if t, ok := c.targets[key]; ok {
		return t[0], t[1]
	}
	want, sigma = measured.Statistic(name, values), leastNoise
	if lo, hi, ok := accuracy.Noise(measured.Figure{Metric: name, Value: want, Values: values}, c.Run.Name); ok {
		sigma = math.Hypot(sigma, (hi-lo)/4)
	}
	if c.targets == nil {
		c.targets = map[string][2]float64{}
	}
	c.targets[key] = [2]float64{want, sigma}
	return want, sigma
}

// blocks is into how many spans a run's requests are cut for cross-validation.
const blocks = 4

// metrics that are fitted: no P99, which is mostly noise.
var metrics = []string{measured.TTFTMean, measured.TTFTP50, measured.TTFTP90, measured.TPOTMean, measured.TPOTP50, measured.TPOTP90, measured.E2EMean}

// tableMetrics are fitted where only figures of a whole run are known.
var tableMetrics = append([]string{measured.TokenRate, measured.Served, measured.ITLP50}, metrics...)

// leastNoise is the error, besides sampling, that a measured figure is trusted to.
const leastNoise = 0.005

// tableNoise is the same for a figure of a table, whose sample is unknown.
const tableNoise = 0.02

// fold is what a fit looks at: of each case all of it, or some of its blocks.
type fold struct {
	cases map[int]bool // nil = all
	part  map[int]bool // blocks; nil = all
}

// block returns the block of request i of n.
func block(i, n int) int { return i * blocks / n }

// known tells whether a case's requests are known one by one.
func (c *Case) known() bool {
	for _, q := range c.Run.Load.Requests {
		if q.Seen && q.Phase == c.Phase {
			return true
		}
	}
	return false
}

// served simulates a case and returns what became of its requests.
func (c *Case) served(ctx context.Context, e sim.Experiment) ([]sim.Served, error) {
	out := make([]sim.Served, len(c.Run.Load.Requests))
	for i := range out {
		out[i].Last = clock.Never
	}
	_, err := sim.Run(ctx, e, sim.Options{Workers: 1, Served: func(s sim.Served) { out[s.Index] = s }})
	return out, err
}

// residual is one figure's log error over what it is trusted to.
type residual struct {
	name  string
	error float64 // log(predicted/measured)
	sigma float64
}

// residuals of a case in a fold.
func (c *Case) residuals(ctx context.Context, e sim.Experiment, f fold) ([]residual, error) {
	if !c.known() {
		return c.tableResiduals(ctx, e)
	}
	served, err := c.served(ctx, e)
	if err != nil {
		return nil, err
	}
	var m, p measured.Latencies
	n := len(served)
	for i, s := range served {
		q := &c.Run.Load.Requests[i]
		if q.Phase != c.Phase || !q.Seen || q.Skip || q.Failed || s.Last == clock.Never || f.part != nil && !f.part[block(i, n)] {
			continue
		}
		m.Add(q.TTFT, q.E2E, q.Output)
		p.Add(s.First.Sub(s.Send).Seconds(), s.Last.Sub(s.Send).Seconds(), int(s.Output))
	}
	if len(p.TTFT) == 0 {
		return nil, errors.New("no request was served")
	}
	var out []residual
	for _, name := range metrics {
		values := m.Of(name)
		if len(values) == 0 {
			continue
		}
		want, sigma := c.target(name, f, values)
		out = append(out, residual{c.Run.Name + " " + name, math.Log(measured.Statistic(name, p.Of(name)) / want), sigma})
	}
	return out, nil
}

// tableResiduals are those of a run of which only figures are known.
func (c *Case) tableResiduals(ctx context.Context, e sim.Experiment) ([]residual, error) {
	p, err := accuracy.Predict(ctx, &c.Run, e)
	if err != nil {
		return nil, err
	}
	var out []residual
	for _, f := range c.Run.Figures {
		for _, name := range tableMetrics {
			if f.Metric != name || f.Phase != c.Phase || c.Run.Source != "user" && strings.HasPrefix(name, "TTFT") {
				continue // in published closed loops TTFT is mostly the client's bursts, which are not known
			}
			if v := p.Of(name, f.Phase); v > 0 {
				out = append(out, residual{c.Run.Name + " " + name, math.Log(v / f.Value), tableNoise})
			}
		}
	}
	return out, nil
}

// problem is what a fit minimises.
type problem struct {
	params []Parameter
	held   []Held
	start  []float64
	cases  []Case
}

// residuals of all cases of a fold, at these values.
func (p *problem) residuals(ctx context.Context, values []float64, f fold) ([]residual, error) {
	lists := make([][]residual, len(p.cases))
	errs := make([]error, len(p.cases))
	var wg sync.WaitGroup
	for i := range p.cases {
		if f.cases != nil && !f.cases[i] {
			continue
		}
		wg.Go(func() {
			lists[i], errs[i] = p.cases[i].residuals(ctx, p.apply(p.cases[i].Experiment, values), f)
			if errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", p.cases[i].Run.Name, errs[i])
			}
		})
	}
	wg.Wait()
	var out []residual
	for _, l := range lists {
		out = append(out, l...)
	}
	return out, errors.Join(errs...)
}

// apply returns the experiment with the held and the fitted constants set.
func (p *problem) apply(e sim.Experiment, values []float64) sim.Experiment {
	params := slices.Clone(p.params)
	values = slices.Clone(values)
	for _, h := range p.held {
		params, values = append(params, h.Parameter), append(values, h.Value)
	}
	return apply(e, params, values)
}

// values turns x, in widths from the start, into constants within their bounds, and
// says how far outside x was.
func (p *problem) values(x []float64) (values []float64, outside float64) {
	values = make([]float64, len(x))
	for i, q := range p.params {
		v := p.start[i] + x[i]*q.Width
		values[i] = max(q.Lo, min(q.Hi, v))
		outside += math.Pow((v-values[i])/q.Width, 2)
	}
	return values, outside
}

// robust is the pseudo-Huber loss: a square up to about delta, then linear, so
// that one odd figure does not decide the fit.
func robust(r float64) float64 {
	const delta = 2
	return 2 * delta * delta * (math.Sqrt(1+r*r/(delta*delta)) - 1)
}

// loss is the sum of the robust squares and of the distances from the start.
func (p *problem) loss(ctx context.Context, x []float64, f fold) float64 {
	values, outside := p.values(x)
	list, err := p.residuals(ctx, values, f)
	if err != nil {
		return math.Inf(1)
	}
	sum := 10 * outside
	for _, r := range list {
		sum += robust(r.error / r.sigma)
	}
	for i := range x {
		sum += x[i] * x[i]
	}
	return sum
}
