package engine

import "math/bits"

// turn is the number of slots of the finish wheel: most outputs end within it, and
// the wheels of a few dozen replicas fit the processor's cache.
const turn = 1024

// wheel files decoding rows by the step of their last token: one slot per step of
// the current turn and the next, an overflow list beyond, re-filed once per turn.
type wheel struct {
	used     [turn / 64]uint64 // bit per non-empty slot
	heads    [turn]tag         // of the rows that were filed last
	overflow tag
}

func (w *wheel) init() {
	for i := range w.heads {
		w.heads[i].row = none
	}
	w.overflow.row = none
}

// slot returns where rows are listed that end in a step of the current turn or the next.
func (w *wheel) slot(step int64) *tag { return &w.heads[step&(turn-1)] }

// add files a row by its last step when the newest scheduled step is now: slots cover
// last steps in [now, now + turn).
func (w *wheel) add(rows []row, i int32, now int64) {
	r := &rows[i]
	at := &w.overflow
	if r.last-now < turn {
		slot := r.last & (turn - 1)
		at = &w.heads[slot]
		w.used[slot/64] |= 1 << (slot % 64)
	}
	r.next = at.row
	*at = tag{i, r.id}
}

// remove takes a row out before its time. Its neighbours are looked for then, so that
// they need not be touched when it comes and goes in its turn.
func (w *wheel) remove(rows []row, i int32) {
	slot := rows[i].last & (turn - 1)
	if !w.heads[slot].unlink(rows, i) {
		w.overflow.unlink(rows, i)
	}
	if w.heads[slot].row == none {
		w.used[slot/64] &^= 1 << (slot % 64)
	}
}

// unlink takes a row out of a list; false if it is not in it.
func (h *tag) unlink(rows []row, i int32) bool {
	for at := &h.row; *at != none; at = &rows[*at].next {
		if *at == i {
			*at = rows[i].next
			if h.row != none {
				h.id = rows[h.row].id
			}
			return true
		}
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
	first := w.heads[slot].row
	w.heads[slot].row = none
	w.used[slot/64] &^= 1 << (slot % 64)
	return first
}

// refile moves rows whose turn has come from the overflow list to their slots.
func (w *wheel) refile(rows []row, now int64) {
	i := w.overflow.row
	w.overflow.row = none
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
