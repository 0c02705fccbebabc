package kernel

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"slosim/sim/clock"
)

func TestTopIsTheEarliestItem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		h := NewTournament(n)
		at := make([]clock.Time, n)
		for i := range at {
			at[i] = clock.Never
		}
		for range rapid.IntRange(1, 200).Draw(t, "moves") {
			i := rapid.IntRange(0, n-1).Draw(t, "item")
			at[i] = rapid.SampledFrom([]clock.Time{-1, 0, 1, 1 << 40, 1 << 56, clock.Never - 20, clock.Never}).Draw(t, "about")
			if at[i] < clock.Never {
				at[i] += clock.Time(rapid.Int64Range(0, 19).Draw(t, "at"))
			}
			h.Set(int32(i), at[i])
			best := 0
			for k := range at {
				if at[k] < at[best] {
					best = k
				}
			}
			if top, item := h.Top(); top != at[best] || item != int32(best) {
				t.Fatalf("top is %d at %d, want %d at %d", item, top, best, at[best])
			}
		}
	})
}

// script notes the order in which a loop delivers events.
type script struct {
	log  []string
	loop *Loop
}

func (s *script) Replica(now clock.Time, i int32) clock.Time {
	s.log = append(s.log, "replica")
	return clock.Never
}
func (s *script) Timer(now clock.Time, kind int32, arg int64) { s.log = append(s.log, "timer") }
func (s *script) Soon(int32)                                  {}
func (s *script) Arrive(now clock.Time) clock.Time {
	s.log = append(s.log, "arrival")
	return clock.Never
}

func TestAtEqualTimesReplicasThenTimersThenArrivals(t *testing.T) {
	l := NewLoop(1, 0)
	s := &script{loop: l}
	l.SetArrival(5)
	l.At(5, 0, 0)
	l.Go("p", func(p *Process) { p.Sleep(5); s.log = append(s.log, "process") })
	l.SetReplica(0, 5)
	if err := l.Run(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.log, " "); got != "replica timer process arrival" {
		t.Fatal(got)
	}
}

// Two thousand wake-ups under a garbage collector that runs all the time: the
// finalizer hazard of simgo's own events would abort the process.
func TestProcessesSurviveTheGarbageCollector(t *testing.T) {
	l := NewLoop(0, 0)
	ticks := 0
	l.Go("ticker", func(p *Process) {
		for range 2000 {
			p.Sleep(clock.Second)
			ticks++
			if ticks%20 == 0 {
				runtime.GC()
			}
		}
	})
	if err := l.Run(context.Background(), &script{}); err != nil || ticks != 2000 || l.Now() != clock.Time(2000*clock.Second) {
		t.Fatalf("%d ticks by %d: %v", ticks, l.Now(), err)
	}
}

func TestPanicInAProcessNamesItAndTheTime(t *testing.T) {
	l := NewLoop(0, 0)
	l.Go("bystander", func(p *Process) { p.Sleep(clock.Hour) })
	l.Go("thermal", func(p *Process) { p.Sleep(2*clock.Hour + 3*clock.Minute); panic("too hot") })
	l.Go("other", func(p *Process) {
		for {
			p.Sleep(clock.Minute)
		}
	})
	err := l.Run(context.Background(), &script{})
	if err == nil || err.Error() != `process "thermal" at 2h 3m: too hot` {
		t.Fatal(err)
	}
}

func TestStopUnwindsEveryProcess(t *testing.T) {
	before := runtime.NumGoroutine()
	unwound := 0
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := NewLoop(0, 0)
	for range 50 {
		l.Go("p", func(p *Process) {
			defer func() { unwound++ }()
			for {
				p.Sleep(clock.Millisecond)
				if p.Now() > clock.Time(clock.Second) {
					cancel()
				}
			}
		})
	}
	if err := l.Run(ctx, &script{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	runtime.GC()
	for range 100 {
		runtime.Gosched()
	}
	if unwound != 50 || runtime.NumGoroutine() > before+2 {
		t.Fatalf("%d unwound, %d goroutines left of %d before", unwound, runtime.NumGoroutine(), before)
	}
}

func BenchmarkProcessWake(b *testing.B) {
	l := NewLoop(0, 0)
	l.Go("ticker", func(p *Process) {
		for range b.N {
			p.Sleep(clock.Second)
		}
	})
	b.ResetTimer()
	_ = l.Run(context.Background(), &script{})
}

// Second is the item that is the earliest once the earliest waits for ever.
func TestSecondComesAfterTop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 70).Draw(t, "items")
		h := NewTournament(n)
		for range rapid.IntRange(1, 50).Draw(t, "moves") {
			h.Set(int32(rapid.IntRange(0, n-1).Draw(t, "item")), clock.Time(rapid.Int64Range(0, 99).Draw(t, "at")))
			second := h.Second()
			at, top := h.Top()
			h.Set(top, clock.Never)
			if next, i := h.Top(); next != clock.Never && i != second {
				t.Fatalf("second is %d, and then %d comes", second, i)
			}
			h.Set(top, at)
		}
	})
}
