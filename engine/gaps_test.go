package engine

import (
	"math"
	"testing"

	"slosim/sim/clock"
)

// gapSum adds gaps up.
type gapSum struct {
	tokens int64
	time   float64
}

func (g *gapSum) Gap(_ clock.Time, length clock.Duration, tokens int64) {
	g.tokens += tokens
	g.time += float64(length) * float64(tokens)
}

// Every output token after the first has one gap, and a request's gaps add up to
// the time from its first token to its last: for all kinds of engine, in closed form
// and step by step.
func TestGapsAddUp(t *testing.T) {
	kinds := map[string]func(Config) Replica{
		"vllm":          func(c Config) Replica { return NewVLLM(&c) },
		"vllm stepping": func(c Config) Replica { c.Stepping = true; return NewVLLM(&c) },
		"sglang":        func(c Config) Replica { return NewSGLang(c, SGLangOptions{ChunkTokens: 2048}) },
		"trtllm":        func(c Config) Replica { return NewTRTLLM(c, TRTLLMOptions{Policy: GuaranteedNoEvict}) },
		"tgi":           func(c Config) Replica { return NewTGI(c, TGIOptions{}) },
	}
	for name, kind := range kinds {
		var sum gapSum
		cfg := chatConfig(t)
		cfg.Gaps = &sum
		cfg.Host.PublishPerSeqPs = 0
		v := kind(cfg)
		load := newChat(5)
		tokens, decode := int64(0), 0.0
		first := map[int32]clock.Time{}
		outputs := map[int32]int32{}
		drain := func(until clock.Time) {
			for now, ok := v.Next(); ok && now <= until; now, ok = v.Next() {
				for _, e := range v.Advance(now, nil) {
					switch e.Kind {
					case FirstToken:
						first[e.ID] = e.At
					case Finished:
						if at, ok := first[e.ID]; ok {
							decode += float64(e.At - at)
							tokens += int64(outputs[e.ID] - 1)
						}
					case Preempted:
						t.Fatalf("%s: the pool is too small for this test", name)
					}
				}
			}
		}
		for i := range 2000 {
			now, r := load.next()
			drain(now)
			r.ID = int32(i)
			outputs[r.ID] = r.Output
			v.Submit(now, &r)
		}
		drain(clock.Never - 1)
		v.Spent(clock.Never - 1) // gaps of the steps since the last one are told now
		if sum.tokens != tokens || math.Abs(sum.time/decode-1) > 1e-6 {
			t.Errorf("%s: %d gaps of %.6f s, %d tokens after the first over %.6f s", name, sum.tokens, sum.time*1e-9, tokens, decode*1e-9)
		}
	}
}
