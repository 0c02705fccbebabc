package engine

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"pgregory.net/rapid"

	"slosim/sim/clock"
	"slosim/workloads"
)

// health is how a replica fared under a load.
type health struct {
	kv        float64 // mean share of the KV blocks in use until the last arrival
	requests  int
	preempted int // requests
	once      int // of them: one time only
	most      int // times one request was preempted
	steps     int // that preempted
	single    int // of them: one request only
	waiting   int32
}

func (h health) share() float64     { return float64(h.preempted) / float64(h.requests) }
func (h health) onceShare() float64 { return float64(h.once) / float64(max(1, h.preempted)) }

// measureHealth runs n requests of a load, in another shape if one is given, and then
// lets the replica finish.
func measureHealth(t *testing.T, v *VLLM, load *chat, n int, shape func(*workloads.Request)) health {
	h := health{requests: n}
	times := map[int32]int{}
	victims := map[clock.Time]int{}
	var events []Event
	finished, used := 0, 0.0
	drain := func(until clock.Time) {
		for now, ok := v.Next(); ok && now <= until; now, ok = v.Next() {
			events = v.Advance(now, events[:0])
			for _, e := range events {
				switch e.Kind {
				case Preempted:
					times[e.ID]++
					victims[e.At]++
				case Finished:
					finished++
				}
			}
		}
	}
	var last clock.Time
	for i := range n {
		now, r := load.next()
		r.ID = int32(i)
		if shape != nil {
			shape(&r)
		}
		drain(now)
		l := v.Load(now)
		used += float64(l.Blocks) / float64(l.Total) * now.Sub(last).Seconds()
		h.waiting, last = l.Waiting, now
		v.Submit(now, &r)
	}
	h.kv = used / clock.Duration(last).Seconds()
	drain(clock.Never - 1)
	if finished != n {
		t.Fatalf("%d of %d finished", finished, n)
	}
	for _, k := range times {
		h.preempted++
		h.most = max(h.most, k)
		if k == 1 {
			h.once++
		}
	}
	for _, k := range victims {
		h.steps++
		if k == 1 {
			h.single++
		}
	}
	return h
}

// Without room in the KV pool vLLM preempts, and stays healthy: a few per cent of
// the requests, nearly all of them once. So it was counted in an instrumented vLLM on
// 19,801 requests (7.4 %, 95 % once, at most 4 times, 98.5 % of the steps that
// preempt evict one), where a simulator that queued naively never got on
// (inference-sim#963). The reason for the calm is that prompts are long beside
// outputs: what the pool lacks is found at admission, not while decoding. Long
// outputs behind short prompts are worse, and shown for contrast.
func TestPreemptionStaysHealthyWhenTheKVPoolIsFull(t *testing.T) {
	var raw strings.Builder
	w := tabwriter.NewWriter(&raw, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "prompts/outputs\trate\tmean KV use\twaiting at the end\tpreempted\tof these once\tmost\tsteps with one victim\t")
	run := func(name string, perSec float64, shape func(*workloads.Request)) health {
		cfg := l40s8B(t)
		h := measureHealth(t, NewVLLM(&cfg), newChat(perSec), 20_000, shape)
		fmt.Fprintf(w, "%s\t%.2f/s\t%.1f %%\t%d\t%.1f %%\t%.1f %%\t%d\t%.1f %%\t\n", name, perSec, 100*h.kv, h.waiting,
			100*h.share(), 100*h.onceShare(), h.most, 100*float64(h.single)/float64(max(1, h.steps)))
		return h
	}
	fmt.Fprintln(w, "vLLM, instrumented\t\t\t\t7.4 %\t95 %\t4\t98.5 %\t")
	run("2000/256", 2.8, nil)
	full := run("2000/256", 2.93, nil)
	over := run("2000/256", 4, nil)
	run("500/512", 5, func(r *workloads.Request) { r.Prompt, r.Output = max(1, r.Prompt/4), 2*r.Output })
	w.Flush()
	checkReport(t, "testdata/vllm/load/preemption.txt", raw.String())

	if full.kv < .93 || full.kv > .97 {
		t.Errorf("mean KV use %.3f: the load is not the one that the test is about", full.kv)
	}
	for name, h := range map[string]health{"at 95 % of the pool": full, "overloaded": over} {
		if h.preempted == 0 || h.share() >= .10 || h.onceShare() < .90 || h.most > 5 {
			t.Errorf("%s: %.1f %% preempted, %.1f %% of these once, at most %d times", name, 100*h.share(), 100*h.onceShare(), h.most)
		}
	}
}

// No load stops the engine: the request that runs first in the scheduler's order is
// no victim of anybody, so in every step at least one token is computed that is never
// lost. All that was submitted ends once, after no more steps than it has tokens, and
// the pool is whole again.
func TestEveryStepOfVLLMGetsOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		tight := rapid.Bool().Draw(t, "tight")
		if tight { // one request of the greatest length, no block more
			s.cfg.KVBlocks, s.cfg.WatermarkBlocks = 1+(s.cfg.MaxModelLen+s.cfg.BlockSize-1)/s.cfg.BlockSize, 0
		}
		burst := rapid.Bool().Draw(t, "burst")
		v := NewVLLM(&s.cfg)
		ends := map[int32]int{}
		submitted, bound, instants := 0, int64(0), int64(0)
		drain := func(until clock.Time) {
			for now, ok := v.Next(); ok && now <= until; now, ok = v.Next() {
				for _, e := range v.Advance(now, nil) {
					if e.Kind == Finished || e.Kind == Rejected {
						ends[e.ID]++
					}
				}
				if instants++; instants > 4*bound+100 {
					t.Fatalf("at %d it still runs after %d instants", now, instants)
				}
			}
		}
		for _, a := range s.acts {
			if burst {
				a.at = 0
			}
			if a.look {
				continue
			}
			drain(a.at)
			if a.req.Prompt == 0 {
				v.SetClock(a.at, a.bin)
				continue
			}
			submitted++
			bound += int64(a.req.Prompt) + int64(min(a.req.Output, s.cfg.MaxModelLen)) + 3 // of a step's depth, and of one too many after EOS
			v.Submit(a.at, &a.req)
		}
		drain(clock.Never - 1)
		for id, n := range ends {
			if n != 1 {
				t.Fatalf("request %d ended %d times", id, n)
			}
		}
		if len(ends) != submitted {
			t.Fatalf("%d of %d requests ended", len(ends), submitted)
		}
		if steps := v.Spent(clock.Never - 1).Steps; steps > bound {
			t.Fatalf("%d steps for %d tokens", steps, bound)
		}
		if l := v.Load(clock.Never - 1); l.Running != 0 || l.Waiting != 0 || l.Blocks != 0 || l.Tokens != 0 {
			t.Fatalf("at rest it holds %+v", l)
		}
	})
}
