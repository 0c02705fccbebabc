package models

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// row is everything of a step that one token count decides, in picoseconds. A
// decode-only step of n sequences needs the row of n alone: one cache line.
type row struct {
	gemmPs, commPs, smallPs int64 // all layers, for that many tokens
	headPs                  int64 // LM head on that many sequences
	expertPs                int64 // at peak bandwidth: weights of the experts touched
}

// table holds the costs at one clock bin: of the CUDA-graph sizes, of which row 0
// costs nothing, and above the largest graph of cells of eagerStride tokens. Within a
// cell costs are interpolated: they jump only where another row of tiles begins, which
// is between cells, and a small table stays in cache.
type table struct {
	pairPs   float64 // prefill attention per (query, key) pair, layers without a short window
	windowPs float64 // the same, windowed layers
	rows     []row
	eager    []eagerCell
	heads    []headCell
	graphMax int32 // largest graph size
}

// eagerCell is a row of all but the head for the first of eagerStride token counts, and
// how much more there is so many tokens on: one line of the processor's cache.
type eagerCell struct {
	gemmPs, commPs, smallPs int64
	gemmBy, commBy, smallBy int64 // more after eagerStride tokens
	expertPs                int64 // of the last count: nearly all experts are in use
	_                       int64
}

// headCell is the same of the LM head.
type headCell struct{ ps, by int64 }

const (
	eagerShift  = 4
	eagerStride = 1 << eagerShift
)

// graphSizes are the token counts that vLLM captures CUDA graphs for; a step of
// fewer tokens is padded up to the next.
var graphSizes = func() []int32 {
	sizes := []int32{1, 2, 4}
	for n := int32(8); n < 256; n += 8 {
		sizes = append(sizes, n)
	}
	for n := int32(256); n <= 512; n += 16 {
		sizes = append(sizes, n)
	}
	return sizes
}()

// graphIndex maps a token count to the row of its padded size.
var graphIndex = func() (index [513]uint8) {
	i := 0
	for n := range int32(len(index)) {
		if n > 0 && (i == 0 || n > graphSizes[i-1]) {
			i++
		}
		index[n] = uint8(i)
	}
	return index
}()

// at returns the row of n tokens or sequences.
func (t *table) at(n int32) row {
	if n <= t.graphMax {
		return t.rows[graphIndex[n]]
	}
	return t.eagerRow(n - t.graphMax)
}

// headPs returns the LM head on n sequences.
func (t *table) headPs(n int32) int64 {
	if n <= t.graphMax {
		return t.rows[graphIndex[n]].headPs
	}
	i, share := cell(n - t.graphMax)
	h := &t.heads[i]
	return along(h.ps, h.by, share)
}

// newCells returns the cell between the rows of its first and its last token count.
func newCells(lo, hi *row) (eagerCell, headCell) {
	by := func(lo, hi int64) int64 { return (hi - lo) * eagerStride / (eagerStride - 1) } // so that a share of a cell is a shift
	return eagerCell{
		gemmPs: lo.gemmPs, commPs: lo.commPs, smallPs: lo.smallPs,
		gemmBy: by(lo.gemmPs, hi.gemmPs), commBy: by(lo.commPs, hi.commPs), smallBy: by(lo.smallPs, hi.smallPs),
		expertPs: hi.expertPs,
	}, headCell{lo.headPs, by(lo.headPs, hi.headPs)}
}

// cell returns the cell of above tokens more than graphMax, and the way through it, in
// 1/eagerStride.
func cell(above int32) (i int32, share int64) {
	return (above - 1) >> eagerShift, int64((above - 1) & (eagerStride - 1))
}

func along(ps, by, share int64) int64 { return ps + by*share>>eagerShift }

// eagerRow returns the row of above tokens more than graphMax.
func (t *table) eagerRow(above int32) row {
	i, share := cell(above)
	e, h := &t.eager[i], &t.heads[i]
	return row{along(e.gemmPs, e.gemmBy, share), along(e.commPs, e.commBy, share), along(e.smallPs, e.smallBy, share), along(h.ps, h.by, share), e.expertPs}
}

// tables are a deployment's tables, one per clock bin, built when first used.
type tables struct {
	rank      rank
	maxTokens int32
	maxBin    int

	building sync.Mutex
	bins     []atomic.Pointer[table]
}

