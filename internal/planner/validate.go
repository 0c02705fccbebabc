package planner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// Row is one formula in one scenario.
type Row struct {
	Formula   string         `json:"formula"`
	Scenario  string         `json:"scenario"`
	Axes      []Axis         `json:"-"`
	Claims    string         `json:"claims"`
	Answer    float64        `json:"answer"`
	Simulated stats.Estimate `json:"-"`
	Error     float64        `json:"error"`  // answer ÷ simulated − 1
	Inside    bool           `json:"inside"` // the simultaneous 95 % interval
	Grade     Grade          `json:"grade"`

	Fewest     int     `json:"fewest_gpus,omitempty"`
	ExtraGPUs  int     `json:"extra_gpus"`           // bought for nothing; negative: missing
	ExtraUSD   float64 `json:"extra_usd_per_month"`  // of 30 days
	Held       string  `json:"held_at_answer"`       // "yes", "no" or "" (not a number of GPUs, or not tried)
	Binding    string  `json:"binding,omitempty"`    // the objective that gives way first
	Fault      string  `json:"fault,omitempty"`      // no answer, and why
	NotCovered bool    `json:"unanswered,omitempty"` // no fleet holds the objectives
	op         *operating
	width      float64 // of the simultaneous interval, half of it, relative
}

// Report is what validate found.
type Report struct {
	File      *File
	Scenarios int
	Sims      int
	Requests  int64
	Rows      []Row
	Formulas  []Verdict // in the file's order
	Faults    []string  // scenarios that could not be simulated
	Operating []*operating
}

// Validate simulates the grids and compares every formula with them.
func Validate(ctx context.Context, f *File, o Options) (*Report, error) {
	v := &validation{file: f, lab: newLab(o)}
	for i := range f.Grids {
		for _, s := range f.Grids[i].scenarios() {
			v.ops = append(v.ops, &operating{scenario: s, answers: map[int]*Point{}})
		}
	}
	for _, do := range []func(context.Context) error{v.queues, v.probe, v.drive, v.search} {
		if err := do(ctx); err != nil {
			return nil, err
		}
	}
	r := &Report{File: f, Scenarios: len(v.ops), Operating: v.ops}
	for i := range f.Formulas {
		rows, err := v.evaluate(ctx, &f.Formulas[i])
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, rows...)
	}
	if err := v.tryAnswers(ctx, r.Rows); err != nil {
		return nil, err
	}
	judgeAll(f, r)
	for _, op := range v.ops {
		if op.fault != nil {
			r.Faults = append(r.Faults, fmt.Sprintf("%s: %v", op.scenario.Name, op.fault))
		}
	}
	r.Sims, r.Requests = v.lab.sims, v.lab.requests
	return r, nil
}

type validation struct {
	file *File
	lab  *lab
	ops  []*operating
}

// queues simulates the scenarios with a closed form.
func (v *validation) queues(ctx context.Context) error {
	var wg sync.WaitGroup
	slots := make(chan struct{}, max(1, v.workers()))
	for _, op := range v.ops {
		if !op.scenario.Grid.ClosedForm {
			continue
		}
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			if ctx.Err() == nil {
				op.scenario.rate = op.scenario.load * float64(op.scenario.servers)
				op.wait = queueWait(op.scenario, v.file)
				op.inputs, op.fault = op.scenario.static(nil)
			}
			<-slots
		}()
	}
	wg.Wait()
	return ctx.Err()
}

func (v *validation) workers() int {
	if v.lab.options.Workers > 0 {
		return v.lab.options.Workers
	}
	return 2
}

// services are the scenarios that are simulated as LLM services and still can be.
func (v *validation) services() []*operating {
	var out []*operating
	for _, op := range v.ops {
		if !op.scenario.Grid.ClosedForm && op.fault == nil {
			out = append(out, op)
		}
	}
	return out
}

// each runs one experiment per scenario; a scenario that cannot be simulated takes
// the fault and the others go on.
func (v *validation) each(ctx context.Context, stage string, ops []*operating, make func(*operating) (sim.Experiment, error), done func(*operating, *Point)) error {
	var list []sim.Experiment
	var owner []*operating
	for _, op := range ops {
		e, err := make(op)
		if err != nil {
			op.fault = err
			continue
		}
		list, owner = append(list, e), append(owner, op)
	}
	points, err := v.lab.run(ctx, stage, list)
	if err != nil {
		return err
	}
	for i, p := range points {
		if p.Err != nil {
			owner[i].fault = p.Err
			continue
		}
		done(owner[i], p)
	}
	return nil
}

