package kernel

import "slosim/sim/clock"

// Heap orders n items by time, ties by number. All items are always in it; an
// item without an event waits at clock.Never. Four children per node: half the
// levels of a binary heap, and siblings share a cache line.
type Heap struct {
	items []node
	place []int32 // of each item in items
}

type node struct {
	at   clock.Time
	item int32
}

// NewHeap returns a heap of n items that all wait for ever.
func NewHeap(n int) *Heap {
	h := &Heap{items: make([]node, n), place: make([]int32, n)}
	for i := range n {
		h.items[i] = node{clock.Never, int32(i)}
		h.place[i] = int32(i)
	}
	return h
}

// Top returns the item with the earliest event, and its time.
func (h *Heap) Top() (clock.Time, int32) {
	if len(h.items) == 0 {
		return clock.Never, -1
	}
	return h.items[0].at, h.items[0].item
}

func (a node) before(b node) bool { return a.at < b.at || a.at == b.at && a.item < b.item }

// Set moves an item to a new time.
func (h *Heap) Set(item int32, at clock.Time) {
	i := h.place[item]
	old := h.items[i].at
	if at == old {
		return
	}
	n := node{at, item}
	if at < old {
		h.up(i, n)
	} else {
		h.down(i, n)
	}
}

func (h *Heap) put(i int32, n node) {
	h.items[i] = n
	h.place[n.item] = i
}

func (h *Heap) up(i int32, n node) {
	for i > 0 {
		parent := (i - 1) / 4
		if !n.before(h.items[parent]) {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, n)
}

func (h *Heap) down(i int32, n node) {
	size := int32(len(h.items))
	for {
		first := 4*i + 1
		if first >= size {
			break
		}
		best := first
		for c := first + 1; c < min(first+4, size); c++ {
			if h.items[c].before(h.items[best]) {
				best = c
			}
		}
		if !h.items[best].before(n) {
			break
		}
		h.put(i, h.items[best])
		i = best
	}
	h.put(i, n)
}
