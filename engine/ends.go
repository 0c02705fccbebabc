package engine

// ends orders decoding rows by the step of their last token: a tree of winners with a
// leaf for every row and eight to a match. A match is a line of the processor's cache, and
// the same comparisons whatever the outcome.
type ends struct {
	final  match // winners of matches, or the leaves of up to eight rows
	first  uint64
	leaves int     // node of the first row's leaf: a power of eight
	lower  []match // match k − 8 plays for node k
}

// Nodes are numbered by level: the finalists from 8 on, the players of match k from 8k on,
// the leaves from leaves on.
type match [8]uint64

// A player is a step in the upper bits and a row in the lower ones.
const (
	rowBits = 28
	noEnd   = 1<<64 - 1           // of a row that does not decode
	mostEnd = 1<<(64-rowBits) - 2 // the last step that a player can have: noEnd comes after it
)

var nobody = match{noEnd, noEnd, noEnd, noEnd, noEnd, noEnd, noEnd, noEnd}

func (e *ends) init() { e.final, e.first, e.leaves = nobody, noEnd, 8 }

// next returns the step in which a row ends next; far away if none does.
func (e *ends) next() int64 { return int64(e.first >> rowBits) }

// row returns the row that ends next. Several that end in the same step come in the order
// of their places in the table.
func (e *ends) row() int32 { return int32(e.first & (1<<rowBits - 1)) }

// add says in which step a row ends that is not in the tree.
func (e *ends) add(i int32, step int64) {
	x := uint64(step)<<rowBits | uint64(i)
	node := uint(e.leaves) + uint(i)
	for ; node >= 16; node /= 8 {
		p := &e.lower[node/8-8][node%8]
		*p = min(*p, x)
	}
	e.final[node%8] = min(e.final[node%8], x)
	e.first = min(e.first, x)
}

// remove takes a row out.
func (e *ends) remove(i int32) {
	x := uint64(noEnd)
	node := uint(e.leaves) + uint(i)
	for ; node >= 16; node /= 8 {
		m := &e.lower[node/8-8]
		m[node%8] = x
		x = m.winner()
	}
	e.final[node%8] = x
	e.first = e.final.winner()
}

func (m *match) winner() uint64 {
	return min(min(min(m[0], m[1]), min(m[2], m[3])), min(min(m[4], m[5]), min(m[6], m[7])))
}

// reach makes leaves for so many rows.
func (e *ends) reach(rows int) {
	for rows > e.leaves {
		old := []match{e.final}
		if e.leaves > 8 {
			old = e.lower[e.leaves/8-8:]
		}
		e.leaves *= 8
		e.lower, e.final = nil, nobody
		e.extend(min(rows, e.leaves))
		for k := range old {
			for _, x := range old[k] {
				if x != noEnd {
					e.add(int32(x&(1<<rowBits-1)), int64(x>>rowBits))
				}
			}
		}
	}
	e.extend(rows)
}

// leaf returns the match of the first rows' leaves.
func (e *ends) leaf() *match {
	if e.leaves == 8 {
		return &e.final
	}
	return &e.lower[e.leaves/8-8]
}

// extend makes sure of the matches of rows' leaves, which come last.
func (e *ends) extend(rows int) {
	for e.leaves > 8 && len(e.lower) < (e.leaves+rows+7)/8-8 {
		e.lower = append(e.lower, nobody)
	}
}
