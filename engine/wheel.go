package engine

import "math/bits"

// turn is the number of slots of the finish wheel: most outputs end within it, and
// the wheels of a few dozen replicas fit the processor's cache.
const turn = 1024

// wheel files decoding rows by the step of their last token: one slot per step of
// the current turn and the next, an overflow list beyond, re-filed once per turn.
type wheel struct {
	heads    [turn]int32
	used     [turn / 64]uint64 // bit per non-empty slot
	overflow int32
}

func (w *wheel) init() {
	for i := range w.heads {
		w.heads[i] = none
	}
	w.overflow = none
}

// head returns the list that a row with this last step belongs to when the
// newest scheduled step is now: slots cover last steps in [now, now + turn).
func (w *wheel) add(rows []row, i int32, now int64) {
	r := &rows[i]
	head := &w.overflow
	if r.last-now < turn {
		slot := r.last & (turn - 1)
		head = &w.heads[slot]
		w.used[slot/64] |= 1 << (slot % 64)
	}
	r.prev, r.next = none, *head
	if *head != none {
		rows[*head].prev = i
	}
	*head = i
}

// remove takes a row out before its time.
func (w *wheel) remove(rows []row, i int32) {
	r := &rows[i]
	if r.next != none {
		rows[r.next].prev = r.prev
	}
	switch slot := r.last & (turn - 1); {
	case r.prev != none:
		rows[r.prev].next = r.next
	case w.heads[slot] == i:
		w.heads[slot] = r.next
		if r.next == none {
			w.used[slot/64] &^= 1 << (slot % 64)
		}
	default:
		w.overflow = r.next
	}
}

// take empties the slot of a step and returns its list.
func (w *wheel) take(step int64) int32 {
	slot := step & (turn - 1)
	head := w.heads[slot]
	w.heads[slot] = none
	w.used[slot/64] &^= 1 << (slot % 64)
	return head
}

// refile moves rows whose turn has come from the overflow list to their slots.
func (w *wheel) refile(rows []row, now int64) {
	i := w.overflow
	w.overflow = none
	for i != none {
		next := rows[i].next
		w.add(rows, i, now)
		i = next
	}
}

// next returns the first step ≥ now in which a row ends, or now + turn when the
// wheel is empty.
func (w *wheel) next(now int64) int64 {
	slot := int(now & (turn - 1))
	word := slot / 64
	if m := w.used[word] >> (slot % 64); m != 0 {
		return now + int64(bits.TrailingZeros64(m))
	}
	for k := 1; k <= turn/64; k++ {
		i := (word + k) % (turn / 64)
		if m := w.used[i]; m != 0 {
			at := i*64 + bits.TrailingZeros64(m)
			return now + int64((at-slot)&(turn-1))
		}
	}
	return now + turn
}
