package kernel

import "slosim/sim/clock"

// Tournament orders n items by time, ties by number. All items are always in it;
// an item without an event waits at clock.Never. It is a tree of winners: a move
// replays the matches between its leaf and the root, one comparison per level
// whatever the outcome, so that there is nothing for a processor to mispredict.
type Tournament struct {
	leaves int32
	nodes  []node // nodes[1] is the winner, node k plays 2k against 2k+1
}

type node struct {
	at   clock.Time
	item int32
}

// NewTournament returns a tournament of n items that all wait for ever.
func NewTournament(n int) *Tournament {
	leaves := int32(1)
	for int(leaves) < n {
		leaves *= 2
	}
	t := &Tournament{leaves: leaves, nodes: make([]node, 2*leaves)}
	for i := range leaves {
		t.nodes[leaves+i] = node{clock.Never, i}
	}
	for k := leaves - 1; k > 0; k-- {
		t.nodes[k] = t.nodes[2*k]
	}
	if n == 0 {
		t.nodes[1].item = -1
	}
	return t
}

// Top returns the item with the earliest event, and its time.
func (t *Tournament) Top() (clock.Time, int32) {
	return t.nodes[1].at, t.nodes[1].item
}

// Set moves an item to a new time.
func (t *Tournament) Set(item int32, at clock.Time) {
	k := t.leaves + item
	if t.nodes[k].at == at {
		return
	}
	t.nodes[k] = node{at, item}
	for k > 1 {
		rival := t.nodes[k^1]
		// a rival on the left has the smaller number and wins a tie
		if rival.at-clock.Time(k&1) < at {
			at, item = rival.at, rival.item
		}
		k >>= 1
		t.nodes[k] = node{at, item}
	}
}
