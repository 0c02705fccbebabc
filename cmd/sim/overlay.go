package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"slosim/internal/measured"
	"slosim/internal/report"
	"slosim/sim"
	"slosim/sim/clock"
)

// overlay collects the simulated latencies of the class that a measured result is
// laid over. A nil overlay does nothing.
type overlay struct {
	run   measured.Run
	class int
	name  string
	span  clock.Time

	mu   sync.Mutex
	seen measured.Latencies
	sent sent

	replications int // that sent something
}

// newOverlay reads the result that --measured names; nil without the flag.
func newOverlay(f runFlags, e sim.Experiment) (*overlay, error) {
	if f.measured == "" {
		if f.measuredClass != "" {
			return nil, fmt.Errorf("--measured-class needs --measured FILE")
		}
		return nil, nil
	}
	runs, err := measured.ReadResult(f.measured)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range e.Traffic {
		names = append(names, c.Name)
	}
	k := 0
	if f.measuredClass != "" {
		if k = slices.Index(names, f.measuredClass); k < 0 {
			return nil, fmt.Errorf("--measured-class %s: the experiment has no such class%s", f.measuredClass, choices(f.measuredClass, names, strings.Join(names, ", ")))
		}
	}
	return &overlay{run: runs[0], class: k, name: names[k], span: clock.Time(e.Duration)}, nil
}

// observer returns what the run is told to call for every request.
func (o *overlay) observer() func(sim.Served) {
	if o == nil {
		return nil
	}
	return func(s sim.Served) {
		if int(s.Class) != o.class || s.Send < 0 || s.Send >= o.span {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.sent.n++
		o.replications = max(o.replications, s.Replication+1)
		if s.Last == clock.Never {
			return
		}
		o.sent.add(int(s.Prompt), int(s.Output))
		o.seen.Add(s.First.Sub(s.Send).Seconds(), s.Last.Sub(s.Send).Seconds(), int(s.Output))
	}
}

// done returns what the report draws.
func (o *overlay) done() *report.Overlay {
	if o == nil {
		return nil
	}
	var want measured.Latencies
	for _, q := range o.run.Load.Requests {
		if q.Seen && !q.Failed {
			want.Add(q.TTFT, q.E2E, q.Output)
		}
	}
	out := &report.Overlay{Name: filepath.Base(o.run.File), Class: o.name, Notes: append(slices.Clone(o.run.Notes), o.otherTraffic()...)}
	for _, m := range []struct {
		name      string
		want, got []float64
	}{{"TTFT", want.TTFT, o.seen.TTFT}, {"TPOT", want.TPOT, o.seen.TPOT}, {"E2E", want.E2E, o.seen.E2E}} {
		metric := report.OverlayMetric{Name: m.name, Measured: sorted(m.want), Simulated: sorted(m.got), Published: map[float64]float64{}}
		for _, f := range o.run.Figures {
			if f.Metric == m.name+" mean" {
				metric.Mean = f.Value
			}
		}
		for suffix, q := range map[string]float64{" P50": .5, " P90": .9, " P95": .95, " P99": .99} {
			for _, f := range o.run.Figures {
				if f.Metric == m.name+suffix {
					metric.Published[q] = f.Value
				}
			}
		}
		out.Metrics = append(out.Metrics, metric)
	}
	return out
}

func sorted(values []float64) []float64 {
	values = slices.Clone(values)
	slices.Sort(values)
	return values
}

// sent counts what was sent, and sums the lengths of what was answered.
type sent struct{ n, answered, prompt, output int }

func (t *sent) add(prompt, output int) {
	t.answered, t.prompt, t.output = t.answered+1, t.prompt+prompt, t.output+output
}

// unlike is how far the mean lengths or the rate of two loads may lie apart and still
// be called alike; an assumption.
const unlike = .1

// otherTraffic says where the traffic that was simulated is not what was measured:
// their latencies then differ for that reason alone.
func (o *overlay) otherTraffic() []string {
	var want sent
	last := 0.0
	for _, q := range o.run.Load.Requests {
		want.n++
		if !q.Failed {
			want.add(q.Prompt, q.Output)
		}
		last = max(last, q.At)
	}
	if want.answered == 0 || o.sent.answered == 0 {
		return nil
	}
	var parts []string
	compare := func(what string, measured, simulated float64) {
		if math.Abs(simulated-measured) > unlike*measured {
			parts = append(parts, fmt.Sprintf("%s %.4g, not %.4g", what, simulated, measured))
		}
	}
	mean := func(sum int, of sent) float64 { return float64(sum) / float64(of.answered) }
	compare("mean prompt", mean(want.prompt, want), mean(o.sent.prompt, o.sent))
	compare("mean output", mean(want.output, want), mean(o.sent.output, o.sent))
	if span := o.span.Seconds() * float64(o.replications); last > 0 && o.run.Load.InFlight == 0 {
		compare("requests/s", float64(want.n-1)/last, float64(o.sent.n)/span)
	}
	if parts == nil {
		return nil
	}
	return []string{"the simulated traffic is not the measured one (" + strings.Join(parts, "; ") + "): the differences above are of the traffic too"}
}
