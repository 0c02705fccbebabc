package engine

import "slosim/workloads"

// cache is the prefix cache of one replica. vLLM hashes every full block and
// keeps finished requests' blocks until it needs them, least recently used first,
// tail of a sequence before its head. Here neighbouring blocks of one sequence
// form an extent, which holds a growing or shrinking number of blocks from its
// start; with an extent of one block that is vLLM's cache block by block.
//
// As long as nobody can find what is cached, nothing is filed: see VLLM.filing.
//
// Not modelled: two requests that compute the same content side by side; the
// second one's copy is not cached.
type cache struct {
	extents []extent
	spare   int32 // list of unused extents
	index   idIndex
	oldest  int32 // idle extents, least recently used first
	newest  int32
	store   *store // takes what is evicted
	idle    int32  // blocks of idle extents: free to take, at the price of their content
}

// extent is a run of cached blocks with the content that id stands for.
type extent struct {
	id         uint64
	blocks     int32
	refs       int32 // running requests that use it
	owner      int32 // row that fills it; none when complete or left
	prev, next int32 // idle list, or spare list
}

func (c *cache) init() {
	c.spare, c.oldest, c.newest = none, none, none
	c.index.init()
}

// add makes an extent that one row fills.
func (c *cache) add(id uint64, owner int32) int32 {
	k := c.spare
	if k == none {
		k = int32(len(c.extents))
		c.extents = append(c.extents, extent{})
	} else {
		c.spare = c.extents[k].next
	}
	c.extents[k] = extent{id: id, refs: 1, owner: owner, prev: none, next: none}
	c.index.put(id, k)
	return k
}

// use takes an extent into use and returns how many blocks leave the free ones.
func (c *cache) use(k int32) int32 {
	e := &c.extents[k]
	e.refs++
	if e.refs > 1 {
		return 0
	}
	c.unlink(k)
	c.idle -= e.blocks
	return e.blocks
}

// leave ends one use and returns how many blocks become free.
func (c *cache) leave(k int32, row int32) int32 {
	e := &c.extents[k]
	e.refs--
	if e.owner == row {
		e.owner = none
	}
	if e.refs > 0 {
		return 0
	}
	if e.blocks == 0 {
		c.drop(k)
		return 0
	}
	e.prev, e.next = c.newest, none
	if c.newest == none {
		c.oldest = k
	} else {
		c.extents[c.newest].next = k
	}
	c.newest = k
	c.idle += e.blocks
	return e.blocks
}

func (c *cache) unlink(k int32) {
	e := &c.extents[k]
	if e.prev == none {
		c.oldest = e.next
	} else {
		c.extents[e.prev].next = e.next
	}
	if e.next == none {
		c.newest = e.prev
	} else {
		c.extents[e.next].prev = e.prev
	}
	e.prev, e.next = none, none
}

func (c *cache) drop(k int32) {
	c.index.remove(c.extents[k].id)
	c.extents[k] = extent{next: c.spare}
	c.spare = k
}

// fit leaves no more blocks to the idle extents than are free: it takes them from the
// oldest first, from each at its end.
func (c *cache) fit(free int32) {
	for n := c.idle - free; n > 0; {
		k := c.oldest
		e := &c.extents[k]
		take := min(n, e.blocks)
		c.store.keep(e.id, e.blocks-take, e.blocks)
		e.blocks -= take
		c.idle -= take
		n -= take
		if e.blocks == 0 {
			c.unlink(k)
			c.drop(k)
		}
	}
}

// take gives out n of the free blocks, evicting idle content when nothing else
// is left.
func (v *VLLM) take(n int32) {
	v.freeBlks -= n
	if v.filing {
		v.cache.fit(v.freeBlks)
	}
}

// hit is what the cache holds of a waiting row's content.
type hit struct {
	blocks int32 // leading blocks found
	cost   int32 // free blocks that using them takes
	far    int32 // further blocks that the second tier holds
}

// lookup finds the longest cached prefix of a row: whole blocks, at most one
// token less than it must compute.
func (v *VLLM) lookup(i int32) hit {
	var h hit
	r := &v.rows[i]
	most := (r.target - 1) >> v.shift()
	if r.loaded || !v.filing && (r.hit == 0 || !v.cfg.PrefixCache) {
		return h
	}
	if r.hit > 0 { // statistical: the blocks are idle ones
		h.blocks = min(r.hit>>v.shift(), most)
		h.cost = h.blocks
		return h
	}
	c := &v.content[i].chain
	per := c.UnitTokens() >> v.shift()
	for u := int32(0); h.blocks < most; u++ {
		k, ok := v.cache.index.get(c.Unit(u))
		if !ok {
			break
		}
		e := &v.cache.extents[k]
		use := min(e.blocks, most-h.blocks)
		h.blocks += use
		if e.refs == 0 { // blocks in use by running requests cost nothing
			h.cost += e.blocks
		}
		if use < per {
			break
		}
	}
	h.far = v.beyond(c, h.blocks, most)
	return h
}

