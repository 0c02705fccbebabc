package kernel

import (
	"context"

	"slosim/sim/clock"
)

// World is what the kernel drives.
type World interface {
	// Replica reports that replica i has reached its next instant, and returns
	// the one after.
	Replica(now clock.Time, i int32) clock.Time
	// Timer delivers a timer set with Loop.After.
	Timer(now clock.Time, kind int32, arg int64)
	// Arrive delivers the announced arrival and returns the time of the next.
	Arrive(now clock.Time) clock.Time
	// Soon tells, where the loop LooksAhead, that replica i will be called next unless
	// the present event changes that.
	Soon(i int32)
}

// Loop is the clock of a run.
type Loop struct {
	now      clock.Time
	replicas *Tournament
	timers   timers
	arrival  clock.Time
	host     host
	stopped  bool
	ahead    bool
	events   int64
}

// checkEvery is how many events pass between two looks at the context: a power of two.
const checkEvery = 1 << 13

// NewLoop returns a loop over n replicas that starts at a time.
func NewLoop(n int, start clock.Time) *Loop {
	l := &Loop{now: start, replicas: NewTournament(n), arrival: clock.Never}
	l.host.loop = l
	return l
}

// Now returns the simulated time.
func (l *Loop) Now() clock.Time { return l.now }

// Events returns how many events were processed.
func (l *Loop) Events() int64 { return l.events }

// SetReplica says when a replica wants to be called next. Only needed when that
// changed outside World.Replica.
func (l *Loop) SetReplica(i int32, at clock.Time) { l.replicas.Set(i, at) }

// SetArrival announces the first arrival.
func (l *Loop) SetArrival(at clock.Time) { l.arrival = at }

// At sets a timer. A time in the past means now.
func (l *Loop) At(at clock.Time, kind int32, arg int64) {
	l.timers.push(Timer{At: max(at, l.now), Kind: kind, Arg: arg})
}

// LookAhead makes the loop call World.Soon. What many replicas need is not in the
// processor's cache and can be fetched early then; with few it only takes time.
func (l *Loop) LookAhead() { l.ahead = true }

// Stop ends Run after the current event.
func (l *Loop) Stop() { l.stopped = true }

// Run processes events until Stop, until none is left, or until ctx is
// cancelled, whose error it then returns; a panic in a process is returned as an
// error that names it. Processes are unwound in every case.
func (l *Loop) Run(ctx context.Context, w World) error {
	defer l.host.stop()
	for !l.stopped {
		if l.events&(checkEvery-1) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		l.events++
		replica, i := l.replicas.Top()
		timer := l.timers.next()
		switch {
		case replica <= timer && replica <= l.arrival:
			if replica == clock.Never {
				return nil
			}
			l.now = max(l.now, replica)
			if l.ahead {
				w.Soon(l.replicas.Second())
			}
			l.replicas.Set(i, w.Replica(l.now, i))
		case timer <= l.arrival:
			l.now = timer
			t := l.timers.pop()
			if t.Kind == wakeProcess {
				l.host.wake(int(t.Arg))
				if l.host.err != nil {
					return l.host.err
				}
				continue
			}
			w.Timer(l.now, t.Kind, t.Arg)
		default:
			l.now = l.arrival
			l.arrival = w.Arrive(l.now)
		}
	}
	return nil
}
