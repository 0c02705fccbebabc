package engine

import (
	"testing"

	"pgregory.net/rapid"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

var (
	_ Replica = (*SGLang)(nil)
	_ Replica = (*TRTLLM)(nil)
	_ Replica = (*TGI)(nil)
	_ Replica = (*Static)(nil)
)

// kind makes one of the row-wise replicas; core gives the tests a look inside.
type kind struct {
	name string
	make func(Config) (r Replica, core *rowwise)
}

// kindsAsking returns every kind and policy, for clients that ask for n new tokens.
func kindsAsking(n int32) []kind {
	list := []kind{
		{"sglang", func(c Config) (Replica, *rowwise) {
			s := NewSGLang(c, SGLangOptions{MaxNewTokens: n})
			return s, &s.rowwise
		}},
		{"sglang-mixed", func(c Config) (Replica, *rowwise) {
			s := NewSGLang(c, SGLangOptions{MaxNewTokens: n, MixedChunk: true, ChunkTokens: mixedChunk(c), Conservativeness: .01})
			return s, &s.rowwise
		}},
		{"tgi", func(c Config) (Replica, *rowwise) {
			g := NewTGI(c, TGIOptions{MaxNewTokens: n, MaxWaitingTokens: 7})
			return g, &g.rowwise
		}},
		{"static", func(c Config) (Replica, *rowwise) { s := NewStatic(c); return s, &s.rowwise }},
	}
	for policy, name := range []string{"trtllm-no-evict", "trtllm-max-utilization", "trtllm-static"} {
		list = append(list, kind{name, func(c Config) (Replica, *rowwise) {
			t := NewTRTLLM(c, TRTLLMOptions{Policy: CapacityPolicy(policy), MaxNewTokens: n})
			return t, &t.rowwise
		}})
	}
	return list
}

// mixedChunk is a chunk so small that decode rows fill the pool while a prompt is
// prefilled in part.
func mixedChunk(c Config) int32 { return max(c.BlockSize, min(8, c.MaxBatchedTokens)) }

// kindPlay is a random replica of every kind with random requests, looks and clock
// changes.
type kindPlay struct {
	cfg   Config
	asked int32
	acts  []kindAct
}

type kindAct struct {
	at  clock.Time
	req workloads.Request // Prompt 0: a clock change
	bin int
}

func drawKindPlay(t *rapid.T) kindPlay {
	block := rapid.SampledFrom([]int32{1, 1, 4, 16}).Draw(t, "block")
	maxLen := rapid.Int32Range(20, 300).Draw(t, "maxLen")
	least := (maxLen + block - 1) / block
	seqs := rapid.Int32Range(1, 12).Draw(t, "seqs")
	p := kindPlay{asked: rapid.SampledFrom([]int32{0, 0, 40, 1000}).Draw(t, "asked")}
	p.cfg = Config{
		MaxBatchedTokens: max(seqs, block) + rapid.Int32Range(0, 200).Draw(t, "budget"),
		MaxSeqs:          seqs,
		MaxModelLen:      maxLen,
		BlockSize:        block,
		KVBlocks:         1 + least + rapid.Int32Range(0, 2*least).Draw(t, "spare"),
		MaxWaiting:       rapid.SampledFrom([]int32{0, 0, 0, 3}).Draw(t, "queue"),
		Model:            toy{base: rapid.Int64Range(10_000, 2_000_000_000).Draw(t, "base"), token: rapid.Int64Range(0, 30_000_000).Draw(t, "token"), ctx: rapid.Int64Range(0, 200_000).Draw(t, "ctx")},
		Host: models.Host{
			Async:           rapid.Bool().Draw(t, "async"),
			FrontFixedPs:    rapid.Int64Range(0, 3_000_000_000).Draw(t, "a0"),
			FrontPerTokenPs: rapid.Int64Range(0, 2_000_000).Draw(t, "a1"),
			PublishPerSeqPs: rapid.SampledFrom([]int64{0, 0, 70_000_000}).Draw(t, "publish"),
		},
	}
	n := rapid.IntRange(1, 60).Draw(t, "n")
	gap := rapid.Int64Range(1, 30_000_000).Draw(t, "gap")
	long := rapid.SampledFrom([]int32{1, 30, 400}).Draw(t, "long")
	var now clock.Time
	for i := range n {
		now += clock.Time(rapid.Int64Range(0, gap).Draw(t, "at"))
		a := kindAct{at: now}
		if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
			a.bin = rapid.IntRange(0, 40).Draw(t, "bin")
		} else {
			a.req = workloads.Request{ID: int32(i), Prompt: rapid.Int32Range(1, maxLen+maxLen/20).Draw(t, "prompt"), Output: rapid.Int32Range(1, long).Draw(t, "output")}
		}
		p.acts = append(p.acts, a)
	}
	return p
}

// run drives a replica as the kernel does, calling at after every instant at which
// it was advanced. It fails if events come before Next announced them, or if the
// replica does not come to rest.
func (p kindPlay) run(t rapid.TB, r Replica, at func(now clock.Time)) []Event {
	var out []Event
	steps := 0
	drain := func(until clock.Time) {
		for now, ok := r.Next(); ok && now <= until; now, ok = r.Next() {
			n := len(out)
			out = r.Advance(now, out)
			for _, e := range out[n:] {
				if e.At < now {
					t.Fatalf("event %+v was announced only for %d", e, now)
				}
			}
			at(now)
			if steps++; steps > 200_000 {
				t.Fatalf("no end after %d instants, at %d", steps, now)
			}
		}
	}
	for _, a := range p.acts {
		drain(a.at)
		if a.req.Prompt == 0 {
			r.SetClock(a.at, a.bin)
		} else {
			r.Submit(a.at, &a.req)
		}
		at(a.at)
	}
	drain(clock.Never - 1)
	return out
}

// eachKind runs a property for every kind on random plays.
func eachKind(t *testing.T, check func(*rapid.T, kindPlay, kind)) {
	for k := range kindsAsking(0) {
		t.Run(kindsAsking(0)[k].name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				p := drawKindPlay(t)
				check(t, p, kindsAsking(p.asked)[k])
			})
		})
	}
}
