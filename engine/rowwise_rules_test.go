package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"slosim/sim/clock"
	"slosim/workloads"
)

// Prefill and decode share a step only in the kinds that mix, and only those that
// may run out of blocks ever preempt.
func TestEveryKindMixesAndPreemptsOnlyIfItsEngineDoes(t *testing.T) {
	mixes := []string{"sglang-mixed", "trtllm-no-evict", "trtllm-max-utilization"}
	preempts := []string{"sglang", "sglang-mixed", "trtllm-max-utilization"}
	eachKind(t, func(t *rapid.T, p kindPlay, k kind) {
		r, core := k.make(p.cfg)
		events := p.run(t, r, func(clock.Time) {
			for _, st := range core.ring[:core.steps] {
				if b := st.batch; b.PrefillTokens > 0 && b.DecodeSeqs > 0 && !slices.Contains(mixes, k.name) {
					t.Fatalf("a mixed batch %+v", b)
				}
			}
		})
		for _, e := range events {
			if e.Kind == Preempted && !slices.Contains(preempts, k.name) {
				t.Fatalf("preempted: %+v", e)
			}
		}
	})
}

// Where nothing is preempted, nobody overtakes: requests start in the order in which
// they reached the scheduler.
func TestEveryKindStartsFirstComeFirstServed(t *testing.T) {
	eachKind(t, func(t *rapid.T, p kindPlay, k kind) {
		r, _ := k.make(p.cfg)
		events := p.run(t, r, func(clock.Time) {})
		if slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Preempted }) {
			t.Skip("preempted")
		}
		done := slices.DeleteFunc(events, func(e Event) bool { return e.Kind != Finished })
		slices.SortStableFunc(done, func(a, b Event) int { return cmp.Compare(a.Ready, b.Ready) })
		for i := 1; i < len(done); i++ {
			if a, b := done[i-1], done[i]; a.Ready < b.Ready && a.Started > b.Started {
				t.Fatalf("%+v was overtaken by %+v", a, b)
			}
		}
	})
}

// At most one SGLang request is prefilled in part; a victim of retraction has no
// more output tokens than any that stays; and the ratio keeps its bounds.
func TestSGLangRetractsTheFewestOutputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawKindPlay(t)
		s := NewSGLang(p.cfg, SGLangOptions{Conservativeness: .3, MaxNewTokens: p.asked})
		queued := map[int32]bool{}
		p.run(t, s, func(now clock.Time) {
			partial := 0
			for i := range s.jobs {
				if j := &s.jobs[i]; j.output > 0 && j.computed > 0 && j.computed < j.target {
					partial++
				}
			}
			if partial > 1 || (partial == 1) != (s.chunked != none) {
				t.Fatalf("%d requests prefilled in part", partial)
			}
			if s.ratio < s.minRatio || s.ratio > 1 {
				t.Fatalf("new_token_ratio %v", s.ratio)
			}
			queue := map[int32]bool{}
			for k := range s.waiting.n {
				v := &s.jobs[s.waiting.at(k)]
				queue[v.id] = true
				if v.made == 0 || queued[v.id] {
					continue
				}
				for _, i := range s.running { // a step decodes after it retracts
					if s.jobs[i].made < v.made {
						t.Fatalf("retracted at %d tokens beside one of %d", v.made, s.jobs[i].made)
					}
				}
			}
			queued = queue
		})
	})
}

// The ratio starts at 0.7, falls to 0.14 of that in 600 decode steps, and is back
// when the server was idle.
func TestSGLangNewTokenRatioDecaysAndRecovers(t *testing.T) {
	s := NewSGLang(Config{MaxBatchedTokens: 64, MaxSeqs: 4, MaxModelLen: 2000, BlockSize: 1, KVBlocks: 2001, Model: plainToy}, SGLangOptions{})
	s.Submit(0, &workloads.Request{Prompt: 10, Output: 900})
	least := 1.0
	for at, ok := s.Next(); ok; at, ok = s.Next() {
		s.Advance(at, nil)
		if s.steps == 0 {
			break
		}
		decoded := float64(s.jobs[0].made - 1)
		want := max(0.7-decoded*0.7*0.86/600, 0.7*0.14)
		if math.Abs(s.ratio-want) > 1e-9 {
			t.Fatalf("after %v decode steps the ratio is %v, want %v", decoded, s.ratio, want)
		}
		least = min(least, s.ratio)
	}
	if math.Abs(least-0.098) > 1e-9 || s.ratio != 0.7 {
		t.Errorf("least ratio %v, at rest %v", least, s.ratio)
	}
}

