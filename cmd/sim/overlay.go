package main

import (
	"fmt"
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
}

// newOverlay reads the result that --measured names; nil without the flag.
func newOverlay(f runFlags, e sim.Experiment) (*overlay, error) {
	if f.measured == "" {
		if f.measuredClass != "" {
			return nil, fmt.Errorf("--measured-class needs --measured FILE")
		}
		return nil, nil
	}
	runs, err := measured.ReadFile(f.measured)
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
		if int(s.Class) != o.class || s.Send < 0 || s.Send >= o.span || s.Last == clock.Never {
			return
		}
		o.mu.Lock()
		o.seen.Add(s.First.Sub(s.Send).Seconds(), s.Last.Sub(s.Send).Seconds(), int(s.Output))
		o.mu.Unlock()
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
	out := &report.Overlay{Name: filepath.Base(o.run.File), Class: o.name, Notes: o.run.Notes}
	for _, m := range []struct {
		name      string
		want, got []float64
	}{{"TTFT", want.TTFT, o.seen.TTFT}, {"TPOT", want.TPOT, o.seen.TPOT}, {"E2E", want.E2E, o.seen.E2E}} {
		metric := report.OverlayMetric{Name: m.name, Measured: sorted(m.want), Simulated: sorted(m.got), Published: map[float64]float64{}}
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
