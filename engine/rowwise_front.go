package engine

import "slosim/sim/clock"

// frontend is the list of requests on their way through API server and tokeniser,
// in order of readiness; equal times keep the order of submission.
type frontend struct {
	list    []inbound
	head    int // of list: the first still inside
	rejects int // of those inside
}

// inbound is a request in the front end.
type inbound struct {
	ready  clock.Time
	id     int32
	job    int32 // slot; none when it will be turned away
	reject bool
}

// add files a request by its time of readiness.
func (f *frontend) add(a inbound) {
	if a.reject {
		f.rejects++
	}
	if f.head > 16 && f.head > len(f.list)/2 {
		f.list = f.list[:copy(f.list, f.list[f.head:])]
		f.head = 0
	}
	i := len(f.list)
	f.list = append(f.list, a)
	for i > f.head && f.list[i-1].ready > a.ready {
		f.list[i] = f.list[i-1]
		i--
	}
	f.list[i] = a
}

// pop takes the first request out.
func (f *frontend) pop() inbound {
	a := f.list[f.head]
	f.head++
	if a.reject {
		f.rejects--
	}
	return a
}

// next returns when the first request is ready, or Never.
func (f *frontend) next() clock.Time {
	if f.head == len(f.list) {
		return clock.Never
	}
	return f.list[f.head].ready
}

// len returns how many requests are inside.
func (f *frontend) len() int { return len(f.list) - f.head }
