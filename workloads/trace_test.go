package workloads

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"slosim/sim/clock"
)

const mooncakeTrace = "../../shared/data/traces/mooncake_conversation_trace.jsonl"

// The time stamps of a replay are those of the file to the nanosecond, from the
// first row to the last: nothing adds up.
func TestMooncakeTimeStampsDoNotDrift(t *testing.T) {
	text, err := os.ReadFile(mooncakeTrace)
	if err != nil {
		t.Skip("needs the public traces in ../shared/data, which are not part of the repository")
	}
	in, err := OpenTrace(Trace{File: mooncakeTrace, Format: "mooncake", Unit: clock.Millisecond, Block: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	n := 0
	for line := range strings.Lines(string(text)) {
		var want struct {
			Timestamp int64
			Input     int32    `json:"input_length"`
			Output    int32    `json:"output_length"`
			IDs       []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		row, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if row.Arrival != clock.Duration(want.Timestamp)*clock.Millisecond || row.Prompt != want.Input || row.Output != want.Output || len(row.IDs) != len(want.IDs) || cap(row.IDs) != len(row.IDs) {
			t.Fatalf("row %d: %+v, the file has %+v", n, row, want)
		}
		n++
	}
	if row, err := in.Next(); n != 12031 || row.OK || err != nil {
		t.Fatalf("%d rows; after them %+v, %v", n, row, err)
	}
}

// A request's ids live as long as the request: after thousands of rows that
// nobody holds, the heap is as it was.
func TestIDsAreFreeWithTheirRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.jsonl")
	ids := strings.TrimSuffix(strings.Repeat("7,", 2000), ",")
	if err := os.WriteFile(file, []byte(strings.Repeat(`{"timestamp": 5, "input_length": 1024000, "output_length": 1, "hash_ids": [`+ids+"]}\n", 3000)), 0o644); err != nil {
		t.Fatal(err)
	}
	in, err := OpenTrace(Trace{File: file, Format: "mooncake", Unit: clock.Millisecond, Block: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var held []Row // to show that the test can fail
	measure := func(rows int, hold bool) int64 {
		before := heap()
		for range rows {
			row, err := in.Next()
			if err != nil || !row.OK {
				t.Fatal(row, err)
			}
			if hold {
				held = append(held, row)
			}
		}
		return int64(heap()) - int64(before)
	}
	if grown := measure(2000, false); grown > 1<<20 {
		t.Errorf("2,000 rows that nobody holds keep %d bytes", grown)
	}
	if grown := measure(500, true); grown < 500*2000*8 {
		t.Errorf("500 rows that are held keep %d bytes: this test measures nothing", grown)
	}
	runtime.KeepAlive(held)
}
