package traffic

import (
	"fmt"
	"math"
	"slices"

	"slosim/internal/report"
	"slosim/models"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/stats"
	"slosim/workloads"
)

// mostDrawn bounds the requests that a preview draws: beyond it only the
// beginning of the run is drawn.
const mostDrawn = 20_000_000

// Preview is the traffic that an experiment would send under its own seed.
type Preview struct {
	Exp     sim.Experiment
	Span    clock.Duration // that was drawn
	Classes []Previewed
	Loads   []Concurrency // per pool with open loops
}

// Previewed is one class of a preview.
type Previewed struct {
	Name     string
	A        *Analysis
	Expected []float64 // rate per second in each window; nil for a trace
	Cohorts  []Cohort
	Skipped  string  // why nothing was drawn
	Found    float64 // prompt tokens that a prefix cache of unbounded memory finds
}

// Cohort is what a change moves.
type Cohort struct {
	Name           string
	N              int64
	Prompt, Output Lengths
}

// NewPreview draws the traffic of an experiment. Nothing is simulated: what
// depends on answers, such as users in a closed loop, is not drawn.
func NewPreview(e sim.Experiment) (*Preview, error) {
	p := &Preview{Exp: e, Span: e.Duration}
	expected := 0.0
	for i := range e.Traffic {
		if c := &e.Traffic[i]; open(c) && c.Trace == nil {
			in := workloads.NewIntensity(c, e.Changes, e.Start)
			expected += in.Expected(0, clock.Time(e.Duration))
		}
	}
	if expected > mostDrawn {
		p.Span = clock.Duration(float64(e.Duration) * mostDrawn / expected)
	}
	for i := range e.Traffic {
		c, err := p.class(&e.Traffic[i])
		if err != nil {
			return nil, err
		}
		p.Classes = append(p.Classes, c)
	}
	for i := range e.Pools {
		if load, ok := p.concurrency(&e.Pools[i]); ok {
			p.Loads = append(p.Loads, load)
		}
	}
	return p, nil
}

// open tells whether a class sends without waiting for answers.
func open(c *workloads.Class) bool {
	return c.Client.Users == 0 && (c.Trace != nil || c.Rate.Mean > 0)
}

func (p *Preview) class(c *workloads.Class) (Previewed, error) {
	out := Previewed{Name: c.Name}
	if !open(c) {
		out.Skipped = "sends when answers arrive: its rate depends on the cluster"
		if n := c.Client.Users; n > 0 {
			out.Skipped = fmt.Sprintf("%s users in a closed loop: at most so many requests at once, and a rate that depends on the answers", report.Whole(int64(n)))
		}
		return out, nil
	}
	end := clock.Time(p.Span)
	rows := int64(1)
	if c.Trace == nil {
		in := workloads.NewIntensity(c, p.Exp.Changes, p.Exp.Start)
		rows = int64(in.Expected(0, end))
	} else if about, err := workloads.ScanTrace(*c.Trace); err == nil {
		rows = int64(float64(about.Rows) * p.Span.Seconds() / max(1, about.Span.Seconds()))
	}
	out.A = NewAnalysis(p.Span-1, rows)
	cohorts := map[int32]*Cohort{}
	count := func(at clock.Time, r *workloads.Request, row *workloads.Row) {
		if at < 0 {
			return
		}
		before := out.A.Reuse.Found
		out.A.Add(clock.Duration(at), r.Prompt, r.Output, row)
		out.Found += float64(max(r.Cached, min(r.Chain.GroupUnits*r.Chain.UnitSize, r.Prompt-1)) + int32(out.A.Reuse.Found-before))
		co := cohorts[r.Cohort]
		if co == nil {
			co = &Cohort{Name: "existing", Prompt: newLengths(), Output: newLengths()}
			if r.Cohort > 0 {
				co.Name = p.Exp.Changes[r.Cohort-1].Name
			}
			cohorts[r.Cohort] = co
		}
		co.N++
		co.Prompt.add(r.Prompt)
		co.Output.add(r.Output)
	}
	err := p.draw(c, end, count)
	for id := range int32(len(p.Exp.Changes) + 1) {
		if co := cohorts[id]; co != nil {
			out.Cohorts = append(out.Cohorts, *co)
		}
	}
	if err == nil && c.Trace == nil {
		in := workloads.NewIntensity(c, p.Exp.Changes, p.Exp.Start)
		for i := range out.A.Windows {
			from := clock.Time(out.A.Width) * clock.Time(i)
			to := min(from.Add(out.A.Width), end)
			out.Expected = append(out.Expected, in.Expected(from, to)/max(to.Sub(from).Seconds(), 1e-9))
		}
	}
	out.A.Span = p.Span
	return out, err
}

