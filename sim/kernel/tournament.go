package kernel

import (
	"math"
	"slices"

	"slosim/sim/clock"
)

// Tournament orders n items by time, ties by number. All items are always in it;
// an item without an event waits at clock.Never. It is a tree of winners: a final of up
// to eight, each of them the winner of four, and so on. A move replays the matches
// between its leaf and the final, the same comparisons whatever the outcome, so that
// there is nothing for a processor to mispredict. With up to eight in the final twenty
// items need one level below it, a thousand need four.
//
// A contestant is one number: the time since a base in the upper bits, the item in
// the lower ones, so that a match is a minimum. Times too far from the base for the
// bits that are left stand at the far end, and the base moves on when one of them
// comes to the top.
type Tournament struct {
	top    int64  // the last winner
	mask   int64  // leaves − 1: of the item in a contestant
	leaves uint64 // the node of the first leaf, and how many there may be: a power of two
	base   clock.Time
	wide   bool         // more than four are in the final
	span   uint64       // times from base + span on are too far
	far    int64        // contestants from here on are too far, or wait for ever
	at     []clock.Time // of every item
	groups [][4]int64   // group k plays for node k
	final  [finalists]int64
}

// Nodes are numbered by level: the finalists from finalists on, the players of group k
// from 4k on, the leaves from leaves on.
const finalists = 8

// NewTournament returns a tournament of n items that all wait for ever.
func NewTournament(n int) *Tournament {
	t := &Tournament{leaves: finalists}
	for t.leaves < uint64(n) {
		t.leaves *= 4
	}
	t.mask, t.wide = int64(t.leaves-1), uint64(n) > t.leaves/2
	t.span = math.MaxInt64/t.leaves - 1
	t.far = int64(t.span * t.leaves)
	t.at = make([]clock.Time, max(n, 1))
	for i := range t.at {
		t.at[i] = clock.Never
	}
	if t.leaves > finalists {
		t.groups = make([][4]int64, (t.leaves+uint64(n)+3)/4)
	}
	for k := range t.groups {
		t.groups[k] = [4]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	}
	for k := range t.final {
		t.final[k] = math.MaxInt64
	}
	t.replay()
	return t
}

// key returns an item's contestant at a time that is not before the base.
func (t *Tournament) key(item int32, at clock.Time) int64 {
	d := uint64(at - t.base)
	if d >= t.span {
		d = t.span
		if at == clock.Never {
			d++
		}
	}
	return int64(d*t.leaves | uint64(item))
}

// replay plays all matches anew.
func (t *Tournament) replay() {
	for i, at := range t.at {
		t.place(t.leaves+uint64(i), t.key(int32(i), at))
	}
	for level := t.leaves / 4; level >= finalists; level /= 4 {
		for k := level; k < 2*level && k < uint64(len(t.groups)); k++ {
			t.place(k, slices.Min(t.groups[k][:]))
		}
	}
	t.top = t.winner()
}

// place enters a contestant as a node.
func (t *Tournament) place(node uint64, x int64) {
	if node < 2*finalists {
		t.final[node%finalists] = x
	} else {
		t.groups[node/4][node%4] = x
	}
}

// Top returns the item with the earliest event, and its time.
func (t *Tournament) Top() (at clock.Time, item int32) {
	if t.top >= t.far {
		t.recount()
	}
	item = int32(t.top & t.mask)
	return t.at[item], item
}

// recount makes the earliest time the base, if any item has one.
func (t *Tournament) recount() {
	if t.far > 0 && uint64(t.top)/t.leaves > t.span {
		return // all wait for ever, and none has been set before the base
	}
	if first := slices.Min(t.at); first != clock.Never {
		t.base, t.far = first, int64(t.span*t.leaves)
		t.replay()
	}
}

// Set moves an item to a new time.
func (t *Tournament) Set(item int32, at clock.Time) {
	t.at[item] = at
	d := uint64(at - t.base)
	if d >= t.span {
		if at < t.base { // it has no place among the others: Top recounts whatever they do
			t.far = math.MinInt64
			return
		}
		if d = t.span; at == clock.Never {
			d++
		}
	}
	x, node := int64(d*t.leaves|uint64(item)), t.leaves+uint64(item)
	for node >= 2*finalists {
		g := &t.groups[node/4]
		g[node%4] = x
		x = min(min(g[0], g[1]), min(g[2], g[3]))
		node /= 4
	}
	t.final[node%finalists] = x
	t.top = t.winner()
}

// winner plays the final.
func (t *Tournament) winner() int64 {
	f := &t.final
	x := min(min(f[0], f[1]), min(f[2], f[3]))
	if t.wide {
		x = min(x, min(min(f[4], f[5]), min(f[6], f[7])))
	}
	return x
}

// Second returns the item that would be the earliest without the one that is.
func (t *Tournament) Second() int32 {
	best := int64(math.MaxInt64)
	k := t.leaves + uint64(t.top&t.mask)
	for ; k >= 2*finalists; k /= 4 {
		g, p := &t.groups[k/4], k%4
		best = min(best, min(g[p^1], min(g[p^2], g[p^3])))
	}
	first := &t.final[k%finalists]
	x := *first
	*first = best // the final without the one, but with the best of those it has beaten before
	best = t.winner()
	*first = x
	return int32(best & t.mask)
}
