package engine

// idIndex maps content ids to extents: open addressing with linear probing and
// deletion by shifting back, so that no tombstones pile up. Id 0 is not allowed.
type idIndex struct {
	keys   []uint64
	values []int32
	n      int
}

func (x *idIndex) init() {
	x.keys = make([]uint64, 64)
	x.values = make([]int32, 64)
}

func (x *idIndex) home(id uint64) int {
	return int((id * 0x9e3779b97f4a7c15) >> 20 & uint64(len(x.keys)-1))
}

func (x *idIndex) find(id uint64) (int, bool) {
	mask := len(x.keys) - 1
	for i := x.home(id); ; i = (i + 1) & mask {
		switch x.keys[i] {
		case id:
			return i, true
		case 0:
			return i, false
		}
	}
}

func (x *idIndex) get(id uint64) (int32, bool) {
	i, ok := x.find(id)
	return x.values[i], ok
}

func (x *idIndex) has(id uint64) bool {
	_, ok := x.find(id)
	return ok
}

func (x *idIndex) put(id uint64, value int32) {
	if 2*(x.n+1) > len(x.keys) {
		old := *x
		x.keys = make([]uint64, 2*len(old.keys))
		x.values = make([]int32, 2*len(old.keys))
		for i, k := range old.keys {
			if k != 0 {
				at, _ := x.find(k)
				x.keys[at], x.values[at] = k, old.values[i]
			}
		}
	}
	i, ok := x.find(id)
	if !ok {
		x.n++
	}
	x.keys[i], x.values[i] = id, value
}

func (x *idIndex) remove(id uint64) {
	i, ok := x.find(id)
	if !ok {
		return
	}
	x.n--
	mask := len(x.keys) - 1
	for j := (i + 1) & mask; x.keys[j] != 0; j = (j + 1) & mask {
		// move an entry into the gap unless its home lies behind the gap
		if home := x.home(x.keys[j]); (j-home)&mask >= (j-i)&mask {
			x.keys[i], x.values[i] = x.keys[j], x.values[j]
			i = j
		}
	}
	x.keys[i] = 0
}