func (p *Preview) draw(c *workloads.Class, end clock.Time, count func(clock.Time, *workloads.Request, *workloads.Row)) error {
	from := clock.Time(-p.Exp.Warmup)
	switch {
	case c.Session.On():
		return drawSessions(c, p.Exp.Changes, p.Exp.Start, p.Exp.Seed, from, end, func(at clock.Time, r *workloads.Request) { count(at, r, nil) })
	case c.Trace == nil:
		return Draw(c, p.Exp.Changes, p.Exp.Start, p.Exp.Seed, from, end, func(at clock.Time, r *workloads.Request) { count(at, r, nil) })
	}
	shaper, err := workloads.NewShaper(c, p.Exp.Changes, p.Exp.Seed)
	if err != nil {
		return err
	}
	in, err := workloads.OpenTrace(*c.Trace)
	if err != nil {
		return err
	}
	defer in.Close()
	var r workloads.Request
	for {
		row, err := in.Next()
		at := from.Add(row.Arrival)
		if err != nil || !row.OK || at >= end {
			return err
		}
		shaper.Replay(row, at, &r)
		count(at, &r, &row)
	}
}

// Concurrency is what Little's law makes of the mean rate.
type Concurrency struct {
	Pool         string
	Rate         float64 // per second
	InFlight     float64 // requests at once, all replicas
	E2E          float64 // seconds, per request
	PerReplica   float64 // requests at once on one replica
	Limit        int32   // max_num_seqs
	PeakInFlight float64 // at the busiest window's rate
	Full         bool    // the mean rate does not fit
	PeakFull     bool
}

// concurrency estimates requests in flight: Little's law, N = λ·T, with the time T
// that a request takes in a batch of N/replicas, without queueing. T depends on N,
// so the two are solved together. A prefix cache finds what one of unbounded
// memory would; the hand-over between pools, heat and closed loops are left out.
func (p *Preview) concurrency(pool *sim.Pool) (Concurrency, bool) {
	out := Concurrency{Pool: pool.Name, Limit: pool.Engine.MaxSeqs}
	var rate, high, prompt, output, found float64
	for i := range p.Classes {
		c := &p.Classes[i]
		if c.A == nil || c.A.Rows == 0 || len(pool.Classes) > 0 && !slices.Contains(pool.Classes, c.Name) {
			continue
		}
		peak, _ := c.A.extremes()
		rate, high = rate+c.A.Rate(), high+peak
		prompt += c.A.Rate() * c.A.Prompt.Mean()
		output += c.A.Rate() * c.A.Output.Mean()
		if pool.Engine.PrefixCache {
			found += c.A.Rate() * c.Found / float64(c.A.Rows)
		}
	}
	step, err := models.NewStepper(pool.Deployment)
	if pool.Role != "" || rate == 0 || err != nil {
		return out, false
	}
	n := float64(pool.Replicas)
	prompt, output, found = prompt/rate, output/rate, found/rate
	out.Rate = rate
	out.PerReplica, out.E2E, out.Full = little(step, pool, rate/n, prompt, found, output)
	out.PeakInFlight, _, out.PeakFull = little(step, pool, high/n, prompt, found, output)
	out.InFlight, out.PeakInFlight = out.PerReplica*n, out.PeakInFlight*n
	return out, true
}

// little returns requests in flight on a replica and the time of each, for rate
// requests per second of the mean lengths, of whose prompts so many tokens are
// found; full if they do not fit.
func little(step models.StepModel, pool *sim.Pool, rate, prompt, found, output float64) (n, e2e float64, full bool) {
	host := pool.Deployment.Host
	front := float64(host.FrontFixedPs) + float64(host.FrontPerTokenPs)*prompt
	held, fresh := prompt+output/2, max(1, prompt-found)
	most := min(float64(pool.Engine.MaxSeqs), float64(pool.Engine.KVBlocks-1)*float64(pool.Engine.BlockSize)/held)
	budget := float64(pool.Engine.MaxBatchedTokens)
	if budget == 0 {
		budget = 8192
	}
	for n = 1; n < most; n = max(n+1, n*1.02) {
		// A step decodes n rows and computes the prompts that arrive meanwhile.
		t := 0.02
		for range 30 {
			prefill := min(rate*fresh*t, budget-min(n, budget-1))
			b := models.Batch{
				Tokens: int32(max(1, math.Round(n+prefill))), Seqs: int32(math.Ceil(n + rate*t)), DecodeSeqs: int32(n), PrefillTokens: int32(prefill),
				DecodeCtx: int64(n * held), PrefillArea: int64(prefill * (prompt + found) / 2),
			}
			t = float64(step.Step(b, 0).Total()) / 1e12
		}
		if rate*fresh*t > budget { // prompts pile up
			return n, math.Inf(1), true
		}
		e2e = front/1e12 + t*(output+1)
		if rate*e2e <= n {
			return min(n, rate*e2e), e2e, false
		}
	}
	return most, math.Inf(1), true
}

func newLengths() Lengths { return Lengths{Hist: stats.NewHist(precision)} }

