package kernel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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
	then func() // after an arrival
}

func (s *script) Replica(now clock.Time, i int32) clock.Time {
	s.log = append(s.log, "replica")
	return clock.Never
}
func (s *script) Timer(now clock.Time, kind int32, arg int64) { s.log = append(s.log, "timer") }
func (s *script) Soon(int32)                                  {}
func (s *script) Arrive(now clock.Time) clock.Time {
	s.log = append(s.log, "arrival")
	if s.then != nil {
		s.then()
	}
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

// The size of a tournament is that of a level or just more: as many items as the final
// has, one more, and so on down to a fourth level.
func TestTopOfTournamentsOfAllSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 7, 8, 9, 31, 32, 33, 128, 129, 512, 513, 1000, 2049}).Draw(t, "n")
		h := NewTournament(n)
		at := make([]clock.Time, n)
		for i := range at {
			at[i] = clock.Never
		}
		now := clock.Time(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "start"))
		for range rapid.IntRange(1, 50).Draw(t, "moves") {
			i := rapid.IntRange(0, n-1).Draw(t, "item")
			at[i] = clock.Never
			if rapid.IntRange(0, 9).Draw(t, "waits") > 0 {
				at[i] = now + clock.Time(rapid.Int64Range(0, 3).Draw(t, "after"))
			}
			h.Set(int32(i), at[i])
			if rapid.Bool().Draw(t, "look") { // else several moves lie between two looks
				best := slices.Index(at, slices.Min(at))
				top, item := h.Top()
				if top != at[best] || item != int32(best) {
					t.Fatalf("top is %d at %d, want %d at %d", item, top, best, at[best])
				}
				if top != clock.Never {
					now = top
				}
			}
		}
	})
}

// stopper stops its loop at the third event and notes the last.
type stopper struct {
	script
	every clock.Duration
}

func (s *stopper) Replica(now clock.Time, i int32) clock.Time {
	if s.log = append(s.log, "replica"); len(s.log) == 3 {
		s.loop.Stop()
	}
	return now.Add(s.every)
}

func TestStopEndsRunAfterThePresentEvent(t *testing.T) {
	s := &stopper{every: clock.Second}
	s.loop = NewLoop(3, 0)
	s.loop.SetReplica(1, 7)
	if err := s.loop.Run(context.Background(), s); err != nil || len(s.log) != 3 || s.loop.Now() != clock.Time(7+2*clock.Second) {
		t.Fatal(err, s.log, s.loop.Now())
	}
}

// A replica may ask to be called in the past, which means now: the clock never goes back.
func TestAReplicaInThePastIsCalledNow(t *testing.T) {
	l := NewLoop(1, 0)
	s := &script{loop: l}
	l.SetArrival(5)
	l.At(9, 0, 0)
	l.SetReplica(0, 5)
	s.then = func() {
		if len(s.log) == 2 {
			l.SetReplica(0, 1)
		}
	}
	if err := l.Run(context.Background(), s); err != nil || strings.Join(s.log, " ") != "replica arrival replica timer" || l.Now() != 9 {
		t.Fatal(err, s.log, l.Now())
	}
}

// A timer that is never due ends no run and wakes nobody.
func TestATimerThatIsNeverDueIsNothing(t *testing.T) {
	l := NewLoop(2, 0)
	s := &script{loop: l}
	l.At(clock.Never, 0, 0)
	l.SetReplica(1, 3)
	if err := l.Run(context.Background(), s); err != nil || strings.Join(s.log, " ") != "replica" || l.Now() != 3 {
		t.Fatal(err, s.log, l.Now())
	}
}

// What a move and a look cost with so many items, the next one each time.
func BenchmarkTournament(b *testing.B) {
	for _, n := range []int{20, 200, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := NewTournament(n)
			for i := range n {
				h.Set(int32(i), clock.Time(i))
			}
			x := uint32(1)
			for range b.N {
				at, i := h.Top()
				x = x*1664525 + 1013904223
				h.Set(i, at+clock.Time(x>>20))
			}
		})
	}
}
