package sim

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"slosim/sim/clock"
	"slosim/sim/kernel"
	"slosim/workloads"
)

// BenchmarkReferenceDayVariants takes two million requests of the reference day in other
// forms: without heat and async scheduling (bare, the ceiling that the reference is
// measured against), and on ten times the replicas.
// go test ./sim -run xx -bench Variants -benchtime 1x -cpu 1
func BenchmarkReferenceDayVariants(b *testing.B) {
	bare := func(e *Experiment) {
		e.Pools[0].Thermal.Enabled = false
		e.Pools[0].Deployment.Host.Async = false
		e.SLOs = nil
	}
	for _, c := range []struct {
		name     string
		replicas int
		span     clock.Duration
		change   func(*Experiment)
	}{
		{"reference", 20, clock.Day / 5, func(*Experiment) {}},
		{"bare", 20, clock.Day / 5, bare},
		{"200-replicas", 200, clock.Day / 50, func(*Experiment) {}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var requests int64
			start := time.Now()
			for b.Loop() {
				e := referenceDay(b, c.replicas, c.span)
				c.change(&e)
				r, err := Run(context.Background(), e, Options{Workers: 1})
				if err != nil {
					b.Fatal(err)
				}
				requests += r.Requests
			}
			b.ReportMetric(float64(requests)/time.Since(start).Seconds(), "requests/s")
		})
	}
}

// BenchmarkOutputLength is the cost of a request at outputs of 16 and of 4,096 tokens on
// twenty replicas at half of the rate that saturates them.
// go test ./sim -run xx -bench OutputLength -benchtime 1x -cpu 1
func BenchmarkOutputLength(b *testing.B) {
	for _, tokens := range []float64{16, 256, 4096} {
		b.Run(strconv.Itoa(int(tokens)), func(b *testing.B) {
			e := referenceDay(b, 20, clock.Minute)
			c := &e.Traffic[0]
			c.Output = workloads.Dist{Kind: "fixed", Mean: tokens}
			c.Rate.Mean = 1
			pilot, err := Run(context.Background(), e, Options{Workers: 1})
			if err != nil {
				b.Fatal(err)
			}
			c.Rate.Mean = .5 * pilot.Pools[0].SaturationRate
			e.Duration = clock.FromSeconds(200_000 / c.Rate.Mean)
			for b.Loop() {
				start := time.Now()
				r, err := Run(context.Background(), e, Options{Workers: 1})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(start))/float64(r.Requests), "ns/request")
				b.ReportMetric(c.Rate.Mean, "offered/s")
				b.ReportMetric(r.Pools[0].Preemptions.V, "preemptions")
			}
		})
	}
}

// BenchmarkHeap is the floor of an exact event-by-event design: one push and one pop
// of a binary heap of the kernel's timers per step of the reference day's twenty
// replicas, 6.3 steps to a request, and nothing else.
func BenchmarkHeap(b *testing.B) {
	l := kernel.NewLoop(0, 0)
	h := &heapOnly{rng: rand.New(rand.NewPCG(1, 2)), loop: l, left: b.N}
	for i := range int64(20) {
		l.At(clock.Time(i), 0, i)
	}
	b.ResetTimer()
	if err := l.Run(context.Background(), h); err != nil {
		b.Fatal(err)
	}
}

type heapOnly struct {
	rng  *rand.Rand
	loop *kernel.Loop
	left int
}

func (h *heapOnly) Replica(now clock.Time, _ int32) clock.Time { return clock.Never }
func (h *heapOnly) Soon(int32)                                 {}
func (h *heapOnly) Arrive(clock.Time) clock.Time               { return clock.Never }
func (h *heapOnly) Timer(now clock.Time, kind int32, arg int64) {
	if h.left--; h.left > 0 {
		h.loop.At(now.Add(clock.Duration(20_000_000+h.rng.Int64N(10_000_000))), kind, arg)
	}
}

// BenchmarkBranch is what a processor loses by a branch that goes by chance: the
// difference of the two, twice, because half of the chances are guessed.
func BenchmarkBranch(b *testing.B) {
	draws := make([]uint8, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range draws {
		draws[i] = uint8(r.Uint32())
	}
	for _, c := range []struct {
		name string
		odds uint8 // of 256
	}{{"sure", 255}, {"chance", 127}} {
		b.Run(c.name, func(b *testing.B) {
			sum := 0
			for i := range b.N {
				if draws[i&(len(draws)-1)] < c.odds {
					sum += i
				} else {
					sum ^= 3
					sum *= 5
				}
			}
			sink += sum
		})
	}
}

// BenchmarkChase is the time of a load that the next one waits for, in a working set of
// so many KiB: of the first-level cache, the second, the third and memory.
func BenchmarkChase(b *testing.B) {
	for _, kib := range []int{16, 128, 1024, 32 << 10} {
		b.Run(strconv.Itoa(kib), func(b *testing.B) {
			lines := make([][8]int, kib<<10/64)
			order := rand.New(rand.NewPCG(1, 2)).Perm(len(lines))
			for i, k := range order {
				lines[k][0] = order[(i+1)%len(order)]
			}
			at := 0
			b.ResetTimer()
			for range b.N {
				at = lines[at][0]
			}
			sink += at
		})
	}
}

var sink int // of results that nobody wants
