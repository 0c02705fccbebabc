package engine

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// What was foreseen of an arrival that is taken back, or that others join, leaves no trace
// in what comes instead: a replica that is asked what comes next all the time does what one
// does that is asked nothing and steps.
func TestAChangedMindLeavesNoTrace(t *testing.T) {
	stale := 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			MaxBatchedTokens: 2048, MaxSeqs: 16, MaxModelLen: 4000, BlockSize: 16, KVBlocks: 1001,
			Model: toy{base: 5_000_000_000, token: 3_000_000, ctx: 100}, Clock: 1,
			Host: models.Host{Async: rapid.Bool().Draw(t, "async"), FrontFixedPs: 1_000_000_000, FrontPerTokenPs: 1_000_000},
		}
		cfg.Host.FrontPerTokenPs *= rapid.Int64Range(0, 1).Draw(t, "by length")
		type act struct {
			at     clock.Time
			req    workloads.Request
			cancel bool // at once, after a look at what comes next
			bin    int
		}
		var acts []act
		now, id := clock.Time(0), int32(0)
		for range rapid.IntRange(1, 30).Draw(t, "acts") {
			now += clock.Time(rapid.Int64Range(0, 30_000_000).Draw(t, "gap"))
			for range rapid.IntRange(1, 2).Draw(t, "at once") {
				acts = append(acts, act{
					at: now, cancel: rapid.Bool().Draw(t, "taken back"), bin: rapid.IntRange(1, 2).Draw(t, "clock"),
					req: workloads.Request{ID: id, Prompt: rapid.Int32Range(1, 600).Draw(t, "prompt"), Output: rapid.Int32Range(1, 12).Draw(t, "output")},
				})
				id++
			}
		}
		play := func(stepping bool) string {
			cfg.Stepping = stepping
			v := NewVLLM(&cfg)
			var out []Event
			for _, a := range acts {
				if !stepping {
					for at, ok := v.Next(); ok && at <= a.at; at, ok = v.Next() {
						out = v.Advance(at, out)
					}
				}
				out = v.Advance(a.at, out)
				handle := v.Submit(a.at, &a.req)
				if !stepping {
					v.Next()
				}
				if a.cancel {
					v.Cancel(a.at, handle, a.req.ID)
					if p := &v.ahead; p.step > v.newest {
						stale++
					}
				}
				if a.bin != v.bin {
					v.SetClock(a.at, a.bin)
				}
			}
			end := now + clock.Time(100*clock.Second)
			out = v.Advance(end, out)
			s := v.Spent(end)
			return fmt.Sprint(sorted(out), s.Cost, s.Steps, s.Busy)
		}
		if stretched, stepped := play(false), play(true); stretched != stepped {
			t.Fatalf("\nstretched %s\nstepped   %s", stretched, stepped)
		}
	})
	if stale == 0 {
		t.Error("nothing was foreseen of an arrival that was taken back")
	}
}