// In mixed batches a request prefilled in part can hold what the last decode row
// needs: then it gives way, and both finish.
func TestSGLangMixedChunkGivesWayToTheLastDecodeRow(t *testing.T) {
	s := NewSGLang(Config{MaxBatchedTokens: 4, MaxSeqs: 4, MaxModelLen: 100, BlockSize: 1, KVBlocks: 119, Model: plainToy}, SGLangOptions{MixedChunk: true, Conservativeness: .1})
	s.Submit(0, &workloads.Request{ID: 0, Prompt: 10, Output: 89})
	var got []Event
	for at, ok := s.Next(); ok; at, ok = s.Next() {
		got = s.Advance(at, got)
		if s.scheduled == 5 {
			s.Submit(at, &workloads.Request{ID: 1, Prompt: 90, Output: 5})
		}
	}
	kinds := ""
	for _, e := range got {
		kinds += fmt.Sprintf("%d:%d ", e.ID, e.Kind)
	}
	if want := fmt.Sprintf("0:%d 1:%d 0:%d 1:%d 1:%d ", FirstToken, Preempted, Finished, FirstToken, Finished); kinds != want {
		t.Errorf("events (request:kind) %s, want %s", kinds, want)
	}
}

// TensorRT-LLM and TGI admit by what clients ask for, not by what they will get.
func TestReservationsCountMaxNewTokens(t *testing.T) {
	cfg := Config{MaxBatchedTokens: 64, MaxSeqs: 8, MaxModelLen: 100, BlockSize: 4, KVBlocks: 51, Model: plainToy}
	for _, c := range []struct {
		name    string
		make    func(asked int32) Replica
		running [2]int32 // of three requests, asked for 4 and for 60 tokens
	}{
		{"trtllm", func(n int32) Replica { return NewTRTLLM(cfg, TRTLLMOptions{MaxNewTokens: n}) }, [2]int32{3, 2}},
		{"tgi", func(n int32) Replica { return NewTGI(cfg, TGIOptions{MaxNewTokens: n}) }, [2]int32{3, 2}},
	} {
		for k, asked := range []int32{0, 60} {
			r := c.make(asked)
			for id := range int32(3) {
				r.Submit(0, &workloads.Request{ID: id, Prompt: 20, Output: 4})
			}
			at, _ := r.Next()
			if l := r.Load(at); l.Running != c.running[k] {
				t.Errorf("%s, %d tokens asked for: %d run", c.name, asked, l.Running)
			}
		}
	}
}

// A TGI prompt beyond max_batch_prefill_tokens takes several steps, in which nothing
// decodes and nobody else starts.
func TestTGIPrefillsALongPromptAlone(t *testing.T) {
	g := NewTGI(Config{MaxBatchedTokens: 64, MaxSeqs: 8, MaxModelLen: 300, BlockSize: 4, KVBlocks: 151, Model: plainToy}, TGIOptions{})
	g.Submit(0, &workloads.Request{ID: 0, Prompt: 10, Output: 30})
	g.Submit(1, &workloads.Request{ID: 1, Prompt: 150, Output: 2})
	g.Submit(1, &workloads.Request{ID: 2, Prompt: 5, Output: 2})
	var prompts []int32
	for at, ok := g.Next(); ok && len(prompts) < 5; at, ok = g.Next() {
		prompts = append(prompts, g.ring[0].batch.PrefillTokens)
		g.Advance(at, nil)
	}
	if want := []int32{10, 64, 64, 22, 0}; !slices.Equal(prompts, want) {
		t.Errorf("prompt tokens by step %v, want %v", prompts, want)
	}
}

// Limits that contradict each other are refused at the start, not met later.
func TestKindsRefuseImpossibleLimits(t *testing.T) {
	good := Config{MaxBatchedTokens: 64, MaxSeqs: 8, MaxModelLen: 100, BlockSize: 4, KVBlocks: 51, Model: plainToy}
	small := good
	small.KVBlocks = 20
	for name, f := range map[string]func(){
		"pool below one request":      func() { NewStatic(small) },
		"chunk beyond the step":       func() { NewSGLang(good, SGLangOptions{ChunkTokens: 65}) },
		"chunk below a page":          func() { NewSGLang(good, SGLangOptions{ChunkTokens: 3}) },
		"total below one request":     func() { NewTGI(good, TGIOptions{MaxBatchTotalTokens: 99}) },
		"prefill batch beyond a step": func() { NewTGI(good, TGIOptions{MaxBatchPrefillTokens: 65}) },
		"negative max_new_tokens":     func() { NewTRTLLM(good, TRTLLMOptions{MaxNewTokens: -1}) },
		"unknown capacity policy":     func() { NewTRTLLM(good, TRTLLMOptions{Policy: 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			f()
		})
	}
}

// Once tables and buffers have grown, a request costs no allocation.
func TestKindsDoNotAllocateInSteadyState(t *testing.T) {
	cfg := chatConfig(t)
	cfg.MaxSeqs = 64
	for _, k := range kindsAsking(0) {
		r, _ := k.make(cfg)
		load := newChat(.5)
		out := make([]Event, 0, 1024)
		var at clock.Time
		var req workloads.Request
		serve := func() {
			for range 500 {
				at, req = load.next()
				for t, ok := r.Next(); ok && t <= at; t, ok = r.Next() {
					out = r.Advance(t, out[:0])
				}
				r.Submit(at, &req)
			}
		}
		serve()
		if n := testing.AllocsPerRun(3, serve); n > 3 {
			t.Errorf("%s: %v allocations in 500 requests", k.name, n)
		}
	}
}