// reuse puts the cached prefix of an admitted row to use. Blocks for what the
// second tier holds are taken with those of its first chunk.
func (v *VLLM) reuse(i int32, h hit) {
	r := &v.rows[i]
	r.computed = (h.blocks + h.far) << v.shift()
	v.spent.Hit += int64(r.computed)
	r.blocks = h.blocks
	v.others += int64(r.computed)
	if r.hit > 0 {
		v.take(h.blocks)
		return
	}
	left := h.blocks
	c := &v.content[i]
	for u := int32(0); left > 0; u++ {
		k, _ := v.cache.index.get(c.chain.Unit(u))
		v.freeBlks -= v.cache.use(k)
		e := &v.cache.extents[k]
		used := min(e.blocks, left)
		left -= used
		c.public += used
		c.extents = append(c.extents, k)
		if left == 0 && used == e.blocks && e.owner == none && used < c.chain.UnitTokens()>>v.shift() {
			e.owner = i // goes on where the cached content ends
		}
	}
	c.filed = h.blocks
}

// file makes the first full blocks of a row's content findable. They must be
// among the blocks it holds.
func (v *VLLM) file(i int32, full int32) {
	c := &v.content[i]
	per := c.chain.UnitTokens() >> v.shift()
	for c.filed < full {
		u := c.filed / per
		n := min(full, (u+1)*per) - c.filed
		k := none
		if len(c.extents) > 0 {
			k = c.extents[len(c.extents)-1]
		}
		switch {
		case k != none && v.cache.extents[k].owner == i && v.cache.extents[k].id == c.chain.Unit(u):
		case c.filed == u*per && !v.cache.index.has(c.chain.Unit(u)):
			k = v.cache.add(c.chain.Unit(u), i)
			c.extents = append(c.extents, k)
		default:
			k = none // somebody else's copy is the one to be found
		}
		c.filed += n
		if k != none {
			v.cache.extents[k].blocks += n
			c.public += n
			v.blocked = false // a waiting request may share it
		}
	}
}

// fileChunks files the rows that got a chunk: after all running rows have their
// blocks, because one of them may still be preempted.
func (v *VLLM) fileChunks() {
	for _, i := range v.chunked {
		if r := &v.rows[i]; r.state != waiting {
			v.file(i, r.computed>>v.shift())
		}
	}
	v.chunked = v.chunked[:0]
}

// giveBack frees all blocks of a row, which holds valid KV of so many tokens.
// What is cached stays findable until it is evicted.
func (v *VLLM) giveBack(i int32, r *row, held int64) {
	if v.filing {
		v.leaveCache(i, held)
	}
	v.freeBlks += r.blocks
	r.blocks = 0
}

// leaveCache files what a row holds and ends its use of it.
func (v *VLLM) leaveCache(i int32, held int64) {
	r, c := &v.rows[i], &v.content[i]
	if r.hit == 0 {
		if len(c.chain.IDs) > 0 { // a trace knows its prompts only
			held = min(held, int64(r.prompt))
		}
		v.file(i, int32(held>>v.shift()))
	}
	for k := len(c.extents) - 1; k >= 0; k-- {
		v.freeBlks += v.cache.leave(c.extents[k], i)
	}
	v.freeBlks -= c.public
	c.extents, c.filed, c.public = c.extents[:0], 0, 0
}

// chainOf returns the identity of a request's content: its own unless given. A
// unit must end where a block ends.
func (v *VLLM) chainOf(r *workloads.Request, serial int64) workloads.Chain {
	if r.Chain.Known() && r.Chain.UnitTokens()%v.cfg.BlockSize == 0 {
		return r.Chain
	}
	return workloads.Private(uint64(serial))
}

// Cached returns how many leading tokens of a request the prefix cache holds now.
func (v *VLLM) Cached(r *workloads.Request) int32 {
	if !v.cfg.PrefixCache || !r.Chain.Known() || r.Chain.UnitTokens()%v.cfg.BlockSize != 0 {
		return 0
	}
	per, most := r.Chain.UnitTokens()>>v.shift(), (r.Prompt-1)>>v.shift()
	found := int32(0)
	for u := int32(0); found < most; u++ {
		k, ok := v.cache.index.get(r.Chain.Unit(u))
		if !ok {
			break
		}
		use := min(v.cache.extents[k].blocks, most-found)
		found += use
		if use < per {
			break
		}
	}
	return found << v.shift()
}