// build makes the table of a bin, unless another goroutine just did. It panics
// on a bin above the GPU's maximum clock: the caller's clock is broken.
func (ts *tables) build(bin int) *table {
	ts.building.Lock()
	defer ts.building.Unlock()
	if t := ts.bins[bin].Load(); t != nil {
		return t
	}
	t := newTable(&ts.rank, ts.maxTokens, ts.kappa(bin))
	ts.bins[bin].Store(t)
	return t
}

// kappa returns the share of the kernel tables' compute speed that is reached:
// fixed without a thermal model (bin 0), else proportional to the SM clock.
func (ts *tables) kappa(bin int) float64 {
	c := &ts.rank.common
	if bin == 0 {
		return c.KappaFixed
	}
	return c.KappaMaxClock * float64(bin) / float64(ts.maxBin)
}

func newTable(r *rank, maxTokens int32, kappa float64) *table {
	t := &table{
		pairPs:   r.slow * r.fullLayers * r.pairSeconds() / kappa * 1e12,
		windowPs: r.slow * r.windowedLayers * r.pairSeconds() / kappa * 1e12,
		rows:     make([]row, 1, len(graphSizes)+1),
		eager:    make([]eagerCell, 0, maxTokens/eagerStride+2),
		heads:    make([]headCell, 0, maxTokens/eagerStride+2),
	}
	for _, n := range graphSizes {
		if n > min(maxTokens, r.common.GraphMaxTokens) {
			break
		}
		t.graphMax = n
		t.rows = append(t.rows, r.row(n, kappa, 0))
	}
	floorS := r.layers * r.common.EagerLayerUs * 1e-6
	for n := t.graphMax; n < maxTokens+eagerStride; n += eagerStride { // a little more than can be asked for
		lo, hi := r.row(n+1, kappa, floorS), r.row(n+eagerStride, kappa, floorS)
		e, h := newCells(&lo, &hi)
		t.eager, t.heads = append(t.eager, e), append(t.heads, h)
	}
	return t
}

// row computes the costs of n tokens. Launches of an eager step take at least
// floorS; what the kernels leave of it counts as small.
func (r *rank) row(n int32, kappa, floorS float64) row {
	m := float64(n)
	gemmS, commS, smallS := r.slow*r.linearSeconds(m, kappa, floorS > 0), r.slow*r.commSeconds(m), r.slow*r.smallSeconds(m)
	smallS += max(0, floorS-gemmS-commS-smallS)
	return row{
		gemmPs:  picoseconds(gemmS),
		commPs:  picoseconds(commS),
		smallPs: picoseconds(smallS),
		headPs:  picoseconds(r.slow * r.headSeconds(m, kappa)),

		expertPs: picoseconds(r.expertSeconds(m)),
	}
}

// maxShared bounds how many deployments keep their tables; the oldest goes first.
const maxShared = 16

var shared struct {
	sync.Mutex
	byKey map[string]*tables
	order []string
}

// sharedTables returns the tables of d, the same for every equal deployment.
// The key leaves out what the tables do not depend on.
func sharedTables(d Deployment, r rank) *tables {
	d.LLM.Name, d.LLM.Source, d.LLM.MaxModelLen = "", "", 0
	d.GPU.Name, d.GPU.Aliases, d.GPU.Sources, d.GPU.Common.Sources = "", nil, nil, nil
	d.Host, d.MemoryUtilization, d.OverheadGiB = Host{}, 0, 0
	key := fmt.Sprintf("%+v", d)

	shared.Lock()
	defer shared.Unlock()
	if ts := shared.byKey[key]; ts != nil {
		return ts
	}
	ts := &tables{
		rank:      r,
		maxTokens: d.MaxBatchedTokens,
		maxBin:    d.GPU.maxBin(),
		bins:      make([]atomic.Pointer[table], d.GPU.maxBin()+1),
	}
	if len(shared.order) == maxShared {
		delete(shared.byKey, shared.order[0])
		shared.order = shared.order[1:]
	}
	if shared.byKey == nil {
		shared.byKey = make(map[string]*tables)
	}
	shared.byKey[key] = ts
	shared.order = append(shared.order, key)
	return ts
}
