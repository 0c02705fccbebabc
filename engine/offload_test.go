package engine

import (
	"testing"

	"pgregory.net/rapid"

	"slosim/sim/clock"
	"slosim/workloads"
)

// A conversation whose KV was evicted by others comes back from host memory: the
// prompt's cached part is loaded at the link's speed instead of computed.
func TestEvictedContentComesBackOverPCIe(t *testing.T) {
	ttft := func(o Offload) (clock.Duration, Spent) {
		v := NewVLLM(&Config{
			MaxBatchedTokens: 2048, MaxSeqs: 4, MaxModelLen: 1600, BlockSize: 16, KVBlocks: 102, ReserveFullPrompt: true, PrefixCache: true,
			Model: toy{base: 1_000_000_000, token: 100_000_000}, Offload: o, // 0.1 ms per token: a block computes in 1.6 ms
		})
		talk := workloads.Chain{Session: 77, UnitSize: 64}
		at := clock.Time(0)
		var first clock.Duration
		for i, r := range []workloads.Request{
			{Prompt: 1024, Output: 2, Chain: talk}, {Prompt: 1500, Output: 2}, {Prompt: 1400, Output: 2, Chain: talk},
		} {
			r.ID = int32(i)
			sent := at
			v.Submit(at, &r)
			for next, ok := v.Next(); ok; next, ok = v.Next() {
				for _, e := range v.Advance(next, nil) {
					if e.Kind == FirstToken && i == 2 {
						first = e.At.Sub(sent)
					}
				}
				at = next
			}
			at += clock.Time(clock.Second)
		}
		return first, *v.Spent(at)
	}
	without, _ := ttft(Offload{})
	with, spent := ttft(Offload{Blocks: 1000, BlockPs: 100_000_000}) // 0.1 ms per block
	// The 1,500 tokens in between leave 7 of the 64 blocks on the GPU. Without a
	// second tier 1400 − 112 tokens are computed, with one step's 1 ms; with it 57
	// blocks load in 5.7 ms and 376 tokens are computed.
	if d := without - clock.FromSeconds(0.001+0.0001*(1400-112)); d < 0 || d > 10*clock.Microsecond {
		t.Errorf("without: %v", without)
	}
	if d := with - clock.FromSeconds(0.001+0.0057+0.0001*376); d < 0 || d > 10*clock.Microsecond {
		t.Errorf("with: %v", with)
	}
	if spent.Loaded != 57*16 || spent.Hit != 64*16 {
		t.Errorf("%d tokens loaded, %d found", spent.Loaded, spent.Hit)
	}
}

// The second tier never holds more than its capacity and counts what it holds,
// whatever runs of whatever units come and go.
func TestTheSecondTierKeepsItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s store
		s.init(Offload{Blocks: rapid.Int32Range(1, 40).Draw(t, "capacity")})
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			from := rapid.Int32Range(0, 20).Draw(t, "from")
			s.keep(rapid.Uint64Range(1, 8).Draw(t, "id"), from, from+rapid.Int32Range(1, 30).Draw(t, "blocks"))
			held, runs := int32(0), 0
			for k := s.oldest; k != none; k = s.items[k].next {
				x := &s.items[k]
				if x.from >= x.to || x.from < 0 {
					t.Fatalf("empty run %+v", x)
				}
				if at, ok := s.index.get(x.id); !ok || at != k {
					t.Fatalf("run %+v is not findable", x)
				}
				held += x.to - x.from
				runs++
			}
			if held != s.used || s.used > s.cfg.Blocks || runs != s.index.n {
				t.Fatalf("%d blocks in %d runs, %d counted, %d in the index, %d allowed", held, runs, s.used, s.index.n, s.cfg.Blocks)
			}
		}
	})
}
