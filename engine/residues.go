package engine

import (
	"encoding/binary"
	"unsafe"
)

// residues counts decoding rows by their heldAt0 modulo the block size. A row takes a
// block in the steps in which the tokens it holds are the first of one, so the blocks
// that n steps take are the rows of n residues in a row, round a ring. The counts
// lie in the ring twice over, in 16 bits each, so that such a run is one piece of
// memory, and four of them are added at once.
type residues struct {
	counts []uint16 // the ring, twice, and room for a sum to read beyond it
	mask   int64    // block size − 1
	room   [2 * residueRoom]uint16
}

// residueRoom is the block size up to which the counts have room in the replica; a sum
// over fewer steps than that reads so many counts, whatever it needs of them.
const residueRoom = 16

// maxRows is how many rows can be counted.
const maxRows = 1<<16 - 1

func (c *residues) init(block int32) {
	c.mask = int64(block - 1)
	if c.counts = c.room[:]; block > residueRoom {
		c.counts = make([]uint16, 2*int(block)+residueRoom)
	}
}

// add counts n more rows of a residue.
func (c *residues) add(heldAt0 int64, n int16) {
	at := heldAt0 & c.mask
	counts := c.counts
	count := counts[at] + uint16(n)
	counts[at] = count
	counts[at+c.mask+1] = count
}

// need returns how many blocks the rows take in step s.
func (c *residues) need(s int64) int32 { return int32(c.counts[(1-s)&c.mask]) }

// needs returns how many blocks they take in n steps from s on, fewer than a block has
// tokens. What there is to add is left to masks: a processor could not predict it.
func (c *residues) needs(s, n int64) int32 {
	l := c.counts[(2-s-n)&c.mask:]
	sum := uint64(0)
	for ; n >= residueRoom; n -= lanes { // of large blocks
		sum += fourOf(l, 0)
		l = l[lanes:]
	}
	l, m := l[:residueRoom], firstCounts[n][:]
	sum += fourOf(l, 0)&fourOf(m, 0) + fourOf(l, 1)&fourOf(m, 1) + fourOf(l, 2)&fourOf(m, 2) + fourOf(l, 3)&fourOf(m, 3)
	return int32(sum * 0x0001_0001_0001_0001 >> 48)
}

// lanes is how many counts are read at once.
const lanes = 4

// fourOf returns four counts of a list, those from 4·k on, as one word: sums do not ask
// in which order.
func fourOf(list []uint16, k int) uint64 {
	return binary.NativeEndian.Uint64((*[2 * lanes]byte)(unsafe.Pointer(&list[lanes*k]))[:])
}

// firstCounts selects the first n of residueRoom counts.
var firstCounts = func() (masks [residueRoom][residueRoom]uint16) {
	for n := range masks {
		for k := range n {
			masks[n][k] = 0xffff
		}
	}
	return masks
}()
