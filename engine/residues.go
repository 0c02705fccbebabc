package engine

import "encoding/binary"

// residues counts decoding rows by their heldAt0 modulo the block size. A row takes a
// block in the steps in which the tokens it holds are the first of one, so the blocks
// that n steps take are the rows of n residues in a row, round a ring. The counts
// lie in the ring twice over, in 16 bits each, so that such a run is one piece of
// memory, and four of them are added at once.
type residues struct {
	lanes []byte
	mask  int64 // block size − 1
	room  [4 * residueRoom]byte
}

// residueRoom is the block size up to which the counts have room in the replica; a sum
// over fewer steps than that reads so many counts, whatever it needs of them.
const residueRoom = 16

// maxRows is how many rows can be counted.
const maxRows = 1<<16 - 1

func (c *residues) init(block int32) {
	c.mask = int64(block - 1)
	if c.lanes = c.room[:]; block > residueRoom {
		c.lanes = make([]byte, 2*(2*int(block)+residueRoom))
	}
}

// add counts n more rows of a residue.
func (c *residues) add(heldAt0 int64, n int16) {
	at := 2 * (heldAt0 & c.mask)
	again := at + 2*(c.mask+1)
	count := binary.LittleEndian.Uint16(c.lanes[at:]) + uint16(n)
	binary.LittleEndian.PutUint16(c.lanes[at:], count)
	binary.LittleEndian.PutUint16(c.lanes[again:], count)
}

// need returns how many blocks the rows take in step s.
func (c *residues) need(s int64) int32 {
	return int32(binary.LittleEndian.Uint16(c.lanes[2*((1-s)&c.mask):]))
}

// needs returns how many blocks they take in n steps from s on, fewer than a block has
// tokens. What there is to add is left to masks: a processor could not predict it.
func (c *residues) needs(s, n int64) int32 {
	l := c.lanes[2*((2-s-n)&c.mask):]
	sum := uint64(0)
	for ; n >= residueRoom; n -= 4 { // of large blocks
		sum += binary.LittleEndian.Uint64(l)
		l = l[8:]
	}
	m := &firstLanes[n]
	sum += binary.LittleEndian.Uint64(l[0:])&m[0] + binary.LittleEndian.Uint64(l[8:])&m[1] +
		binary.LittleEndian.Uint64(l[16:])&m[2] + binary.LittleEndian.Uint64(l[24:])&m[3]
	return int32(sum * 0x0001_0001_0001_0001 >> 48)
}

// firstLanes selects the first n of residueRoom counts.
var firstLanes = func() (masks [residueRoom][residueRoom / 4]uint64) {
	for n := range masks {
		for k := range n {
			masks[n][k/4] |= 0xffff << (k % 4 * 16)
		}
	}
	return masks
}()
