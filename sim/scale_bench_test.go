package sim

import (
	"testing"

	"slosim/sim/clock"
)

// BenchmarkReplicas is the cost per request of 20 and of 1,000 replicas behind
// least-outstanding at the same load each, and of 200 over as many requests as the
// reference day has: go test ./sim -run xx -bench Replicas -benchtime 1x -cpu 1
func BenchmarkReplicas20(b *testing.B)   { benchmarkDay(b, 20, 10*clock.Minute) }
func BenchmarkReplicas200(b *testing.B)  { benchmarkDay(b, 200, clock.Day/10) }
func BenchmarkReplicas1000(b *testing.B) { benchmarkDay(b, 1000, 2*clock.Minute) }
