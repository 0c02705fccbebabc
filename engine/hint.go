package engine

import (
	"unsafe"

	"slosim/sim/prefetch"
)

// Hint is of which row the next event of a replica will likely be. It is for fetching
// ahead only, and may be wrong in any way. Those of many replicas lie together, apart from
// these, so that they are known without a look at a replica.
type Hint struct {
	replica             unsafe.Pointer
	row, n              int32          // which of how many
	rows, times, leaves unsafe.Pointer // the tables of rows, of their stamps and of their places among the ends
}

// at notes where a replica's tables are.
func (h *Hint) at(v *VLLM) {
	h.n = int32(len(v.rows))
	h.rows, h.times, h.leaves = unsafe.Pointer(&v.rows[0]), unsafe.Pointer(&v.times[0]), unsafe.Pointer(v.finish.leaf())
}

// Fetch fetches what the replica and the event will need.
func (h *Hint) Fetch() {
	if uint32(h.row) >= uint32(h.n) {
		return
	}
	i := uintptr(h.row)
	prefetch.Ahead(h.replica, unsafe.Add(h.rows, i*unsafe.Sizeof(row{})), unsafe.Add(h.times, i*unsafe.Sizeof(stamps{})), unsafe.Add(h.leaves, i/8*unsafe.Sizeof(match{})))
}

// ID returns whose row it is: a Request.ID.
func (h *Hint) ID() int32 {
	if uint32(h.row) >= uint32(h.n) {
		return 0
	}
	return (*row)(unsafe.Add(h.rows, uintptr(h.row)*unsafe.Sizeof(row{}))).id
}

// HintAt implements Replica.
func (v *VLLM) HintAt(h *Hint) {
	*h = Hint{replica: unsafe.Pointer(&v.run)}
	v.hints = h
	if len(v.rows) > 0 {
		h.at(v)
	}
}

// hintStep notes a row of which the running step publishes something, or else the planned
// one.
func (v *VLLM) hintStep() {
	st := v.running
	if v.steps == 2 && !st.publishes() {
		st = v.planned
	}
	switch {
	case st.firsts.n > 0:
		v.hints.row = st.firsts.one
	case st.finals != none:
		v.hints.row = st.finals
	case v.decodes > 0:
		v.hints.row = v.finish.row()
	}
}
