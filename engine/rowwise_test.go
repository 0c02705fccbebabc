package engine

import (
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// Whatever the pool, the load and the clock: every request finishes or is turned
// away, with its stages in order; and an empty replica holds nothing.
func TestEveryKindFinishesOrRejectsEveryRequest(t *testing.T) {
	eachKind(t, func(t *rapid.T, p kindPlay, k kind) {
		r, core := k.make(p.cfg)
		events := p.run(t, r, func(clock.Time) {})
		checkFates(t, p, events)
		l := r.Load(clock.Never - 1)
		if l.Running != 0 || l.Waiting != 0 || l.Tokens != 0 || l.Blocks != 0 {
			t.Fatalf("an idle replica has load %+v", l)
		}
		if core.promised != 0 || core.front.next() != clock.Never {
			t.Fatalf("an idle replica has promised %d blocks", core.promised)
		}
	})
}

// checkFates checks the life of every request of a play against its events.
func checkFates(t rapid.TB, p kindPlay, events []Event) {
	type fate struct{ first, finished, rejected int }
	fates := map[int32]*fate{}
	var before clock.Time
	for _, e := range events {
		f := fates[e.ID]
		if f == nil {
			f = &fate{}
			fates[e.ID] = f
		}
		if f.finished+f.rejected > 0 {
			t.Fatalf("event after the end: %+v", e)
		}
		if p.cfg.Host.PublishPerSeqPs == 0 && e.At < before {
			t.Fatalf("event at %d after one at %d", e.At, before)
		}
		before = max(before, e.At)
		switch e.Kind {
		case FirstToken:
			f.first++
		case Finished:
			f.finished++
		case Rejected:
			f.rejected++
		}
		if e.Kind == FirstToken || e.Kind == Finished {
			if e.Ready > e.Started || e.Started >= e.Prefilled || e.Prefilled > e.At {
				t.Fatalf("stages out of order: %+v", e)
			}
		}
	}
	for _, a := range p.acts {
		if a.req.Prompt == 0 {
			continue
		}
		f, output := fates[a.req.ID], min(a.req.Output, p.cfg.MaxModelLen-a.req.Prompt)
		switch {
		case f == nil:
			t.Fatalf("request %d has no fate", a.req.ID)
		case a.req.Prompt >= p.cfg.MaxModelLen && (f.rejected != 1 || f.first+f.finished > 0),
			a.req.Prompt < p.cfg.MaxModelLen && f.rejected == 0 && (f.finished != 1 || (f.first == 1) != (output > 1)),
			f.rejected > 0 && p.cfg.MaxWaiting == 0 && a.req.Prompt < p.cfg.MaxModelLen:
			t.Fatalf("request %+v has fate %+v", a.req, *f)
		}
	}
}

// In every step a request makes at most one token, in all exactly its output; a
// batch's aggregates are the sums over its requests; blocks add up and are never
// fewer than the tokens need.
func TestEveryKindMakesEachTokenOnce(t *testing.T) {
	eachKind(t, func(t *rapid.T, p kindPlay, k kind) {
		p.cfg.MaxWaiting = 0
		r, core := k.make(p.cfg)
		static := k.name == "static"
		made := map[int32]int32{}
		total := map[int32]int32{}
		var steps int64
		p.run(t, r, func(now clock.Time) {
			l := r.Load(now)
			var blocks int32
			var held int64
			for i := range core.jobs {
				j := &core.jobs[i]
				blocks += j.blocks
				held += int64(j.computed)
				if int64(j.computed) > int64(j.blocks)*int64(p.cfg.BlockSize) {
					t.Fatalf("request %d holds %d tokens in %d blocks", j.id, j.computed, j.blocks)
				}
				if j.output == 0 {
					continue
				}
				if d := j.made - made[j.id]; d < 0 || d > int32(core.scheduled-steps) {
					t.Fatalf("request %d made %d tokens in %d steps", j.id, d, core.scheduled-steps)
				}
				made[j.id], total[j.id] = j.made, j.output
				if j.made > j.output && !static {
					t.Fatalf("request %d made %d tokens of %d", j.id, j.made, j.output)
				}
			}
			steps = core.scheduled
			if l.Blocks != blocks || l.Tokens != held || l.Blocks > l.Total || l.Peak < l.Blocks {
				t.Fatalf("load %+v, but %d blocks and %d tokens are held", l, blocks, held)
			}
			for _, st := range core.ring[:core.steps] {
				checkBatch(t, p.cfg, st.batch)
			}
		})
		for id, n := range total {
			if made[id] != n && !static {
				t.Fatalf("request %d made %d tokens of %d", id, made[id], n)
			}
		}
	})
}

func checkBatch(t rapid.TB, cfg Config, b models.Batch) {
	switch {
	case b.Tokens != b.DecodeSeqs+b.PrefillTokens, b.Tokens <= 0, b.Tokens > cfg.MaxBatchedTokens, b.Seqs > cfg.MaxSeqs,
		b.DecodeCtx < int64(b.DecodeSeqs), (b.PrefillTokens == 0) != (b.Seqs == b.DecodeSeqs):
		t.Fatalf("impossible batch %+v", b)
	}
}

// The integral of the number of requests inside is the sum of their sojourns
// (Little's law without expectation): Load and the events tell the same story.
func TestEveryKindConservesRequests(t *testing.T) {
	eachKind(t, func(t *rapid.T, p kindPlay, k kind) {
		p.cfg.Host.PublishPerSeqPs = 0
		p.cfg.MaxWaiting = 0
		p.acts = slices.DeleteFunc(p.acts, func(a kindAct) bool { return a.req.Prompt >= p.cfg.MaxModelLen })
		r, _ := k.make(p.cfg)
		var integral, sojourns int64
		var last clock.Time
		inside := int64(0)
		events := p.run(t, r, func(now clock.Time) {
			integral += inside * int64(now-last)
			l := r.Load(now)
			inside, last = int64(l.Running+l.Waiting), now
		})
		for _, e := range events {
			if e.Kind == Finished {
				sojourns += int64(e.At)
			}
		}
		for _, a := range p.acts {
			if a.req.Prompt > 0 {
				sojourns -= int64(a.at)
			}
		}
		if integral != sojourns {
			t.Fatalf("∫N dt = %d ns, Σ sojourns = %d ns", integral, sojourns)
		}
	})
}

// Two runs are equal, and so is one that is looked at all the time: looking does
// not disturb.
func TestEveryKindIsDeterministic(t *testing.T) {
	eachKind(t, func(t *rapid.T, p kindPlay, k kind) {
		var events [2][]Event
		var spent [2]Spent
		for n := range events {
			r, _ := k.make(p.cfg)
			events[n] = p.run(t, r, func(now clock.Time) {
				if n == 1 {
					r.Load(now)
					r.Spent(now)
				}
			})
			spent[n] = *r.Spent(clock.Never - 1)
		}
		if d := gocmp.Diff(events[0], events[1]); d != "" {
			t.Fatalf("(-alone +watched):\n%s", d)
		}
		if spent[0] != spent[1] {
			t.Fatalf("alone %+v, watched %+v", spent[0], spent[1])
		}
	})
}

// The work done is the sum of the steps' times to within one nanosecond per
// stretch, and busy time is covered by it.
func TestEveryKindAccountsForItsTime(t *testing.T) {
	eachKind(t, func(t *rapid.T, p kindPlay, k kind) {
		r, _ := k.make(p.cfg)
		p.run(t, r, func(now clock.Time) {
			s := r.Spent(now)
			if s.Until > now {
				t.Fatalf("work up to %d at %d", s.Until, now)
			}
		})
		s := r.Spent(clock.Never - 1)
		if d := s.Total()/1000 - int64(s.Busy); d < 0 || d > s.Steps {
			t.Fatalf("steps cost %d ps, busy %d ns in %d steps", s.Total(), s.Busy, s.Steps)
		}
	})
}

// A lone request takes what its steps take: the prompt in chunks where the kind
// cuts it, then one step per further token.
func TestEveryKindServesALoneRequestInItsSteps(t *testing.T) {
	cfg := Config{MaxBatchedTokens: 64, MaxSeqs: 8, MaxModelLen: 200, BlockSize: 4, KVBlocks: 101, Model: plainToy}
	for _, k := range kindsAsking(0) {
		r, _ := k.make(cfg)
		r.Submit(5, &workloads.Request{ID: 3, Prompt: 100, Output: 10})
		var events []Event
		for at, ok := r.Next(); ok; at, ok = r.Next() {
			events = r.Advance(at, events)
		}
		chunk := cfg.MaxBatchedTokens
		if k.name == "sglang-mixed" {
			chunk = mixedChunk(cfg)
		}
		now := clock.Time(5)
		for past := int32(0); past < 100; {
			n := min(chunk, 100-past)
			now += clock.Time(plainToy.Step(models.Batch{Tokens: n, Seqs: 1, PrefillTokens: n, PrefillArea: int64(n)*int64(past) + int64(n)*int64(n)/2}, 0).Total() / 1000)
			past += n
		}
		first := now
		first9 := plainToy.Step(models.Batch{Tokens: 1, Seqs: 1, DecodeSeqs: 1, DecodeCtx: 101}, 0).Total()
		now += clock.Time((9*first9 + plainToy.Slope(1, 0).Total()*36) / 1000)
		want := []Event{{Kind: FirstToken, ID: 3, At: first, Ready: 5, Started: 5, Prefilled: first}, {Kind: Finished, ID: 3, At: now, Ready: 5, Started: 5, Prefilled: first}}
		if d := gocmp.Diff(want, events); d != "" {
			t.Errorf("%s (-want +got):\n%s", k.name, d)
		}
	}
}

func ExampleSGLangChunk() {
	for _, gib := range []float64{24, 48, 80, 180} {
		fmt.Println(gib, SGLangChunk(gib))
	}
	// Output:
	// 24 2048
	// 48 4096
	// 80 8192
	// 180 16384
}
