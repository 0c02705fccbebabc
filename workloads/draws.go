package workloads

import (
	"math/bits"
	"slices"
	"sort"
	"sync"

	"slosim/sim/rng"
)

// Lengths of many requests are drawn from a table instead of by formula: what At
// gives for each of the 2^53 uniform draws that there are. The draws are cut into
// segments of equal width, each of these into as many cells of equal width as make the
// lengths of each few. A cell is one word: the length of its first draw, and per further
// length the slot, of 2^15 in the cell, from which on there is one token more. Only for
// draws in such a slot itself is At asked, one of some twenty thousand.
//
// All that is looked at for a draw lies in two lines of the processor's cache, and the
// tables of prompts and outputs together are about as large as its first level.

const (
	segmentBits = 8 // of a draw
	mostBits    = 8 // of a draw that choose a cell in the longest segments: those of the tail
	slotBits    = 15
	laneBits    = slotBits + 1
	lengthShift = cellCuts * laneBits

	cellCuts    = 3       // at most, in one cell; in cells with more At is asked
	mostCells   = 1 << 13 // 64 KB: beyond, At is asked
	worthATable = 200_000 // draws: a table takes a hundredth of a second (BenchmarkDrawTable)
	maxTables   = 64      // kept, the newest
)

// A cell's cuts lie in lanes of 16 bits, the length above them. The upper bit of a lane
// is free, so that one subtraction compares a slot with all of them.
const (
	lanes  = 1 | 1<<laneBits | 1<<(2*laneBits)
	tops   = lanes << slotBits
	noCut  = 1 << slotBits // which no slot reaches
	askAt  = noCut * lanes // the cell whose lengths only At knows: 0 and no more
	drawUp = 64 - rng.DrawBits
)

type drawTable struct {
	segments [1 << segmentBits]segment
	cells    []uint64
	ready    sync.Once
}

// segment says where the cells of a segment are.
type segment struct {
	first uint16
	mask  uint8 // of the bits that choose one of them
	turn  uint8 // how many bits choose the segment and one of them
}

// Draw returns the length that the i-th draw of a source stands for.
func (l *Lengths) Draw(s *rng.Source, i int64) int32 {
	n := [1]int32{}
	l.lengths([]uint64{s.Uint64(i)}, n[:])
	return n[0]
}

// drawAll draws the lengths of requests from the i-th on.
func (l *Lengths) drawAll(s *rng.Source, i int64, lengths *[Ahead]int32) {
	var draws [Ahead]uint64
	s.Fill(i, draws[:])
	l.lengths(draws[:], lengths[:])
}

// lengths returns the lengths that draws of 64 random bits stand for. Where they lie
// among the cuts of their cells is left to arithmetic: a processor cannot predict it.
func (l *Lengths) lengths(draws []uint64, lengths []int32) {
	lengths = lengths[:len(draws)]
	t := l.draws
	if t == nil {
		for k, x := range draws {
			lengths[k] = l.At(rng.Uniform(x >> drawUp))
		}
		return
	}
	for k, x := range draws {
		s := &t.segments[x>>(64-segmentBits)]
		turned := bits.RotateLeft64(x, int(s.turn))
		cell := t.cells[uint64(s.first)+turned&uint64(s.mask)]
		d := (turned>>(64-slotBits)*lanes | tops) - cell // a top is left where the slot is not before the cut
		n := int32(cell>>lengthShift) + int32((d&tops)*lanes>>(lengthShift-1)&3)
		if n == 0 || d&^(d-lanes)&tops != 0 { // a top is all that is left: the slot of the cut
			n = l.At(rng.Uniform(x >> drawUp))
		}
		lengths[k] = n
	}
}