// probe measures one replica of every setting: overloaded and nearly idle.
func (v *validation) probe(ctx context.Context) error {
	fluid := map[string]float64{}
	err := v.each(ctx, "probing", v.services(), func(op *operating) (sim.Experiment, error) {
		e, err := v.file.experiment(op.scenario, 1, 1)
		return short(e), err
	}, func(op *operating, p *Point) { fluid[op.scenario.setting()] = p.Runs[0].Pools[0].SaturationRate })
	if err != nil {
		return err
	}
	at := func(share float64) func(op *operating) (sim.Experiment, error) {
		return func(op *operating) (sim.Experiment, error) {
			rate := fluid[op.scenario.setting()] * share
			if !(rate > 0) {
				return sim.Experiment{}, errors.New("one replica's saturation has no closed form")
			}
			calm := *op.scenario
			calm.burstiness, calm.Name = 1, "probe of one replica"
			return v.file.experiment(&calm, rate, 1)
		}
	}
	if err := v.each(ctx, "overloading one replica", v.services(), at(1.25), func(op *operating, p *Point) { op.full = p }); err != nil {
		return err
	}
	return v.each(ctx, "one replica at ease", v.services(), at(.05), func(op *operating, p *Point) { op.idle = p })
}

// short keeps ten seconds of an experiment: enough for what has a closed form.
func short(e sim.Experiment) sim.Experiment {
	e.Duration, e.Warmup, e.Replications = 10*clock.Second, 0, 1
	return e
}

// drive simulates the scenarios that name a load.
func (v *validation) drive(ctx context.Context) error {
	var ops []*operating
	for _, op := range v.services() {
		if op.scenario.load > 0 {
			op.scenario.rate = op.scenario.load * op.full.of(served).V
			ops = append(ops, op)
		}
	}
	return v.each(ctx, "grid of loads", ops, func(op *operating) (sim.Experiment, error) {
		return v.file.experiment(op.scenario, op.scenario.rate, 1)
	}, func(op *operating, p *Point) { op.point, op.replicas = p, 1 })
}

// search finds the fewest replicas of the scenarios that name a rate, all of them
// side by side: from the analytic bound upwards, doubling the step, then bisection.
func (v *validation) search(ctx context.Context) error {
	type bracket struct{ lo, hi, next, step int }
	open := map[*operating]*bracket{}
	for _, op := range v.services() {
		if op.scenario.load > 0 {
			continue
		}
		if ok, name := op.idle.holds(); !ok {
			op.why = fmt.Sprintf("one replica misses %s at a twentieth of its saturation", name)
			continue
		}
		first := max(1, int(math.Ceil(op.scenario.rate/op.full.of(served).V-1e-9)))
		open[op] = &bracket{lo: first - 1, next: first, step: 1}
	}
	for len(open) > 0 {
		var ops []*operating
		for _, op := range v.ops {
			if open[op] != nil {
				ops = append(ops, op)
			}
		}
		err := v.each(ctx, "fewest replicas", ops, func(op *operating) (sim.Experiment, error) {
			return v.file.experiment(op.scenario, op.scenario.rate, open[op].next)
		}, func(op *operating, p *Point) {
			b := open[op]
			op.answers[b.next] = p
			if ok, _ := p.holds(); ok {
				b.hi, op.point, op.replicas, op.fewest = b.next, p, b.next, b.next
			} else {
				b.lo = b.next
			}
			switch {
			case b.hi == 0 && b.lo >= op.scenario.Grid.MaxReplicas:
				op.why = fmt.Sprintf("not even %d replicas hold every objective", b.lo)
				delete(open, op)
			case b.hi == 0:
				b.next = min(b.lo+b.step, op.scenario.Grid.MaxReplicas)
				b.step *= 2
			case b.hi-b.lo <= 1:
				delete(open, op)
			default:
				b.next = (b.lo + b.hi) / 2
			}
		})
		if err != nil {
			return err
		}
		for _, op := range ops {
			if op.fault != nil {
				delete(open, op)
			}
		}
	}
	return v.complete()
}

// complete fills in the inputs that come from simulation.
func (v *validation) complete() error {
	for _, op := range v.services() {
		if op.point == nil {
			continue
		}
		e := op.point.Experiment
		in, err := op.scenario.static(&e)
		if err != nil {
			op.fault = err
			continue
		}
		p := op.point
		for name, f := range map[string]func(*sim.Result) float64{
			"ttft_mean": ttft(mean), "ttft_p50": ttft(p50), "ttft_p95": ttft(p95), "tpot_mean": tpot(mean), "tpot_p50": tpot(p50),
			"e2e_mean": func(r *sim.Result) float64 { return class(r).E2E.Mean.V }, "kv_peak": func(r *sim.Result) float64 { return r.Pools[0].KVPeak },
		} {
			in[name] = p.of(f).V
		}
		in["saturation"] = op.full.of(served).V
		in["held"] = op.full.of(running).V
		in["replicas"] = float64(op.replicas)
		in["load"] = op.scenario.rate / (in["saturation"] * in["replicas"])
		in["idle_ttft"], in["idle_tpot"] = op.idle.of(ttft(p50)).V, op.idle.of(tpot(p50)).V
		in["idle_e2e"] = op.idle.of(func(r *sim.Result) float64 { return class(r).E2E.Mean.V }).V
		in["service_cv2"] = workCV2(op)
		op.inputs = in
	}
	return nil
}

