package engine

import (
	"testing"

	"slosim/workloads"
)

// BenchmarkVLLMPrefixCache is the reference load on one replica of vLLM, one operation
// a request: without the prefix cache; with one content id per system prompt and one
// per conversation; with an id per 512 tokens, as traces have them; and with one for every
// block of 16 tokens, the most that a cache can be asked for.
// go test ./engine -run xx -bench VLLMPrefixCache -cpu 1
func BenchmarkVLLMPrefixCache(b *testing.B) {
	for _, c := range []struct {
		name string
		unit int32 // tokens per content id; 0 = no cache
	}{{"off", 0}, {"id-per-prompt", 1024}, {"id-per-512-tokens", 512}, {"id-per-block", 16}} {
		b.Run(c.name, func(b *testing.B) {
			cfg := chatConfig(b)
			cfg.PrefixCache = c.unit > 0
			v := NewVLLM(&cfg)
			load := newChat(6.15)
			var out []Event
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				at, r := load.next()
				if c.unit > 0 {
					r.Chain = workloads.Chain{Group: 1 + uint64(i)%200, GroupUnits: 1024 / c.unit, Session: 1<<32 + uint64(i), UnitSize: c.unit}
				}
				for t, ok := v.Next(); ok && t <= at; t, ok = v.Next() {
					out = v.Advance(t, out[:0])
				}
				v.Submit(at, &r)
			}
			s := v.Spent(load.now)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric(100*float64(s.Hit)/float64(max(1, s.Prompted)), "%hit")
		})
	}
}
