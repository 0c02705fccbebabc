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
	leaves uint32 // a power of four; leaf i is in place (leaves+i)%4 of group (leaves+i)/4
	mask   int32  // leaves − 1: of the item in a contestant
	width  uint   // bits of an item
	base   clock.Time
	never  uint64       // stands for clock.Never; one less for all times that are too far
	far    int64        // contestants from here on are too far, or wait for ever
	top    int64        // the last winner
	groups [][4]int64   // group k plays for place k%4 of group k/4; the last winner is in place 1 of group 0
	at     []clock.Time // of every leaf
}

// NewTournament returns a tournament of n items that all wait for ever.
func NewTournament(n int) *Tournament {
	width := uint(bits.Len(uint(max(n-1, 0)))+1) &^ 1
	t := &Tournament{leaves: 1 << width, mask: 1<<width - 1, width: width, never: math.MaxInt64 >> width}
	t.far = int64((t.never - 1) << width)
	t.groups, t.at = make([][4]int64, max(1, t.leaves/2)), make([]clock.Time, t.leaves)
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
		k := t.leaves + i
		t.groups[k/4][k%4] = t.key(i, t.at[i])
	}
	for level := t.leaves / 4; level > 0; level /= 4 {
		for k := level; k < 2*level; k++ {
			t.groups[k/4][k%4] = slices.Min(t.groups[k][:])
		}
	}
	t.top = t.groups[0][1]
}

// Top returns the item with the earliest event, and its time.
func (t *Tournament) Top() (clock.Time, int32) {
	item := int32(t.top) & t.mask
	return t.at[item], item
}

// recount makes the earliest time the base, if any item has one.
func (t *Tournament) recount() {
	if uint64(t.top)>>t.width != t.never {
		t.rebase(slices.Min(t.at))
	}
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
	groups, k := t.groups, t.leaves+uint32(item)
	winner := t.key(uint32(item), at)
	g := &groups[k/4]
	g[k%4] = winner
	for k > 1 {
		winner = min(min(g[0], g[1]), min(g[2], g[3]))
		k /= 4
		g = &groups[k/4]
		g[k%4] = winner
	}
	if t.top = winner; winner >= t.far {
		t.recount()
	}
}

// Second returns the item that would be the earliest without the one that is.
func (t *Tournament) Second() int32 {
	best := int64(math.MaxInt64)
	for k := t.leaves + uint32(int32(t.top)&t.mask); k > 3; k /= 4 {
		g, p := &t.groups[k/4], k%4
		best = min(best, min(g[p^1], min(g[p^2], g[p^3])))
	}
	return int32(best) & t.mask
}
