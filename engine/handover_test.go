package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// Two replicas, one for prefill and one for decode, with a transfer of random
// length between them: whatever the pools and the load, every request ends once,
// and both replicas are empty in the end.
func TestHandoverLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		s.cfg.MaxWaiting = 0
		s.cfg.Model = toy{base: rapid.Int64Range(1_000_000, 2_000_000_000).Draw(t, "step"), token: 10_000, ctx: 100}
		sides := [2]*VLLM{NewVLLM(&s.cfg), NewVLLM(&s.cfg)}
		slow := rapid.Int64Range(0, 50_000_000).Draw(t, "transfer")
		type event struct {
			at   clock.Time
			what func(now clock.Time)
		}
		var agenda []event
		add := func(at clock.Time, what func(now clock.Time)) {
			k, _ := slices.BinarySearchFunc(agenda, at, func(e event, at clock.Time) int {
				if e.at <= at {
					return -1
				}
				return 1
			})
			agenda = slices.Insert(agenda, k, event{at, what})
		}
		in, ended := 0, map[int32]int{}
		requests := map[int32]workloads.Request{}
		pinned := map[int32]int32{} // id → row on the prefill side
		for _, a := range s.acts {
			if a.req.Prompt == 0 || a.look {
				continue
			}
			in++
			requests[a.req.ID] = a.req
			add(a.at, func(now clock.Time) {
				r := a.req
				r.Handover = workloads.PrefillHalf
				sides[0].Submit(now, &r)
			})
		}
		for steps := 0; ; steps++ {
			now := clock.Never
			if len(agenda) > 0 {
				now = agenda[0].at
			}
			who := -1
			for k, v := range sides {
				if next, ok := v.Next(); ok && next <= now {
					now, who = next, k
				}
			}
			if now == clock.Never {
				break
			}
			if steps > 2_000_000 {
				t.Fatalf("no end: %d of %d", len(ended), in)
			}
			if who < 0 {
				do := agenda[0].what
				agenda = agenda[1:]
				do(now)
				continue
			}
			for _, e := range sides[who].Advance(now, nil) {
				switch e.Kind {
				case KVReady:
					pinned[e.ID] = e.Row
					add(now+1000, func(now clock.Time) {
						r := requests[e.ID]
						r.Handover = workloads.DecodeHalf
						sides[1].Submit(now, &r)
					})
				case Reserved:
					add(now+clock.Time(slow), func(now clock.Time) {
						sides[0].Release(now, pinned[e.ID])
						sides[1].Arrived(now, e.Row)
					})
				case Finished, Rejected:
					ended[e.ID]++
				}
			}
		}
		for id, n := range ended {
			if n != 1 {
				t.Fatalf("request %d ended %d times", id, n)
			}
		}
		if len(ended) != in {
			t.Fatalf("%d in, %d ended", in, len(ended))
		}
		for k, v := range sides {
			if l := v.Load(clock.Time(clock.Week)); l.Blocks != 0 || l.Tokens != 0 || l.Running+l.Waiting != 0 {
				t.Fatalf("side %d keeps %+v", k, l)
			}
		}
	})
}

var _ Handing = (*VLLM)(nil)
var _ models.StepModel = toy{}