// Grids are the tables of a preview, for a terminal.
func (p *Preview) Grids() []report.Grid {
	rates := report.Grid{Caption: "rate", Left: 1, Head: []string{"class", "requests", "mean/s", "highest/s", "lowest/s", "gap CV", "prompt tokens/s", "output tokens/s"}}
	var names []string
	var lists []*Lengths
	for i := range p.Classes {
		c := &p.Classes[i]
		if c.A == nil {
			rates.Notes = append(rates.Notes, c.Name+": "+c.Skipped+".")
			continue
		}
		high, low := c.A.extremes()
		rate := float64(c.A.Rows) / p.Span.Seconds()
		rates.Rows = append(rates.Rows, []string{c.Name, report.Whole(c.A.Rows), report.Number(rate), report.Number(high), report.Number(low), fmt.Sprintf("%.2f", c.A.GapCV()),
			report.Number(rate * c.A.Prompt.Mean()), report.Number(rate * c.A.Output.Mean())})
		note := fmt.Sprintf("%s: highest and lowest in windows of %s.", c.Name, report.Span(c.A.Width))
		if p.Exp.Traffic[i].Session.On() {
			note += " Turns of sessions, drawn as if answers took no time."
		}
		rates.Notes = append(rates.Notes, note)
		for k := range c.Cohorts {
			co := &c.Cohorts[k]
			label := c.Name
			if len(c.Cohorts) > 1 || co.Name != "existing" {
				label += ", " + co.Name
			}
			names = append(names, label+": prompt", label+": output")
			lists = append(lists, &co.Prompt, &co.Output)
		}
	}
	if p.Span < p.Exp.Duration {
		rates.Notes = append(rates.Notes, fmt.Sprintf("Only the first %s are drawn: a preview draws up to %s requests.", report.Span(whole(p.Span)), report.Whole(mostDrawn)))
	}
	out := []report.Grid{rates}
	if len(lists) > 0 {
		g := LengthGrid(names, lists)
		g.Caption = "lengths"
		out = append(out, g)
	}
	if len(p.Loads) > 0 {
		out = append(out, p.loadGrid())
	}
	return out
}

func (p *Preview) loadGrid() report.Grid {
	g := report.Grid{Caption: "concurrency", Left: 1, Head: []string{"pool", "requests/s", "time each", "at once", "per replica", "max_num_seqs", "at once, highest rate"},
		Notes: []string{"Little's law with mean lengths and the step times of such a batch: no queue, no heat; with prefix_caching, all that repeats is found. \"full\": more than a replica holds, so that a queue would grow."}}
	for _, l := range p.Loads {
		mean, each, per, peak := report.Number(math.Round(l.InFlight)), report.Seconds(l.E2E), report.Number(l.PerReplica), report.Number(math.Round(l.PeakInFlight))
		if l.Full {
			mean, each, per = "full", "–", "full"
		}
		if l.PeakFull {
			peak = "full"
		}
		g.Rows = append(g.Rows, []string{l.Pool, report.Number(l.Rate), each, mean, per, report.Whole(int64(l.Limit)), peak})
	}
	return g
}

// Document is the page of a preview.
func (p *Preview) Document(command string) *report.Document {
	total, prompt, output := 0.0, 0.0, 0.0
	d := &report.Document{Title: "Traffic of " + p.Exp.Name, Command: command, Start: p.Exp.Start,
		Setting: fmt.Sprintf("%s from %s, seed %d, nothing simulated", report.Span(whole(p.Span)), clock.Time(0).Label(p.Exp.Start), p.Exp.Seed)}
	for i := range p.Classes {
		c := &p.Classes[i]
		if c.A == nil {
			d.Notes = append(d.Notes, c.Name+": "+c.Skipped)
			continue
		}
		rate := float64(c.A.Rows) / p.Span.Seconds()
		total += rate
		prompt += rate * c.A.Prompt.Mean()
		output += rate * c.A.Output.Mean()
		id := fmt.Sprintf("c%d", i)
		s := report.Section{ID: id, Title: c.Name, Plots: []report.Plot{ratePlot(id+"-rate", c.A, c.Expected, func(at clock.Duration) string { return clock.Time(at).Label(p.Exp.Start) }), tokenPlot(id+"-tokens", c.A)}}
		for _, ch := range p.Exp.Changes {
			if ch.Class != c.Name || ch.At >= p.Span {
				continue
			}
			for k := range s.Plots {
				s.Plots[k].Moments = append(s.Plots[k].Moments, report.Moment{T: clock.Time(ch.At), Name: ch.Name})
			}
		}
		if c.A.Rows > 0 {
			s.Plots = append(s.Plots, lengthPlot(id+"-prompts", "prompts", c.A.Prompt.Hist, "--prefill"), lengthPlot(id+"-outputs", "outputs", c.A.Output.Hist, "--decode"))
		}
		d.Sections = append(d.Sections, s)
	}
	d.Headline = fmt.Sprintf("%s requests, %s prompt and %s output tokens per second on average", report.Number(total), report.Number(prompt), report.Number(output))
	for _, l := range p.Loads {
		f := report.Fact{Label: "In flight, pool " + l.Pool, Value: report.Number(math.Round(l.InFlight)), Basis: "Little's law, " + report.Seconds(l.E2E) + " each; no queue"}
		if l.Full {
			f.Value, f.Basis = "full", "more than the pool can hold at the mean rate"
		}
		d.Facts = append(d.Facts, f)
	}
	grids := p.Grids()
	d.Sections = append(d.Sections, report.Section{ID: "numbers", Title: "In numbers", Grids: grids})
	return d
}
