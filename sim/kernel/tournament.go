package kernel

import (
	"math"
	"math/bits"
	"slices"

	"slosim/sim/clock"
)

// Tournament orders n items by time, ties by number. All items are always in it;
// an item without an event waits at clock.Never. It is a tree of winners, each of
// four: a move replays the matches between its leaf and the root, three comparisons
// per level whatever the outcome, so that there is nothing for a processor to
// mispredict.
//
// A contestant is one number: the time since a base in the upper bits, the item in
// the lower ones, so that a match is a minimum. Times too far from the base for the
// bits that are left stand at the far end, and the base moves on when one of them
// comes to the top.
type Tournament struct {
	leaves uint32 // a power of four
	width  uint   // bits of an item
	base   clock.Time
	never  uint64       // stands for clock.Never; one less for all times that are too far
	far    int64        // contestants from here on are too far, or wait for ever
	nodes  []int64      // nodes[1] is the winner, node k of nodes 4k to 4k+3; leaf i is node leaves + i
	at     []clock.Time // of every leaf
}

// NewTournament returns a tournament of n items that all wait for ever.
func NewTournament(n int) *Tournament {
	width := uint(bits.Len(uint(max(n-1, 0)))+1) &^ 1
	t := &Tournament{leaves: 1 << width, width: width, never: math.MaxInt64 >> width}
	t.far = int64((t.never - 1) << width)
	t.nodes, t.at = make([]int64, 2*t.leaves), make([]clock.Time, t.leaves)
	for i := range t.at {
		t.at[i] = clock.Never
	}
	t.replay()
	return t
}

// key returns an item's contestant at a time that is not before the base.
func (t *Tournament) key(item uint32, at clock.Time) int64 {
	d := uint64(at - t.base)
	if d >= t.never {
		d = t.never - 1
		if at == clock.Never {
			d = t.never
		}
	}
	return int64(d<<(t.width&63) | uint64(item))
}

// replay plays all matches anew.
func (t *Tournament) replay() {
	for i := range t.leaves {
		t.nodes[t.leaves+i] = t.key(i, t.at[i])
	}
	for level := t.leaves / 4; level > 0; level /= 4 {
		for k := level; k < 2*level; k++ {
			t.nodes[k] = slices.Min(t.nodes[4*k : 4*k+4])
		}
	}
}

// Top returns the item with the earliest event, and its time.
func (t *Tournament) Top() (clock.Time, int32) {
	top := t.nodes[1]
	if top >= t.far {
		top = t.recount()
	}
	item := int32(top) & int32(t.leaves-1)
	return t.at[item], item
}

// recount makes the earliest time the base, if any item has one, and returns the
// winner.
func (t *Tournament) recount() int64 {
	if uint64(t.nodes[1])>>t.width != t.never {
		t.rebase(slices.Min(t.at))
	}
	return t.nodes[1]
}

// rebase counts times from another one on, which none is before.
func (t *Tournament) rebase(base clock.Time) {
	t.base = base
	t.replay()
}

// Set moves an item to a new time.
func (t *Tournament) Set(item int32, at clock.Time) {
	if t.at[item] == at {
		return
	}
	t.at[item] = at
	if at < t.base {
		t.rebase(at)
		return
	}
	nodes, k := t.nodes, t.leaves+uint32(item)
	nodes[k] = t.key(uint32(item), at)
	for k > 1 {
		four := (*[4]int64)(nodes[k&^3:])
		k >>= 2
		nodes[k] = min(min(four[0], four[1]), min(four[2], four[3]))
	}
}
