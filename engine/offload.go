package engine

import "slosim/workloads"

// Offload is a second tier of the prefix cache in host memory, as connectors like
// LMCache give it to vLLM: content that the GPU evicts is kept there, least
// recently used out first, and comes back over PCIe at the beginning of the step
// that admits its request, before the step's kernels. Copying out is free: it
// overlaps with everything.
type Offload struct {
	Blocks  int32 // KV blocks that host memory holds; 0 = no second tier
	BlockPs int64 // time to load one block, ps
}

// store is the content of the second tier.
type store struct {
	cfg            Offload
	items          []stored
	spare          int32
	index          idIndex
	oldest, newest int32
	used           int32 // blocks
}

// stored is a run of blocks of one unit of content.
type stored struct {
	id         uint64
	from, to   int32 // blocks of the unit, to not included
	prev, next int32
}

func (s *store) init(cfg Offload) {
	s.cfg = cfg
	s.spare, s.oldest, s.newest = none, none, none
	s.index.init()
}

// keep stores blocks [from, to) of a unit that the GPU is about to lose.
func (s *store) keep(id uint64, from, to int32) {
	if s.cfg.Blocks == 0 {
		return
	}
	k, ok := s.index.get(id)
	if ok {
		s.unlink(k)
	} else {
		if k = s.spare; k == none {
			k = int32(len(s.items))
			s.items = append(s.items, stored{})
		} else {
			s.spare = s.items[k].next
		}
		s.items[k] = stored{id: id, from: from, to: from}
		s.index.put(id, k)
	}
	x := &s.items[k]
	s.used -= x.to - x.from
	if from <= x.to && x.from <= to { // they touch: one run
		from, to = min(from, x.from), max(to, x.to)
	}
	x.from, x.to = from, to
	s.used += to - from
	s.link(k)
	for s.used > s.cfg.Blocks {
		s.shrink(s.oldest, s.used-s.cfg.Blocks)
	}
}

// shrink drops up to n blocks from the end of a run.
func (s *store) shrink(k, n int32) {
	x := &s.items[k]
	n = min(n, x.to-x.from)
	x.to -= n
	s.used -= n
	if x.from < x.to {
		return
	}
	s.unlink(k)
	s.index.remove(x.id)
	*x = stored{next: s.spare}
	s.spare = k
}

// link makes a run the most recently used.
func (s *store) link(k int32) {
	x := &s.items[k]
	x.prev, x.next = s.newest, none
	if s.newest == none {
		s.oldest = k
	} else {
		s.items[s.newest].next = k
	}
	s.newest = k
}

func (s *store) unlink(k int32) {
	x := &s.items[k]
	if x.prev == none {
		s.oldest = x.next
	} else {
		s.items[x.prev].next = x.next
	}
	if x.next == none {
		s.newest = x.prev
	} else {
		s.items[x.next].prev = x.prev
	}
}

// reaches returns up to which block of a unit the store holds what comes after
// the first have blocks; have when it holds nothing of that.
func (s *store) reaches(id uint64, have int32) int32 {
	if k, ok := s.index.get(id); ok {
		if x := &s.items[k]; x.from <= have && have < x.to {
			return x.to
		}
	}
	return have
}

// beyond returns how many of some content's blocks after the first hit ones the second
// tier holds, up to most in all.
func (v *VLLM) beyond(c *workloads.Chain, hit, most int32) int32 {
	if v.store.used == 0 {
		return 0
	}
	per := c.UnitTokens() >> v.shift()
	have := hit
	for have < most {
		u := have / per
		to := u*per + v.store.reaches(c.Unit(u), have-u*per)
		if to == have {
			break
		}
		have = min(to, most)
	}
	return have - hit
}

// fetch loads what a hit found in the second tier; it is in use again there.
func (v *VLLM) fetch(c *workloads.Chain, h hit, st *step) {
	per := c.UnitTokens() >> v.shift()
	for u := (h.blocks + h.far - 1) / per; u >= h.blocks/per; u-- {
		k, _ := v.store.index.get(c.Unit(u))
		v.store.unlink(k)
		v.store.link(k)
	}
	v.spent.Loaded += int64(h.far) << v.shift()
	st.extras = true
	st.more.loadPs += int64(h.far) * v.store.cfg.BlockPs
}
