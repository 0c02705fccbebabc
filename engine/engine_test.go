package engine

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// toy is an affine step model whose numbers are easy to follow: 1 ms, 10 us per
// token, 1 us per 100 tokens of context, slower at lower clocks.
type toy struct{ base, token, ctx int64 }

func (m toy) Step(b models.Batch, bin int) models.Cost {
	slow := int64(100 + bin)
	return models.Cost{
		Gemm: (m.base + m.token*int64(b.Tokens)) * slow / 100,
		Attn: m.ctx*b.DecodeCtx + b.PrefillArea*3,
		Host: 7 * int64(b.Seqs),
	}
}

func (m toy) Slope(rows int32, _ int) models.Cost { return models.Cost{Attn: m.ctx * int64(rows)} }

var plainToy = toy{base: 1_000_000_000, token: 10_000_000, ctx: 10_000}

// scenario is a random replica with random requests and clock changes.
type scenario struct {
	cfg   Config
	acts  []act
	until clock.Time

	cancelled int
	told      []telling // by the last play
	works     []Spent   // the same
}

// telling is when a replica told of an event: a gateway learns of it then.
type telling struct {
	At   clock.Time
	Kind Kind
	ID   int32
}

type act struct {
	at   clock.Time
	req  workloads.Request // Prompt 0: a clock change
	bin  int
	look bool // only look at load
	work bool // only look at work
	gone bool // the client of request req.ID cancels
}

func drawScenario(t *rapid.T) scenario {
	block := rapid.SampledFrom([]int32{1, 4, 16, 32}).Draw(t, "block")
	maxLen := rapid.Int32Range(20, 400).Draw(t, "maxLen")
	if rapid.IntRange(0, 9).Draw(t, "wide") == 0 {
		maxLen, block = 9000, 16 // long outputs
	}
	least := (maxLen + block - 1) / block
	seqs := rapid.Int32Range(1, 12).Draw(t, "seqs")
	cfg := Config{
		MaxBatchedTokens:  seqs + rapid.Int32Range(0, 200).Draw(t, "budget"),
		MaxSeqs:           seqs,
		MaxModelLen:       maxLen,
		BlockSize:         block,
		KVBlocks:          1 + least + rapid.Int32Range(0, 3*least).Draw(t, "spare"),
		ReserveFullPrompt: rapid.Bool().Draw(t, "gate"),
		LongPrefillTokens: rapid.SampledFrom([]int32{0, 0, 3, 20}).Draw(t, "threshold"),
		Priority:          rapid.IntRange(0, 2).Draw(t, "policy") == 0,
		SkipAhead:         rapid.SampledFrom([]int32{0, 0, 1, 5}).Draw(t, "skip"),
		MaxWaiting:        rapid.SampledFrom([]int32{0, 0, 0, 3}).Draw(t, "queue"),
		PrefixCache:       rapid.Bool().Draw(t, "cache"),
		StopEOS:           rapid.Bool().Draw(t, "eos"),
		Offload:           Offload{Blocks: rapid.SampledFrom([]int32{0, 0, 5, 200}).Draw(t, "tier"), BlockPs: rapid.Int64Range(0, 3_000_000_000).Draw(t, "load")},
		WatermarkBlocks:   rapid.Int32Range(0, 3).Draw(t, "watermark"),
		Model:             toy{base: rapid.Int64Range(1, 2_000_000_000).Draw(t, "base"), token: rapid.Int64Range(0, 30_000_000).Draw(t, "token"), ctx: rapid.Int64Range(0, 200_000).Draw(t, "ctx")},
		Host: models.Host{
			Async:           rapid.Bool().Draw(t, "async"),
			FrontFixedPs:    rapid.Int64Range(0, 3_000_000_000).Draw(t, "a0"),
			FrontPerTokenPs: rapid.Int64Range(0, 2_000_000).Draw(t, "a1"),
			PublishPerSeqPs: rapid.Int64Range(0, 70_000_000).Draw(t, "publish"),
		},
	}
	if cfg.WatermarkBlocks+least > cfg.KVBlocks-1 {
		cfg.WatermarkBlocks = 0
	}
	if !cfg.PrefixCache {
		cfg.Offload = Offload{}
	}
	n := rapid.IntRange(1, 60).Draw(t, "n")
	gap := rapid.Int64Range(1, 30_000_000).Draw(t, "gap")
	long := rapid.SampledFrom([]int32{1, 30, 400, 6000}).Draw(t, "long")
	var now clock.Time
	s := scenario{cfg: cfg}
	for i := range n {
		now += clock.Time(rapid.Int64Range(0, gap).Draw(t, "at"))
		a := act{at: now}
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			a.bin = rapid.IntRange(0, 40).Draw(t, "bin")
		case 1:
			a.look = rapid.Bool().Draw(t, "load")
			a.work = !a.look
		case 2:
			a.gone = i > 0
			a.look = !a.gone
			a.req.ID = rapid.Int32Range(0, int32(max(0, i-1))).Draw(t, "id")
		default:
			a.req = workloads.Request{Chain: drawChain(t, block, cfg.Offload.Blocks > 0), ID: int32(i), Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), Prompt: rapid.Int32Range(1, maxLen+maxLen/20).Draw(t, "prompt"), Output: rapid.Int32Range(1, long).Draw(t, "output")}
		}
		s.acts = append(s.acts, a)
	}
	s.until = now + clock.Time(400*clock.Second)
	return s
}