// workCV2 is the squared coefficient of variation of a request's work, taken as its
// prompt and output tokens: an assumption of those who use G/G formulas on LLMs.
func workCV2(op *operating) float64 {
	t := op.scenario.Grid.Tail
	if t <= 1 {
		return 0
	}
	// σ of a lognormal from P99 ÷ mean = exp(2.326σ − σ²/2).
	z := 2.3263478740408408
	sigma := z - math.Sqrt(max(0, z*z-2*math.Log(t)))
	cv2 := math.Exp(sigma*sigma) - 1
	p, o := op.scenario.prompt, op.scenario.output
	return cv2 * (p*p + o*o) / ((p + o) * (p + o))
}

// maxTimeouts ends the questions to a planner that never answers.
const maxTimeouts = 3

// evaluate gives a formula every scenario that it fits.
func (v *validation) evaluate(ctx context.Context, fm *Formula) ([]Row, error) {
	c := claims[fm.Claims]
	programs := map[bool]*compiled{}
	if fm.Expr != "" {
		for _, queue := range []bool{false, true} {
			if p, err := fm.compile(inputNames(queue)); err == nil {
				programs[queue] = p
			}
		}
	}
	timeouts := 0
	var rows []Row
	for _, op := range v.ops {
		g := op.scenario.Grid
		if !fm.on(*g) || fm.Expr != "" && programs[g.ClosedForm] == nil || op.fault != nil || c.sizing && op.scenario.load > 0 {
			continue
		}
		row := Row{Formula: fm.Name, Scenario: op.scenario.Name, Axes: op.scenario.Axes, Claims: fm.Claims, op: op}
		if op.inputs == nil {
			row.NotCovered, row.Fault = true, op.why
			rows = append(rows, row)
			continue
		}
		var err error
		switch {
		case fm.Expr != "":
			var out Inputs
			out, err = programs[g.ClosedForm].eval(op.inputs, fm.Constants)
			row.Answer = out[""]
		case timeouts >= maxTimeouts:
			err = fmt.Errorf("not asked: it timed out in %d scenarios in a row", maxTimeouts)
		default:
			row.Answer, err = fm.ask(ctx, v.file.Dir, op.scenario.Name, op.inputs)
			timeouts++
			if !errors.Is(err, errTimeout) {
				timeouts = 0
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			err = sane(row.Answer, &c)
		}
		if err != nil {
			row.Fault = err.Error()
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// sane refuses answers that no planner can mean.
func sane(v float64, c *claim) error {
	switch {
	case math.IsNaN(v):
		return errors.New("the answer is no number (0 ÷ 0?)")
	case v < 0:
		return fmt.Errorf("the answer is negative: %.6g", v)
	case c.sizing && !(v <= 1e6):
		return fmt.Errorf("the answer is absurd: %.6g %s", v, c.unit)
	}
	return nil
}

// tryAnswers simulates the fleets that formulas ask for, as far as they are between
// what was tried already and four times what is needed; beyond, more replicas do not
// make an objective fail.
func (v *validation) tryAnswers(ctx context.Context, rows []Row) error {
	type key struct {
		op *operating
		n  int
	}
	asked := map[key]bool{}
	var list []sim.Experiment
	var keys []key
	for i := range rows {
		n := rows[i].fleet()
		op := rows[i].op
		if n < 1 || op.answers[n] != nil || asked[key{op, n}] || n > 4*op.fewest || n > op.scenario.Grid.MaxReplicas || n < (op.fewest+3)/4 {
			continue
		}
		asked[key{op, n}] = true
		e, err := v.file.experiment(op.scenario, op.scenario.rate, n)
		if err != nil {
			continue
		}
		list, keys = append(list, e), append(keys, key{op, n})
	}
	points, err := v.lab.run(ctx, "fleets that the formulas ask for", list)
	if err != nil {
		return err
	}
	for i, p := range points {
		if p.Err == nil {
			keys[i].op.answers[keys[i].n] = p
		}
	}
	return nil
}

// fleet is the whole number of replicas that a row's answer buys; 0 if none.
func (r *Row) fleet() int {
	c := claims[r.Claims]
	if !c.sizing || r.Fault != "" {
		return 0
	}
	n := r.Answer
	if c.unit == "GPUs" {
		n /= float64(r.op.scenario.tp)
	}
	return int(math.Ceil(n - 1e-9))
}