// Expect says how many draws will come: many are worth a table, which all users of
// equal lengths share.
func (l *Lengths) Expect(draws float64) {
	if draws < worthATable || l.kind == fixed || l.kind == table {
		return
	}
	d := &l.dist
	key := drawKey{l.kind, [...]float64{d.Mean, d.SD, l.mu, l.sigma, d.Alpha, d.Min, d.Max, d.Tail.From, d.Tail.Alpha}}
	drawTables.Lock()
	t := drawTables.byKey[key]
	if t == nil {
		t = &drawTable{}
		if drawTables.byKey == nil {
			drawTables.byKey = map[drawKey]*drawTable{}
		}
		if len(drawTables.order) == maxTables {
			delete(drawTables.byKey, drawTables.order[0])
			drawTables.order = drawTables.order[1:]
		}
		drawTables.byKey[key] = t
		drawTables.order = append(drawTables.order, key)
	}
	drawTables.Unlock()
	t.ready.Do(func() { t.fill(l) })
	l.draws = t
}

// drawKey is what two distributions have in common whose tables are equal.
type drawKey struct {
	kind   kind
	params [9]float64
}

var drawTables struct {
	sync.Mutex
	byKey map[drawKey]*drawTable
	order []drawKey
}

// fill works the table out. Lengths must not fall as the draw rises.
func (t *drawTable) fill(l *Lengths) {
	for k := range t.segments {
		low := uint64(k) << (rng.DrawBits - segmentBits)
		n := 0 // bits that choose a cell
		for n < mostBits && !l.fit(low, n) {
			n++
		}
		cells := make([]uint64, 1<<n)
		for j := range cells {
			cells[j] = l.cell(low+uint64(j)*cellWidth(n), n)
		}
		if len(t.cells)+len(cells)+(1<<segmentBits) > mostCells || !slices.ContainsFunc(cells, func(c uint64) bool { return c != askAt }) {
			n, cells = 0, []uint64{askAt}
		}
		t.segments[k] = segment{first: uint16(len(t.cells)), mask: 1<<n - 1, turn: uint8(segmentBits + n)}
		t.cells = append(t.cells, cells...)
	}
	t.cells = slices.Clip(t.cells)
}

// cellWidth is the number of draws in a cell that so many bits choose within its segment.
func cellWidth(n int) uint64 { return 1 << (rng.DrawBits - segmentBits - n) }

// fit tells whether the cells of the segment from a draw on are short enough.
func (l *Lengths) fit(low uint64, n int) bool {
	for range 1 << n {
		if l.atDraw(low+cellWidth(n)-1)-l.atDraw(low) > cellCuts {
			return false
		}
		low += cellWidth(n)
	}
	return true
}

func (l *Lengths) atDraw(x uint64) int32 { return l.At(rng.Uniform(x)) }

// cell returns the cell from a draw on.
func (l *Lengths) cell(low uint64, n int) uint64 {
	least, most := l.atDraw(low), l.atDraw(low+cellWidth(n)-1)
	if most-least > cellCuts || least >= 1<<(64-lengthShift) {
		return askAt
	}
	c := uint64(least) << lengthShift
	for k := range int32(cellCuts) {
		cut := noCut
		if more := least + 1 + k; more <= most {
			cut = l.cut(more, low, n)
		}
		c |= uint64(cut) << (laneBits * k)
	}
	return c
}

// cut returns the slot, of a cell whose first draw is shorter and whose last is not,
// from which on a length is reached. It looks near where a straight line reaches it.
func (l *Lengths) cut(length int32, low uint64, n int) int {
	const near = 32
	slot := cellWidth(n) >> slotBits // its draws
	reached := func(i int) bool { return l.atDraw(low+uint64(i+1)*slot-1) >= length }
	first, last := 0, 1<<slotBits-1
	a, b := l.Quantile(rng.Uniform(low)), l.Quantile(rng.Uniform(low+cellWidth(n)-1))
	guess := int((float64(length) - 0.5 - a) / (b - a) * (1 << slotBits))
	for _, i := range [2]int{guess - near, guess + near} {
		switch {
		case i < first || i >= last:
		case reached(i):
			last = i
		default:
			first = i + 1
		}
	}
	return first + sort.Search(last-first, func(i int) bool { return reached(first + i) })
}
