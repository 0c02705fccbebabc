package engine

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

const mooncake = "../../shared/data/traces/mooncake_conversation_trace.jsonl"

// mooncakeRows reads the public conversation trace of Mooncake: 12,031 requests
// over an hour, with the ids of their blocks of 512 tokens.
func mooncakeRows(t testing.TB) (rows []workloads.Row, unbounded *workloads.Reuse) {
	t.Helper()
	in, err := workloads.OpenTrace(workloads.Trace{File: mooncake, Format: "mooncake", Unit: clock.Millisecond, Block: 512})
	if err != nil {
		t.Skipf("the public trace is not beside this checkout: %v", err)
	}
	defer in.Close()
	unbounded = workloads.NewReuse(1 << 30)
	for {
		row, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !row.OK {
			return rows, unbounded
		}
		unbounded.Add(&row)
		rows = append(rows, row)
	}
}

// replayMooncake sends the rows one after the other to a replica, each when the one
// before has ended, and returns what the replica found.
func replayMooncake(rows []workloads.Row, kvBlocks int32, o Offload) Spent {
	v := NewVLLM(&Config{
		MaxBatchedTokens: 1 << 17, MaxSeqs: 256, MaxModelLen: 1 << 17, BlockSize: 16, KVBlocks: kvBlocks, ReserveFullPrompt: true, PrefixCache: true,
		Offload: o, Model: instant{}, Host: models.Host{Async: true},
	})
	var now clock.Time
	for i := range rows {
		v.Submit(now, &workloads.Request{ID: int32(i), Prompt: rows[i].Prompt, Output: rows[i].Output, Chain: workloads.Chain{IDs: rows[i].IDs, UnitSize: rows[i].Block}})
		for next, ok := v.Next(); ok; next, ok = v.Next() {
			v.Advance(next, nil)
			now = next
		}
	}
	return *v.Spent(now)
}

// instant takes a microsecond for every step.
type instant struct{}

func (instant) Step(models.Batch, int) models.Cost { return models.Cost{Host: 1_000_000} }
func (instant) Slope(int32, int) models.Cost       { return models.Cost{} }

// With memory without bounds the scheduler finds what the trace itself says: 36.6 %
// of the blocks, and of the tokens all but the last one of prompts that were there
// in full. Less memory finds less, all the way down; a second tier adds up with it.
func TestPrefixHitsOfTheMooncakeTrace(t *testing.T) {
	rows, unbounded := mooncakeRows(t)
	if rate := unbounded.BlockHitRate(); len(rows) != 12031 || rate < .3655 || rate > .3665 {
		t.Fatalf("%d requests, %.4f of the blocks were there before", len(rows), rate)
	}
	all := replayMooncake(rows, 1<<23, Offload{})
	if lost := unbounded.Found - all.Hit; lost < 0 || lost > 16*int64(len(rows)) {
		t.Errorf("%d tokens found, the trace has %d", all.Hit, unbounded.Found)
	}
	var raw strings.Builder
	w := tabwriter.NewWriter(&raw, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "KV pool, tokens\thost memory, tokens\tfound, share of prompt tokens\tof it from host memory\t")
	share := func(n int64, s Spent) float64 { return float64(n) / float64(s.Prompted) }
	last := -1.0
	for k := 18; k <= 27; k++ {
		blocks := int32(1) << (k - 4)
		s := replayMooncake(rows, 1+blocks, Offload{})
		fmt.Fprintf(w, "%d\t0\t%.4f\t\t\n", int64(blocks)<<4, share(s.Hit, s))
		if share(s.Hit, s) < last {
			t.Errorf("%d blocks find %.4f, half of them %.4f", blocks, share(s.Hit, s), last)
		}
		last = share(s.Hit, s)
		if k <= 21 {
			o := replayMooncake(rows, 1+blocks, Offload{Blocks: 7 * blocks})
			fmt.Fprintf(w, "%d\t%d\t%.4f\t%.4f\t\n", int64(blocks)<<4, 7*int64(blocks)<<4, share(o.Hit, o), share(o.Loaded, o))
		}
	}
	w.Flush()
	checkReport(t, "testdata/vllm/load/mooncake.txt", raw.String())
	if want := share(all.Hit, all); last != want {
		t.Errorf("2^27 tokens find %.4f, unbounded memory %.4f", last, want)
	}
}

// BenchmarkMooncake is the replay of the trace with ids per block of 512 tokens:
// go test ./engine -run xx -bench Mooncake
func BenchmarkMooncake(b *testing.B) {
	rows, _ := mooncakeRows(b)
	for b.Loop() {
		replayMooncake(rows, 1<<17, Offload{})
	}
	b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "requests/s")
}
