package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"slosim/sim/clock"
	"slosim/sim/stats"
)

// settle replaces a warm-up by what MSER-5 finds to be enough: a pilot run of one
// replication starts empty, for as long as the stated warm-up, and its TTFTs in the
// order of sending are cut where the standard error of the rest is least. When the
// cut falls into the pilot's second half, or too few requests come, the stated
// warm-up stays. It returns a sentence on what it did.
func settle(ctx context.Context, e Experiment, workers int) (Experiment, string, error) {
	pilot := e
	pilot.Settle, pilot.Precision, pilot.Replications = false, 0, 1
	pilot.Duration, pilot.Warmup = e.Warmup, 0
	pilot.Start = (e.Start - e.Warmup + 2*clock.Week) % clock.Week
	pilot.Changes, pilot.Faults, pilot.Rollouts, pilot.SLOs, pilot.Rules, pilot.StageBudgets = nil, nil, nil, nil, nil, nil
	type first struct {
		send clock.Time
		ttft float64
	}
	var list []first
	_, err := Run(ctx, pilot, Options{Workers: workers, Served: func(s Served) {
		if s.First != clock.Never && s.Send >= 0 && s.Send < clock.Time(pilot.Duration) {
			list = append(list, first{s.Send, s.First.Sub(s.Send).Seconds()})
		}
	}})
	if err != nil {
		return e, "", err
	}
	slices.SortStableFunc(list, func(a, b first) int { return cmp.Compare(a.send, b.send) })
	values := make([]float64, len(list))
	for i, f := range list {
		values[i] = f.ttft
	}
	cut, ok := stats.MSER5(values)
	if !ok {
		return e, fmt.Sprintf("warm-up: MSER-5 finds no end of the transient in a pilot of %s: all of it is cut", e.Warmup), nil
	}
	stated := e.Warmup
	e.Warmup = clock.Duration(list[cut].send)/clock.Minute*clock.Minute + clock.Minute
	e.Warmup = min(e.Warmup, stated)
	return e, fmt.Sprintf("warm-up: %s by MSER-5, which cuts %d of the %d requests of a pilot of %s", e.Warmup, cut, len(list), stated), nil
}
