package sim

import (
	"context"
	"testing"
	"time"

	"slosim/sim/clock"
	"slosim/workloads"
)

// BenchmarkReferenceDayPrefixCache is the first 2 % of the reference day with the
// prefix cache on: every prompt begins with one of 200 system prompts of 1024 tokens,
// as the conversations of an assistant do, and what it goes on with stays cached until
// the blocks are needed. plain is the same requests without the cache.
// go test ./sim -run xx -bench ReferenceDayPrefixCache -benchtime 3x -cpu 1
func BenchmarkReferenceDayPrefixCache(b *testing.B) {
	for _, cached := range []bool{false, true} {
		name := map[bool]string{false: "plain", true: "cache"}[cached]
		b.Run(name, func(b *testing.B) {
			var requests, steps int64
			var hit float64
			start := time.Now()
			for b.Loop() {
				e := referenceDay(b, 20, clock.Day/50)
				e.Traffic[0].System = workloads.System{Tokens: 1024, Variants: 200}
				e.Pools[0].Engine.PrefixCache = cached
				r, err := Run(context.Background(), e, Options{Workers: 1})
				if err != nil {
					b.Fatal(err)
				}
				requests += r.Requests
				steps += r.Steps
				hit = r.Pools[0].PrefixHit.V
			}
			seconds := time.Since(start).Seconds()
			b.ReportMetric(float64(requests)/seconds, "requests/s")
			b.ReportMetric(float64(steps)/seconds, "steps/s")
			b.ReportMetric(100*hit, "%hit")
		})
	}
}

// BenchmarkSessions is conversations on twenty replicas whose context grows over
// five turns, found by content on whatever replica they come to: go test ./sim -run
// xx -bench Sessions -benchtime 1x -cpu 1
func BenchmarkSessions(b *testing.B) {
	for b.Loop() {
		e := chatting(b, 20, 2*clock.Hour)
		e.Replications = 1
		start := time.Now()
		r, err := Run(context.Background(), e, Options{Workers: 1})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Requests)/time.Since(start).Seconds(), "requests/s")
		b.ReportMetric(100*r.Pools[0].PrefixHit.V, "%hit")
	}
}