// drawChain draws content from a few conversations with a few system prompts, unit
// by block. The second tier is told of private content as one run, of which the
// reference knows only blocks: with it, all content has a chain.
func drawChain(t *rapid.T, block int32, always bool) workloads.Chain {
	if !always && rapid.Bool().Draw(t, "alone") {
		return workloads.Chain{}
	}
	session := rapid.Uint64Range(1, 6).Draw(t, "session") // decides the system prompt, as a chain must
	return workloads.Chain{Group: session % 3, GroupUnits: int32(session % 3 * 5), Session: session, UnitSize: block}
}

// play drives a replica like the kernel does: events first, then what arrives.
// s.cancelled counts the requests that left by Cancel, s.told keeps what was told when.
func (s *scenario) play(v *VLLM, look func(now clock.Time)) []Event {
	var out []Event
	s.told, s.works = nil, nil
	handles := map[int32]int32{} // of requests that have not ended
	drain := func(until clock.Time) {
		for t, ok := v.Next(); ok && t <= until; t, ok = v.Next() {
			n := len(out)
			out = v.Advance(t, out)
			for _, e := range out[n:] {
				s.told = append(s.told, telling{t, e.Kind, e.ID})
				if e.Kind == Finished || e.Kind == Rejected {
					delete(handles, e.ID)
				}
				if e.At < t && e.Kind != FirstToken && e.Kind != Finished {
					panic(fmt.Sprintf("event %+v was announced only for %d", e, t))
				}
			}
		}
	}
	for _, a := range s.acts {
		drain(a.at)
		switch {
		case a.look:
			look(a.at)
		case a.work:
			s.works = append(s.works, *v.Spent(a.at))
		case a.gone:
			if handle, ok := handles[a.req.ID]; ok {
				if _, gone := v.Cancel(a.at, handle, a.req.ID); gone {
					s.cancelled++
				}
				delete(handles, a.req.ID)
			}
		case a.req.Prompt == 0:
			v.SetClock(a.at, a.bin)
		default:
			handles[a.req.ID] = v.Submit(a.at, &a.req)
		}
	}
	drain(s.until)
	return out
}

func sorted(events []Event) []Event {
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind))
	})
	return events
}

