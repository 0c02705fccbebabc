package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// The tree tells of the row that a list of all of them tells of, however many rows come and
// go and however often it grows.
func TestEndsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e ends
		e.init()
		rows := 0
		type end struct {
			step int64
			row  int32
		}
		var all []end
		for range rapid.IntRange(1, 300).Draw(t, "acts") {
			if k := rapid.IntRange(0, 9).Draw(t, "act"); k < 6 || len(all) == 0 {
				row := int32(rapid.IntRange(0, rapid.SampledFrom([]int{5, 7, 8, 60, 70, 511, 530}).Draw(t, "most")).Draw(t, "row"))
				if slices.ContainsFunc(all, func(x end) bool { return x.row == row }) {
					continue
				}
				if rows < int(row)+1 {
					rows = int(row) + 1
					e.reach(rows)
				}
				step := rapid.Int64Range(0, 20).Draw(t, "step") << rapid.SampledFrom([]uint{0, 20, 31}).Draw(t, "about")
				all = append(all, end{step, row})
				e.add(row, step)
			} else {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				e.remove(all[i].row)
				all = slices.Delete(all, i, i+1)
			}
			if len(all) == 0 {
				if e.next() < 1<<35 {
					t.Fatalf("step %d of nobody", e.next())
				}
				continue
			}
			first := slices.MinFunc(all, func(a, b end) int {
				if a.step != b.step {
					return int(min(max(a.step-b.step, -1), 1))
				}
				return int(a.row - b.row)
			})
			if e.next() != first.step || e.row() != first.row {
				t.Fatalf("row %d in step %d, want row %d in step %d", e.row(), e.next(), first.row, first.step)
			}
		}
	})
}

// A few rows are a list, whatever the place of each.
func TestFewIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f few
		var others, want []int32
		for k := range int32(rapid.IntRange(1, 30).Draw(t, "acts")) {
			switch rapid.IntRange(0, 6).Draw(t, "act") {
			case 0:
				f.n, want = 0, want[:0]
			case 1, 2:
				i := rapid.Int32Range(0, k).Draw(t, "which")
				f.remove(i, &others)
				want = without(want, i)
			default:
				f.add(k, &others)
				want = append(want, k)
			}
			got := []int32{}
			for k := range f.n {
				got = append(got, f.at(k, others))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}

// Under a load like the reference day's a hint is nearly always right: of the first tokens
// and ends that come, those of another request than was hinted are less than one in ten.
func TestHintsAreOfTheNextRequest(t *testing.T) {
	cfg := Config{MaxBatchedTokens: 8192, MaxSeqs: 64, MaxModelLen: 4000, BlockSize: 16, KVBlocks: 20_000, ReserveFullPrompt: true, Model: toy{base: 20_000_000_000, token: 5_000_000, ctx: 10_000}}
	cfg.Host = models.Host{Async: true, FrontFixedPs: 40_000_000_000}
	v := NewVLLM(&cfg)
	var h Hint
	v.HintAt(&h)
	h.Fetch() // of nothing yet
	right, wrong := 0, 0
	look := func(now clock.Time) {
		for at, ok := v.Next(); ok && at <= now; at, ok = v.Next() {
			h.Fetch()
			id := h.ID()
			if events := v.Advance(at, nil); len(events) > 0 && events[0].ID == id {
				right++
			} else if len(events) > 0 {
				wrong++
			}
		}
	}
	now := clock.Time(0)
	for i := range int32(2000) {
		now += clock.Time(160*clock.Millisecond + clock.Duration(i*7919%97)*clock.Millisecond)
		look(now)
		v.Submit(now, &workloads.Request{ID: 1000 + i, Prompt: 100 + i*31%3000, Output: 1 + i*67%500})
	}
	if wrong*9 > right || right < 2000 {
		t.Fatalf("%d right, %d wrong", right, wrong)
	}
}
