package engine

import (
	"testing"
	"unsafe"

	"slosim/models"
	"slosim/sim/prefetch"
)

// A replica is as small as its speed depends on: a look at it needs so many lines of the
// processor's cache as are fetched ahead, nothing of them is split between two, and the
// same line of many replicas falls on all places of a cache, because a replica has an odd
// number of them. A row is one line, and so is a step.
func TestStateLiesInLines(t *testing.T) {
	const line = 64
	var v VLLM
	if got := unsafe.Offsetof(v.idle); got != prefetch.Lines*line {
		t.Errorf("what every look needs is %d bytes, want %d lines", got, prefetch.Lines)
	}
	for name, at := range map[string]uintptr{
		"run": unsafe.Offsetof(v.run), "due": unsafe.Offsetof(v.due), "decodes": unsafe.Offsetof(v.decodes), "waiting": unsafe.Offsetof(v.waiting), "rows": unsafe.Offsetof(v.rows),
		"ring": unsafe.Offsetof(v.ring), "costs": unsafe.Offsetof(v.costs), "spent": unsafe.Offsetof(v.spent), "ahead": unsafe.Offsetof(v.ahead), "growth": unsafe.Offsetof(v.growth),
		"counts of residues": unsafe.Offsetof(v.residue) + unsafe.Offsetof(v.residue.room), "finish": unsafe.Offsetof(v.finish),
	} {
		if at%line != 0 {
			t.Errorf("%s begins %d bytes into a line", name, at%line)
		}
	}
	if size := unsafe.Sizeof(v); size%(2*line) != line {
		t.Errorf("a replica is %d bytes, not an odd number of lines", size)
	}
	if unsafe.Sizeof(row{}) != line || unsafe.Sizeof(step{}) != line || unsafe.Sizeof(match{}) != line {
		t.Errorf("a row is %d bytes, a step %d, a match %d", unsafe.Sizeof(row{}), unsafe.Sizeof(step{}), unsafe.Sizeof(match{}))
	}
	cfg := Config{MaxBatchedTokens: 64, MaxSeqs: 16, MaxModelLen: 100, BlockSize: 16, KVBlocks: 100, Model: toy{base: 1}, Host: models.Host{}}
	places := Places(3)
	first, second := places[0].Begin(&cfg), places[1].Begin(&cfg)
	if a := uintptr(unsafe.Pointer(first)); a%line != 0 || uintptr(unsafe.Pointer(second))-a != unsafe.Sizeof(v) {
		t.Errorf("replicas begin at %d and %d", a, uintptr(unsafe.Pointer(second)))
	}
}
