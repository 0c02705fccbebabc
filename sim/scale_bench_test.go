package sim

import (
	"strconv"
	"testing"

	"slosim/sim/clock"
)

// BenchmarkReplicas is the cost per request of 20 and of 1,000 replicas behind
// least-outstanding at the same load each, and of 200 over as many requests as the
// reference day has: go test ./sim -run xx -bench Replicas -benchtime 1x -cpu 1
func BenchmarkReplicas20(b *testing.B)   { benchmarkDay(b, 20, 10*clock.Minute) }
func BenchmarkReplicas200(b *testing.B)  { benchmarkDay(b, 200, clock.Day/10) }
func BenchmarkReplicas1000(b *testing.B) { benchmarkDay(b, 1000, 2*clock.Minute) }

// BenchmarkMinutes is four and two minutes of 200 replicas, as long as a simulated cache
// can take: what the two differ by is what requests cost without what a run costs once.
func BenchmarkMinutes(b *testing.B) {
	for _, n := range []clock.Duration{4, 2} {
		b.Run(strconv.Itoa(int(n)), func(b *testing.B) { benchmarkDay(b, 200, n*clock.Minute) })
	}
}