// The closed-form engine, its stepping form and the naive reference agree to the
// nanosecond on every event, load and cost, whatever happens: arrivals inside a
// stretch, clock changes, block shortage, preemption, rejection.
func TestStretchedEqualsSteppingEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		stepped := s
		stepped.cfg.Stepping = true

		ref := newReference(s.cfg)
		var refLooks []string
		for _, a := range s.acts {
			ref.advance(a.at)
			switch {
			case a.look:
				waiting := len(ref.waiting)
				for _, q := range ref.front {
					if q.prompt < s.cfg.MaxModelLen {
						waiting++
					}
				}
				refLooks = append(refLooks, fmt.Sprintf("running %d waiting %d blocks %d", len(ref.running), waiting, s.cfg.KVBlocks-1-ref.free()))
			case a.work:
			case a.gone:
				ref.cancel(a.req.ID)
			case a.req.Prompt == 0:
				ref.bin = a.bin
			default:
				ref.submit(a.at, a.req)
			}
		}
		ref.advance(s.until)

		var looks [2][]string
		var spent [2]Spent
		var events [2][]Event
		var told [2][]telling
		var works [2][]Spent
		for k, sc := range []scenario{s, stepped} {
			v := NewVLLM(&sc.cfg)
			events[k] = sorted(sc.play(v, func(now clock.Time) {
				l := v.Load(now)
				looks[k] = append(looks[k], fmt.Sprintf("running %d waiting %d blocks %d", l.Running, l.Waiting, l.Blocks))
			}))
			spent[k], told[k], works[k] = *v.Spent(s.until), sc.told, sc.works
			slices.SortFunc(told[k], func(a, b telling) int {
				return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind))
			})
			if l := v.Load(s.until); l.Running == 0 && (l.Tokens != 0 || l.Blocks != 0) {
				t.Fatalf("an empty replica holds %d tokens in %d blocks", l.Tokens, l.Blocks)
			}
		}
		if d := gocmp.Diff(sorted(ref.out), events[1]); d != "" {
			t.Fatalf("stepping differs from the reference (-reference +stepping):\n%s", d)
		}
		if d := gocmp.Diff(events[1], events[0]); d != "" {
			t.Fatalf("stretched differs from stepping (-stepping +stretched):\n%s", d)
		}
		if d := gocmp.Diff(told[1], told[0]); d != "" {
			t.Fatalf("stretched tells of events at other times than stepping (-stepping +stretched):\n%s", d)
		}
		if d := gocmp.Diff(refLooks, looks[0]); d != "" {
			t.Fatalf("loads differ (-reference +stretched):\n%s", d)
		}
		if d := gocmp.Diff(looks[1], looks[0]); d != "" {
			t.Fatalf("loads differ (-stepping +stretched):\n%s", d)
		}
		if !slices.Equal(works[0], works[1]) {
			t.Fatalf("work on the way differs: stretched %+v, stepping %+v", works[0], works[1])
		}
		if spent[0] != spent[1] {
			t.Fatalf("work differs: stretched %+v, stepping %+v", spent[0], spent[1])
		}
	})
}

// idleContent lists what both would evict, first to last, by the last digits of
// its id.
func idleContent(v *VLLM, ref *reference) string {
	text := "engine   "
	for k := v.cache.oldest; k != none; k = v.cache.extents[k].next {
		text += fmt.Sprintf(" %03dx%d", v.cache.extents[k].id%1000, v.cache.extents[k].blocks)
	}
	text += "\nreference"
	for _, b := range ref.blocks {
		if b.hashed {
			text += fmt.Sprintf(" %03d", b.id%1000)
		}
	}
	return text
}

// The stepping engine and the reference agree on what every single step holds:
// tokens, prefill, free blocks, queue.
func TestEveryStepEqualsTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		s.cfg.Stepping = true
		v, ref := NewVLLM(&s.cfg), newReference(s.cfg)
		all := rapid.Bool().Draw(t, "all filed") // as the reference does, also what nobody can find
		v.filing = v.filing || all && s.cfg.PrefixCache
		handles := map[int32]int32{}
		compare := func(now clock.Time) {
			ref.advance(now)
			cached := 0
			if all {
				cached = int(v.cache.idle)
			}
			got := fmt.Sprintf("free %d, idle cached %d, waiting %d, running %d", v.freeBlks, cached, v.waiting.n, v.live)
			cached = 0
			for _, b := range ref.blocks {
				if b.hashed && all {
					cached++
				}
			}
			want := fmt.Sprintf("free %d, idle cached %d, waiting %d, running %d", ref.free(), cached, len(ref.waiting), len(ref.running))
			for k := range v.steps {
				got += fmt.Sprintf("; %+v", v.at(k).batch)
			}
			for _, p := range ref.planned {
				want += fmt.Sprintf("; %+v", p.batch)
			}
			if v.decodes > 0 && v.finish.next() < v.newest {
				t.Fatalf("at %d a row should have ended in step %d", now, v.finish.next())
			}
			if got != want {
				t.Fatalf("at %d:\nengine    %s\nreference %s\n%s", now, got, want, idleContent(v, ref))
			}
		}
		drain := func(until clock.Time) {
			for next, ok := v.Next(); ok && next <= until; next, ok = v.Next() {
				for _, e := range v.Advance(next, nil) {
					if e.Kind == Finished || e.Kind == Rejected {
						delete(handles, e.ID)
					}
				}
				compare(next)
			}
		}
		for _, a := range s.acts {
			drain(a.at)
			ref.advance(a.at)
			switch {
			case a.look:
			case a.gone:
				if handle, ok := handles[a.req.ID]; ok {
					v.Cancel(a.at, handle, a.req.ID)
				}
				ref.cancel(a.req.ID)
			case a.req.Prompt == 0:
				v.SetClock(a.at, a.bin)
				ref.bin = a.bin
			default:
				handles[a.req.ID] = v.Submit(a.at, &a.req)
				ref.submit(a.at, a.req)
			}
		}
		drain(s.until)
	})
}
