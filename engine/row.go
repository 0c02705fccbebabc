package engine

import (
	"cmp"
	"slices"

	"slosim/sim/clock"
	"slosim/workloads"
)

// none ends a linked list of rows.
const none = int32(-1)

// Where a row stands in its life.
const (
	free uint8 = iota
	waiting
	loading    // blocks reserved; its KV is on the way
	pinned     // prompt computed; its KV is kept for another replica
	prefilling // admitted; chunks still to be scheduled
	joining    // its last chunk is in the newest scheduled step
	drafting   // decodes with speculation: a step makes one token or more
	decoding   // one token in every step until its last
	ending     // its last token is in flight
)

// row is one request inside a replica. While it decodes, the tokens it has
// scheduled and the KV it holds follow from the step number alone: in step s it
// holds heldAt0 + s tokens and ends in step last.
type row struct {
	// What every row needs between its admission and its end comes first: it fills
	// one line of the processor's cache.
	id       int32
	prompt   int32
	output   int32 // tokens to make, ≥ 1
	made     int32 // tokens scheduled so far; stale while decoding
	target   int32 // tokens to prefill: the prompt and, after a preemption, what was made
	computed int32 // tokens of target scheduled so far
	blocks   int32 // KV blocks held; stale while decoding
	state    uint8
	seen     bool // its first token is visible or in flight
	half     workloads.Handover
	loaded   bool // its KV has arrived: blocks and all tokens but the last

	next      int32 // in a finish list, or next free row
	heldAt0   int64
	last      int64 // step of the last token
	admission int64 // number of its latest admission: its place in order

	ready, started, prefilled clock.Time

	arrival  int64 // number of its arrival at the scheduler
	extra    int64 // step it takes part in although it has ended
	step     int64 // newest step that a walk has scheduled it in
	chunk    int32 // prompt tokens in the step being scheduled
	priority int32 // smaller goes first, under the priority policy
	hit      int32 // statistical prefix hit, tokens; 0 = by content
	public   int32 // of blocks: in extents of the prefix cache
}

// content is what the prefix cache knows of a row; apart from it, because the rows
// of a replica without cache should be small.
type content struct {
	chain   workloads.Chain
	extents []int32 // in order
	filed   int32   // leading full blocks that were offered to the cache
}

// Sizes of the place where a replica's short lists begin: four lists and three of each
// step, with listRoom rows each.
const (
	listRoom  = 4
	smallRoom = (4 + 2*3) * listRoom
)

// lists lets the short lists of a replica begin side by side; those that outgrow their
// place move away.
func (v *VLLM) lists() {
	at := 0
	take := func(n int) []int32 {
		at += n
		return v.small[at-n : at-n : at]
	}
	for _, list := range []*[]int32{&v.joiners, &v.partial, &v.ended, &v.chunked} {
		*list = take(listRoom)
	}
	for k := range v.ring {
		st := &v.ring[k]
		st.finals = none
		for _, list := range []*[]int32{&st.started, &st.firsts, &st.drafts} {
			*list = take(listRoom)
		}
	}
}

// table is a growing array of rows with a free list.
type table struct {
	rows    []row
	content []content
	cached  bool // rows have content
	head    int32
}

func (t *table) take() int32 {
	if t.head == none {
		t.rows = append(t.rows, row{})
		if t.cached {
			t.content = append(t.content, content{})
		}
		return int32(len(t.rows) - 1)
	}
	i := t.head
	t.head = t.rows[i].next
	return i
}

func (t *table) release(i int32) {
	t.rows[i] = row{}
	t.rows[i].next = t.head
	if t.cached {
		t.content[i] = content{extents: t.content[i].extents[:0]}
	}
	t.head = i
}

// deque is a ring buffer of rows: the waiting queue. Under FCFS preempted
// requests go to its front; under the priority policy it is sorted.
type deque struct {
	buf  []int32 // length is a power of two
	head int
	n    int
}

// insert puts a row at place k of the queue.
func (d *deque) insert(k int, i int32) {
	if k == 0 {
		d.pushFront(i)
		return
	}
	d.pushBack(i)
	for j := d.n - 1; j > k; j-- {
		d.set(j, d.at(j-1))
	}
	d.set(k, i)
}

// remove takes the row at place k out; the ones before it move back.
func (d *deque) remove(k int) {
	for j := k; j > 0; j-- {
		d.set(j, d.at(j-1))
	}
	d.popFront()
}

func (d *deque) set(k int, i int32) { d.buf[(d.head+k)&(len(d.buf)-1)] = i }

func (d *deque) grow() {
	if d.n < len(d.buf) {
		return
	}
	buf := make([]int32, max(16, 2*len(d.buf)))
	for i := range d.n {
		buf[i] = d.at(i)
	}
	d.buf, d.head = buf, 0
}

func (d *deque) at(i int) int32 { return d.buf[(d.head+i)&(len(d.buf)-1)] }

func (d *deque) pushBack(i int32) {
	d.grow()
	d.buf[(d.head+d.n)&(len(d.buf)-1)] = i
	d.n++
}

func (d *deque) pushFront(i int32) {
	d.grow()
	d.head = (d.head - 1) & (len(d.buf) - 1)
	d.buf[d.head] = i
	d.n++
}

func (d *deque) popFront() int32 {
	i := d.buf[d.head]
	d.head = (d.head + 1) & (len(d.buf) - 1)
	d.n--
	return i
}

// order is the running list in order of admission. It is only kept while somebody asks
// for it: most replicas never run short of blocks or budget. Rows that left are gaps,
// squeezed out when they outnumber the rest.
type order struct {
	entries []entry // while kept
	live    int
	kept    bool
	asked   bool // since gaps were last squeezed out
}

type entry struct {
	row       int32
	admission int64
}

// push appends a row. Gaps go now and not when a row leaves, because rows leave
// in the middle of a walk.
func (o *order) push(rows []row, i int32, admission int64) {
	o.live++
	if !o.kept {
		return
	}
	if len(o.entries) > 32 && len(o.entries) > 2*o.live {
		o.entries = slices.DeleteFunc(o.entries, func(e entry) bool { return !e.current(rows) })
		o.kept, o.asked = o.asked, false
	}
	o.entries = append(o.entries, entry{i, admission})
}

// list returns the entries of all running rows, and gaps.
func (o *order) list(rows []row) []entry {
	o.asked = true
	if !o.kept {
		o.kept, o.entries = true, o.entries[:0]
		for i := range rows {
			if r := &rows[i]; r.state >= prefilling {
				o.entries = append(o.entries, entry{int32(i), r.admission})
			}
		}
		slices.SortFunc(o.entries, func(a, b entry) int { return cmp.Compare(a.admission, b.admission) })
	}
	return o.entries
}

// current tells whether the entry still stands for a running row.
func (e entry) current(rows []row) bool {
	r := &rows[e.row]
	return r.admission == e.admission && r.state >= prefilling
}
