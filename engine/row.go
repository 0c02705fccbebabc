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
// holds heldAt0 + s tokens and ends in step last. It fills one line of the processor's
// cache; what is seldom asked lies beside it.
type row struct {
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
	hit       int32 // statistical prefix hit, tokens; 0 = by content
	heldAt0   int64
	last      int64 // step of the last token
	admission int64 // number of its latest admission: its place in order
}

// tag is a row and its request, which is known so without a look at the row.
type tag struct{ row, id int32 }

// stamps are the instants that a row's events tell of.
type stamps struct {
	ready, started, prefilled clock.Time
}

// aside is what only some schedulers ask of a row. What an earlier row has left there
// does no harm: its steps are past, the rest is set where it is asked.
type aside struct {
	arrival  int64 // number of its arrival at the scheduler
	extra    int64 // step it takes part in although it has ended
	step     int64 // newest step that a walk has scheduled it in
	chunk    int32 // prompt tokens in the step being scheduled
	priority int32 // smaller goes first, under the priority policy
}

// content is what the prefix cache knows of a row.
type content struct {
	chain   workloads.Chain
	extents []int32 // in order
	filed   int32   // leading full blocks that were offered to the cache
	public  int32   // of the row's blocks: in extents
}

// takeRow returns a row that is all zero.
func (v *VLLM) takeRow() int32 {
	i := v.vacant
	if i == none {
		return v.oneMoreRow()
	}
	v.vacant = v.rows[i].next
	v.rows[i].next = 0
	return i
}

func (v *VLLM) oneMoreRow() int32 {
	v.rows, v.times, v.asides = append(v.rows, row{}), append(v.times, stamps{}), append(v.asides, aside{})
	if v.cfg.PrefixCache {
		v.content = append(v.content, content{})
	}
	v.finish.reach(len(v.rows))
	if v.hints != nil {
		v.hints.at(v)
	}
	return int32(len(v.rows) - 1)
}

// releaseRow frees a row.
func (v *VLLM) releaseRow(i int32) {
	v.rows[i] = row{next: v.vacant}
	if v.cfg.PrefixCache {
		v.content[i] = content{extents: v.content[i].extents[:0]}
	}
	v.vacant = i
}

// few is a list of rows that seldom has more than one: the others lie elsewhere, where
// its owner says.
type few struct {
	n   int32
	one int32 // the first
}

func (f *few) add(i int32, others *[]int32) {
	if f.n++; f.n == 1 {
		f.one = i
	} else {
		f.more(i, others)
	}
}

//go:noinline
func (f *few) more(i int32, others *[]int32) {
	*others = append((*others)[:f.n-2], i)
}

// at returns row k.
func (f *few) at(k int32, others []int32) int32 {
	if k == 0 {
		return f.one
	}
	return others[k-1]
}

// remove takes a row out, if it is in the list. The order stays.
func (f *few) remove(i int32, others *[]int32) {
	if f.n == 0 {
		return
	}
	list := append([]int32{f.one}, (*others)[:f.n-1]...)
	f.n = 0
	for _, k := range without(list, i) {
		f.add(k, others)
	}
}

// deque is a ring buffer of rows: the waiting queue. Under FCFS preempted
// requests go to its front; under the priority policy it is sorted.
type deque struct {
	buf  []int32 // length is a power of two
	head int32
	n    int32
}

// insert puts a row at place k of the queue.
func (d *deque) insert(k, i int32) {
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
func (d *deque) remove(k int32) {
	for j := k; j > 0; j-- {
		d.set(j, d.at(j-1))
	}
	d.popFront()
}

func (d *deque) set(k, i int32) { d.buf[int(d.head+k)&(len(d.buf)-1)] = i }

func (d *deque) grow() {
	if int(d.n) < len(d.buf) {
		return
	}
	buf := make([]int32, max(16, 2*len(d.buf)))
	for i := range d.n {
		buf[i] = d.at(i)
	}
	d.buf, d.head = buf, 0
}

func (d *deque) at(k int32) int32 { return d.buf[int(d.head+k)&(len(d.buf)-1)] }

func (d *deque) pushBack(i int32) {
	d.grow()
	d.buf[int(d.head+d.n)&(len(d.buf)-1)] = i
	d.n++
}

func (d *deque) pushFront(i int32) {
	d.grow()
	d.head = (d.head - 1) & int32(len(d.buf)-1)
	d.buf[d.head] = i
	d.n++
}

func (d *deque) popFront() int32 {
	i := d.buf[d.head]
	d.head = (d.head + 1) & int32(len(d.buf)-1)
	d.n--
	return i
}

// order is the running list in order of admission. It is only kept while somebody asks
// for it: most replicas never run short of blocks or budget. Rows that left are gaps,
// squeezed out when they outnumber the rest.
type order struct {
	entries []entry // while kept
	asked   bool    // since gaps were last squeezed out
}

type entry struct {
	row       int32
	admission int64
}

// keep appends a row that was just admitted. Gaps go now and not when a row leaves,
// because rows leave in the middle of a walk.
func (v *VLLM) keep(i int32) {
	o := &v.order
	if len(o.entries) > 32 && len(o.entries) > 2*int(v.live) {
		o.entries = slices.DeleteFunc(o.entries, func(e entry) bool { return !e.current(v.rows) })
		v.kept, o.asked = o.asked, false
	}
	o.entries = append(o.entries, entry{i, v.admitted})
}

// inOrder returns the entries of all running rows, and gaps.
func (v *VLLM) inOrder() []entry {
	o := &v.order
	o.asked = true
	if !v.kept {
		v.kept, o.entries = true, o.entries[:0]
		for i := range v.rows {
			if r := &v.rows[i]; r.state >= prefilling {
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
