package engine

import (
	"cmp"
	"slices"
	"testing"

	"slosim/models"
	"slosim/sim/clock"
)

// watched is a step model that remembers the batch it was last asked about: the
// one that runs.
type watched struct {
	models.StepModel
	last models.Batch
}

func (w *watched) Step(b models.Batch, bin int) models.Cost {
	w.last = b
	return w.StepModel.Step(b, bin)
}

// gap is a time between two tokens that rows requests saw.
type gap struct {
	length clock.Duration
	rows   int32
}

// quantile returns the token-weighted quantile of gaps.
func quantile(gaps []gap, p float64) clock.Duration {
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(a.length, b.length) })
	total, below := 0.0, 0.0
	for _, g := range gaps {
		total += float64(g.rows)
	}
	for _, g := range gaps {
		if below += float64(g.rows); below >= p*total {
			return g.length
		}
	}
	return 0
}

// interToken runs n requests of a load and returns the times between tokens. Every
// decode step gives each request in it one token; a request's first comes with its
// FirstToken event.
func interToken(t *testing.T, r Replica, w *watched, load *chat, n int) []gap {
	var gaps []gap
	type group struct {
		last clock.Time // their latest token
		rows int32
	}
	var groups []group
	var events []Event
	steps := int64(0)
	for range n {
		arrival, req := load.next()
		for now, ok := r.Next(); ok && now <= arrival; now, ok = r.Next() {
			batch := w.last
			events = r.Advance(now, events[:0])
			if s := r.Spent(now); s.Steps == steps+1 && batch.DecodeSeqs > 0 {
				rows := int32(0)
				for _, g := range groups {
					gaps = append(gaps, gap{now.Sub(g.last), g.rows})
					rows += g.rows
				}
				if rows != batch.DecodeSeqs {
					t.Fatalf("at %d %d rows decoded, %d were expected", now, batch.DecodeSeqs, rows)
				}
				groups = append(groups[:0], group{now, rows})
			}
			steps = r.Spent(now).Steps
			for _, e := range events {
				switch {
				case e.Kind == FirstToken:
					groups = append(groups, group{now, 1})
				case e.Kind == Finished && e.Prefilled < now:
					groups[0].rows--
				case e.Kind == Preempted:
					t.Fatal("the pool is too small for this test")
				}
			}
		}
		r.Submit(arrival, &req)
	}
	return gaps
}

// SGLang prefills first and alone, so decoding stalls for as long as prompts can be
// admitted: all chunks of a long prompt, one after the other, and what arrived in
// the meantime. vLLM's decode rows take part in every step and wait for one chunk at
// most. The medians are alike, the tails are not. With enable_mixed_chunk SGLang
// schedules as vLLM does.
func TestSGLangStallsDecodingWhereVLLMMixes(t *testing.T) {
	for name, longEvery := range map[string]int32{"chat": 0, "chat with long prompts": 50} {
		t.Run(name, func(t *testing.T) {
			run := func(name string, make func(Config) Replica) (q [4]clock.Duration) {
				cfg := chatConfig(t)
				w := &watched{StepModel: cfg.Model}
				cfg.Model, cfg.Stepping = w, true
				cfg.Host.PublishPerSeqPs = 0
				load := newChat(5)
				load.longEvery = longEvery
				gaps := interToken(t, make(cfg), w, load, 6000)
				for k, p := range []float64{.5, .99, .999, 1} {
					q[k] = quantile(gaps, p)
				}
				t.Logf("%-12s median %9v, P99 %9v, P99.9 %9v, longest %9v", name, q[0], q[1], q[2], q[3])
				return q
			}
			vllm := run("vLLM", func(c Config) Replica { return NewVLLM(&c) })
			alone := run("SGLang", func(c Config) Replica { return NewSGLang(c, SGLangOptions{}) })
			mixed := run("SGLang mixed", func(c Config) Replica { return NewSGLang(c, SGLangOptions{MixedChunk: true}) })
			if d := alone[0] - vllm[0]; d < 0 || d > vllm[0]/10 {
				t.Errorf("medians: vLLM %v, SGLang %v", vllm[0], alone[0])
			}
			if alone[2] < vllm[2]*5/4 || alone[3] < 4*vllm[3] {
				t.Errorf("vLLM's tail %v, %v is no shorter than SGLang's %v, %v", vllm[2], vllm[3], alone[2], alone[3])
			}
			for k := range vllm {
				if d := mixed[k] - vllm[k]; max(d, -d) > vllm[k]/50 {
					t.Errorf("mixed %v, vLLM %v", mixed[k], vllm[k])
				}
			}
		})
	}
}
