package engine

import (
	"slices"

	"slosim/sim/clock"
)

// arrival is a request in the front end that is not the first to be ready.
type arrival struct {
	ready clock.Time
	tag   // without a row it is too long, and will be turned away
}

// lineUp puts a further request in its place in the front end.
func (v *VLLM) lineUp(a arrival) {
	if a.ready < v.due {
		first := arrival{v.due, v.front}
		v.due, v.front = a.ready, a.tag
		v.inbox = slices.Insert(v.inbox, 0, first)
		return
	}
	k := len(v.inbox)
	for k > 0 && v.inbox[k-1].ready > a.ready {
		k--
	}
	v.inbox = slices.Insert(v.inbox, k, a)
}

// nextDue makes the second request of the front end the first.
func (v *VLLM) nextDue() {
	v.due = clock.Never
	if v.inFront--; v.inFront > 0 {
		v.due, v.front = v.inbox[0].ready, v.inbox[0].tag
		v.inbox = slices.Delete(v.inbox, 0, 1)
	}
}

// leaveFront takes a row out of the front end; false if it is not there.
func (v *VLLM) leaveFront(i int32) bool {
	if v.inFront > 0 && v.front.row == i {
		v.nextDue()
		return true
	}
	k := slices.IndexFunc(v.inbox, func(a arrival) bool { return a.row == i })
	if k < 0 {
		return false
	}
	v.inbox = slices.Delete(v.inbox, k, k+1)
	v.inFront--
	return true
}
