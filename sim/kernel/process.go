package kernel

import (
	"fmt"

	"github.com/fschuetz04/simgo"

	"slosim/sim/clock"
)

// host runs control processes as simgo coroutines. simgo's own clock stands
// still at 0: processes wait only on wakeups, which our heap fires. None of its
// timeouts, shared events or conditions are used, because its events carry
// finalizers that abort waiting processes when the garbage collector runs.
type host struct {
	loop      *Loop
	sim       *simgo.Simulation
	processes []*Process
	err       error
}

// Process is a control process: plain sequential code that sleeps in simulated
// time. Its methods may be called only from its own body.
type Process struct {
	name   string
	host   *host
	number int
	proc   simgo.Process
	wakeup wakeup
	asleep bool
}

// wakeup is the event that one sleeping process waits for; each sleep uses it
// anew.
type wakeup struct {
	processed, aborted bool
	onFire, onAbort    simgo.Handler
}

func (w *wakeup) Processed() bool                 { return w.processed }
func (w *wakeup) Aborted() bool                   { return w.aborted }
func (w *wakeup) AddHandler(h simgo.Handler)      { w.onFire = h }
func (w *wakeup) AddAbortHandler(h simgo.Handler) { w.onAbort = h }

// Go starts a process now: its body runs until its first Sleep before Go
// returns. A panic in the body ends the run with an error that names the process
// and the simulated time.
func (l *Loop) Go(name string, body func(p *Process)) {
	h := &l.host
	if h.sim == nil {
		h.sim = simgo.NewSimulation()
	}
	p := &Process{name: name, host: h, number: len(h.processes)}
	h.processes = append(h.processes, p)
	p.proc = h.sim.Process(func(proc simgo.Process) {
		p.proc = proc
		defer func() {
			if r := recover(); r != nil {
				h.err = fmt.Errorf("process %q at %s: %v", name, clock.Duration(l.now), r)
			}
		}()
		body(p)
	})
	h.sim.Run() // processes the start event; waiting processes keep nothing in simgo's queue
}

// Now returns the simulated time.
func (p *Process) Now() clock.Time { return p.host.loop.now }

// Sleep waits for a span of simulated time. It does not return when the run has
// ended: the process is unwound instead.
func (p *Process) Sleep(d clock.Duration) {
	h := p.host
	h.loop.At(h.loop.now.Add(d), wakeProcess, int64(p.number))
	p.wakeup = wakeup{}
	p.asleep = true
	p.proc.Wait(&p.wakeup)
}

// wake resumes a process until it sleeps again or ends.
func (h *host) wake(number int) {
	p := h.processes[number]
	p.asleep = false
	p.wakeup.processed = true
	p.wakeup.onFire(nil)
	h.sim.Run() // a process that ended has triggered its own event
}

// stop unwinds every process that still sleeps.
func (h *host) stop() {
	for _, p := range h.processes {
		if p.asleep {
			p.asleep = false
			p.wakeup.aborted = true
			p.wakeup.onAbort(nil)
		}
	}
	h.processes = nil
}
