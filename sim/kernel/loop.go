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
	unlooked int        // events left until stopped and the context are looked at
	other    clock.Time // when anything comes that is not a replica's
	ahead    bool
	stopped  bool
	world    World
	replicas *Tournament
	arrival  clock.Time
	timers   timers
	host     host
}

// checkEvery is how many events pass between two looks at the context.
const checkEvery = 1 << 13

// NewLoop returns a loop over n replicas that starts at a time.
func NewLoop(n int, start clock.Time) *Loop {
	l := &Loop{now: start, replicas: NewTournament(n), arrival: clock.Never}
	l.timers.look()
	l.host.loop = l
	l.await()
	return l
}

// Now returns the simulated time.
func (l *Loop) Now() clock.Time { return l.now }

// SetReplica says when a replica wants to be called next. Only needed when that
// changed outside World.Replica.
func (l *Loop) SetReplica(i int32, at clock.Time) { l.replicas.Set(i, at) }

// SetArrival announces the first arrival.
func (l *Loop) SetArrival(at clock.Time) {
	l.arrival = at
	l.await()
}

// At sets a timer. A time in the past means now.
func (l *Loop) At(at clock.Time, kind int32, arg int64) {
	l.timers.push(Timer{At: max(at, l.now), Kind: kind, Arg: arg})
	l.await()
}

// await notes when the next timer or arrival comes.
func (l *Loop) await() { l.other = min(l.timers.first, l.arrival) }

// LookAhead makes the loop call World.Soon. What many replicas need is not in the
// processor's cache and can be fetched early then; with few it only takes time.
func (l *Loop) LookAhead() { l.ahead = true }

// Stop ends Run after the current event.
func (l *Loop) Stop() { l.stopped, l.unlooked = true, 0 }

// Run processes events until Stop, until none is left, or until ctx is
// cancelled, whose error it then returns; a panic in a process is returned as an
// error that names it. Processes are unwound in every case.
func (l *Loop) Run(ctx context.Context, w World) error {
	defer l.host.stop()
	l.world = w
	for !l.stopped {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.unlooked = checkEvery
		l.process()
	}
	return l.host.err
}

// process processes events until it is time to look at stopped and the context.
func (l *Loop) process() {
	for l.unlooked > 0 {
		l.unlooked--
		switch at, i := l.replicas.Top(); {
		case at <= l.other:
			now := max(l.now, at)
			l.now = now
			if l.ahead {
				l.world.Soon(l.replicas.Second())
			}
			l.replicas.Set(i, l.world.Replica(now, i))
		case l.arrival < l.timers.first:
			l.now = l.arrival
			l.arrival = l.world.Arrive(l.now)
			l.await()
		default:
			l.timer()
		}
	}
}

// timer delivers the next timer, or ends the run if none is left.
func (l *Loop) timer() {
	if l.timers.idle() {
		l.Stop()
		return
	}
	t := l.timers.pop()
	l.now = t.At
	l.await()
	if t.Kind != wakeProcess {
		l.world.Timer(t.At, t.Kind, t.Arg)
		return
	}
	if l.host.wake(int(t.Arg)); l.host.err != nil {
		l.Stop()
	}
}
