package engine

import "math/bits"

// turn is the number of slots of the finish wheel: most outputs end within it, and
// the wheels of a few dozen replicas fit the processor's cache.
const turn = 1024

// wheel files decoding rows by the step of their last token: one slot per step of
// the current turn and the next, an overflow list beyond, re-filed once per turn.
type wheel struct {
	used     [turn / 64]uint64 // bit per non-empty slot
	heads    [turn]int32
	overflow int32
}

func (w *wheel) init() {
	for i := range w.heads {
		w.heads[i] = none
	}
	w.overflow = none
}

// slot returns where rows are listed that end in a step of the current turn or the next.
func (w *wheel) slot(step int64) *int32 { return &w.heads[step&(turn-1)] }

// add files a row by its last step when the newest scheduled step is now: slots cover
// last steps in [now, now + turn).
func (w *wheel) add(rows []row, i int32, now int64) {
	r := &rows[i]
	head := &w.overflow
	if r.last-now < turn {
		slot := r.last & (turn - 1)
		head = &w.heads[slot]
		w.used[slot/64] |= 1 << (slot % 64)
	}
	r.next = *head
	*head = i
}

// remove takes a row out before its time. Its neighbours are looked for then, so that
// they need not be touched when it comes and goes in its turn.
func (w *wheel) remove(rows []row, i int32) {
	slot := rows[i].last & (turn - 1)
	if !unlink(rows, &w.heads[slot], i) {
		unlink(rows, &w.overflow, i)
	}
	if w.heads[slot] == none {
		w.used[slot/64] &^= 1 << (slot % 64)
	}
}

// unlink takes a row out of a list; false if it is not in it.
func unlink(rows []row, at *int32, i int32) bool {
	for *at != none {
		if *at == i {
			*at = rows[i].next
			return true
		}
		at = &rows[*at].next
	}
	return false
}

// ends tells whether any row ends in a step.
func (w *wheel) ends(step int64) bool {
	slot := step & (turn - 1)
	return w.used[slot/64]>>(slot%64)&1 != 0
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
