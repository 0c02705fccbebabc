package workloads

import (
	"sync"

	"slosim/sim/rng"
)

// Lengths of many requests are drawn from a table instead of by formula: what At
// gives for each of the 2^53 uniform draws that there are. The draws are cut into
// cells of equal width; of each the table holds the length of its first draw and the
// draws from which on the length is one token more.

const (
	cellBits    = 12 // of a draw's rng.DrawBits
	cellShift   = rng.DrawBits - cellBits
	mostCuts    = 8       // in one cell; in cells with more At is asked
	worthATable = 200_000 // draws: a table takes a hundredth of a second (BenchmarkDrawTable)
	maxTables   = 64      // kept, the newest
)

type drawTable struct {
	cells [1<<cellBits + 1]drawCell
	cuts  []uint64 // of all cells; ascending
	ready sync.Once
}

type drawCell struct {
	length int32 // of its first draw; 0 = ask At
	first  int32 // of its cuts
}

// Draw returns the length that the i-th draw of a source stands for.
func (l *Lengths) Draw(s *rng.Source, i int64) int32 { return l.length(s.Draw(i)) }

func (l *Lengths) length(x uint64) int32 {
	if t := l.draws; t != nil {
		k := x >> cellShift & (1<<cellBits - 1)
		if n := t.cells[k].length; n > 0 {
			cuts := t.cuts[t.cells[k].first:]
			m := int64(t.cells[k+1].first - t.cells[k].first)
			if m > fewCuts {
				for _, cut := range cuts[:m] {
					n += reached(x, cut)
				}
				return n
			}
			// Where the draw lies among few cuts is left to arithmetic: a processor cannot
			// predict it.
			for j, cut := range (*[fewCuts]uint64)(cuts) {
				n += reached(x, cut) & int32((int64(j)-m)>>63)
			}
			return n
		}
	}
	return l.At(rng.Uniform(x))
}

// fewCuts is how many cuts are looked at whether the cell has so many or not.
const fewCuts = 3

// reached returns 1 if a draw is not before a cut, else 0.
func reached(x, cut uint64) int32 { return int32((cut - x - 1) >> 63) }

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
	at := func(x uint64) int32 { return l.At(rng.Uniform(x)) }
	for k := range uint64(1) << cellBits {
		c := &t.cells[k]
		c.first = int32(len(t.cuts))
		low, high := k<<cellShift, (k+1)<<cellShift-1
		least, most := at(low), at(high)
		if most-least > mostCuts {
			continue
		}
		c.length = least
		for n := least + 1; n <= most; n++ {
			low = l.cut(n, low, high)
			t.cuts = append(t.cuts, low)
		}
	}
	t.cells[1<<cellBits].first = int32(len(t.cuts))
	t.cuts = append(t.cuts, make([]uint64, fewCuts)...) // which the last cells look at
}

// cut returns the first draw from low to high whose length is at least n; high is one. It closes in by secants of the quantile function, then by halves.
func (l *Lengths) cut(n int32, low, high uint64) uint64 {
	reaches := func(x uint64) bool { return l.At(rng.Uniform(x)) >= n }
	if reaches(low) {
		return low // two lengths in one jump
	}
	target := float64(n) - 0.5
	a, b := l.Quantile(rng.Uniform(low))-target, l.Quantile(rng.Uniform(high))-target
	for range 4 {
		if !(a < 0 && b > 0) || high-low < 64 {
			break
		}
		x := low + uint64(a/(a-b)*float64(high-low))
		margin := (high - low) >> 12
		for _, x := range [2]uint64{x - min(x-low-1, margin), min(x+margin, high-1)} {
			if x <= low || x >= high {
				continue
			}
			if q := l.Quantile(rng.Uniform(x)) - target; reaches(x) {
				high, b = x, q
			} else {
				low, a = x, q
			}
		}
	}
	for high-low > 1 {
		if x := low + (high-low)/2; reaches(x) {
			high = x
		} else {
			low = x
		}
	}
	return high
}
