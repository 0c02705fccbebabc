package kernel

import "slosim/sim/clock"

// Timer is a one-off event of the control plane or of a client. Kind and Arg
// mean what their owner wants; process wake-ups have a kind of their own.
type Timer struct {
	At   clock.Time
	Kind int32
	Arg  int64
	seq  uint64
}

// wakeProcess is the kind of a timer that wakes process Arg.
const wakeProcess int32 = -1

// timers is a binary heap by (time, sequence).
type timers struct {
	first clock.Time // of the earliest; without any a moment before clock.Never: what waits for ever comes after it
	heap  []Timer
	seq   uint64
}

// idle tells whether no timer will ever be due.
func (t *timers) idle() bool { return len(t.heap) == 0 || t.heap[0].At == clock.Never }

// look notes when the earliest is due.
func (t *timers) look() {
	t.first = clock.Never - 1
	if len(t.heap) > 0 {
		t.first = min(t.first, t.heap[0].At)
	}
}

func (a *Timer) before(b *Timer) bool { return a.At < b.At || a.At == b.At && a.seq < b.seq }

func (t *timers) push(x Timer) {
	x.seq = t.seq
	t.seq++
	t.heap = append(t.heap, x)
	t.first = min(t.first, x.At)
	i := len(t.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !t.heap[i].before(&t.heap[parent]) {
			break
		}
		t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
		i = parent
	}
}

func (t *timers) pop() Timer {
	defer t.look()
	top := t.heap[0]
	last := len(t.heap) - 1
	t.heap[0] = t.heap[last]
	t.heap = t.heap[:last]
	i := 0
	for {
		c := 2*i + 1
		if c >= last {
			return top
		}
		if c+1 < last && t.heap[c+1].before(&t.heap[c]) {
			c++
		}
		if !t.heap[c].before(&t.heap[i]) {
			return top
		}
		t.heap[i], t.heap[c] = t.heap[c], t.heap[i]
		i = c
	}
}
