package sim

import (
	"testing"

	"slosim/sim/clock"
)

// BenchmarkReplicas is the cost per request of 20 and of 1,000 replicas behind
// least-outstanding at the same load each: go test ./sim -run xx -bench Replicas
// -benchtime 1x -cpu 1
func BenchmarkReplicas20(b *testing.B)   { benchmarkDay(b, 20, 10*clock.Minute) }
func BenchmarkReplicas1000(b *testing.B) { benchmarkDay(b, 1000, 2*clock.Minute) }
