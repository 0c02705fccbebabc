package trials

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"slosim/experiments"
	"slosim/sim"
)

// side are the numbers of goroutines to compare: one, and one per core.
func side() []int {
	if n := runtime.NumCPU(); n > 1 {
		return []int{1, n}
	}
	return []int{1}
}

// BenchmarkGrid is a sweep of 12 points on two seeds each. Compare the requests/s of one
// worker and of all: two cores should give at least 1.8 times as much.
//
//	go test ./internal/trials -run xx -bench 'Grid|Replications' -benchtime 5x
func BenchmarkGrid(b *testing.B) {
	var list []Trial
	for _, rate := range []string{"6/s", "8/s", "10/s", "12/s"} {
		for replicas := 2; replicas <= 4; replicas++ {
			for seed := range 2 {
				e, _, err := experiments.Load("burst", "duration=1h", "warmup=10m", "replications=1", "traffic.chat.rate.mean="+rate, fmt.Sprintf("pool.main.replicas=%d", replicas), fmt.Sprintf("seed=%d", seed+1))
				if err != nil {
					b.Fatal(err)
				}
				list = append(list, Trial{rate, e})
			}
		}
	}
	for _, n := range side() {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			requests := int64(0)
			for b.Loop() {
				for _, o := range Run(context.Background(), list, Options{Workers: n, Store: b.TempDir()}) {
					if o.Err != nil {
						b.Fatal(o.Err)
					}
					requests += o.Result.Requests
				}
			}
			b.ReportMetric(float64(requests)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// BenchmarkReplications is one experiment of eight replications.
func BenchmarkReplications(b *testing.B) {
	e, _, err := experiments.Load("burst", "duration=2h", "replications=8")
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range side() {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			requests := int64(0)
			for b.Loop() {
				r, err := sim.Run(context.Background(), e, sim.Options{Workers: n})
				if err != nil {
					b.Fatal(err)
				}
				requests += r.Requests
			}
			b.ReportMetric(float64(requests)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
