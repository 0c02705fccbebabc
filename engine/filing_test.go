package engine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// A replica that files content from the first moment that anybody could find it does
// what one does that files always.
func TestFilingLateChangesNothing(t *testing.T) {
	late := 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		s.cfg.PrefixCache, s.cfg.Offload = true, Offload{}
		s.cfg.Stepping = rapid.Bool().Draw(t, "stepping")
		alone := rapid.IntRange(0, len(s.acts)).Draw(t, "alone at first")
		for i := range s.acts {
			r := &s.acts[i].req
			switch {
			case i < alone:
				r.Chain = workloads.Chain{}
			case r.Chain.Known() && rapid.IntRange(0, 3).Draw(t, "odd") == 0:
				r.Chain.UnitSize = s.cfg.BlockSize + 1 // no unit ends where a block does
			}
			if r.Prompt > 0 && !r.Chain.Known() && rapid.IntRange(0, 2).Draw(t, "hits") == 0 {
				r.Cached = rapid.Int32Range(0, r.Prompt).Draw(t, "hit")
			}
		}
		var seen [2][]string
		for k := range seen {
			v := NewVLLM(&s.cfg)
			v.filing = v.filing || k == 1
			events := sorted(s.play(v, func(now clock.Time) { seen[k] = append(seen[k], fmt.Sprintf("%+v", v.Load(now))) }))
			seen[k] = append(seen[k], fmt.Sprintf("%+v %+v %+v %+v", events, s.told, s.works, *v.Spent(s.until)))
			if k == 0 && v.filing && alone > 0 {
				late++
			}
		}
		if !slices.Equal(seen[0], seen[1]) {
			t.Fatalf("late  %v\nalways %v", seen[0], seen[1])
		}
	})
	if late == 0 {
		t.Error("no scenario began to file on the way")
	}
}

// What routers are told of a cache does not depend on who has looked at the replica.
func TestCacheIsSeenAsItIs(t *testing.T) {
	look := func(look func(v *VLLM, now clock.Time)) int32 {
		v := NewVLLM(&Config{
			MaxBatchedTokens: 2048, MaxSeqs: 4, MaxModelLen: 1000, BlockSize: 16, KVBlocks: 65, PrefixCache: true, ReserveFullPrompt: true,
			Model: toy{base: 1_000_000_000, token: 100_000, ctx: 10}, Host: models.Host{Async: true},
		})
		known := workloads.Request{ID: 0, Prompt: 600, Output: 2, Chain: workloads.Chain{Session: 77, UnitSize: 1 << 30}}
		long := workloads.Request{ID: 1, Prompt: 16, Output: 900} // takes the blocks of the first in equal steps
		run := func(until clock.Time) {
			for at, ok := v.Next(); ok && at <= until; at, ok = v.Next() {
				v.Advance(at, nil)
			}
		}
		v.Submit(0, &known)
		run(clock.Time(2 * clock.Second))
		v.Submit(clock.Time(2*clock.Second), &long)
		run(clock.Time(2500 * clock.Millisecond))
		look(v, clock.Time(2800*clock.Millisecond))
		return v.Cached(&known)
	}
	spent := look(func(v *VLLM, now clock.Time) { v.Spent(now) })
	load := look(func(v *VLLM, now clock.Time) { v.Load(now) })
	if spent != load || load == 0 || load >= 600 {
		t.Errorf("%d tokens are cached after a look at the work, %d after one at the load; want equal, and fewer than were", spent, load)
	}
}

// The packed counts are those of single rows, at any block size and up to the most rows.
func TestResiduesCountRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := int32(1) << rapid.IntRange(0, 10).Draw(t, "block")
		var c residues
		c.init(block)
		rows := make([]int32, block) // by heldAt0 modulo the block size
		for left := int32(maxRows); left > 0; {
			n := rapid.Int32Range(1, min(left, 1<<15-1)).Draw(t, "rows")
			heldAt0 := rapid.Int64Range(-5000, 5000).Draw(t, "heldAt0")
			c.add(heldAt0, int16(n))
			rows[heldAt0&int64(block-1)] += n
			left -= n
		}
		first, n := rapid.Int64Range(0, 5000).Draw(t, "first"), rapid.Int64Range(0, int64(block-1)).Draw(t, "steps")
		sum := int32(0)
		for s := first; s < first+n; s++ {
			need := rows[(1-s)&int64(block-1)]
			if got := c.need(s); got != need {
				t.Fatalf("step %d needs %d blocks, want %d", s, got, need)
			}
			sum += need
		}
		if got := c.needs(first, n); got != sum {
			t.Fatalf("%d steps from %d on need %d blocks, want %d", n, first, got, sum)
		}
	})
}
