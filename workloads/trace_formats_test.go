package workloads

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"slosim/sim/clock"
)

// put writes a file into a folder of the test.
func put(t testing.TB, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func zipped(t testing.TB, text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t testing.TB, text string) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll([]byte(text), nil)
}

type parquetRow struct {
	At     int64  `parquet:"at,timestamp(microsecond)"`
	Model  string `parquet:"model"`
	Prompt int32  `parquet:"prompt"`
	Output *int64 `parquet:"output,optional"`
}

func columnar(t testing.TB, rows []parquetRow) []byte {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&b, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(2))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// all reads every row of a trace.
func all(spec Trace) ([]Row, error) {
	in, err := OpenTrace(spec)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var rows []Row
	for {
		row, err := in.Next()
		if err != nil || !row.OK {
			return rows, err
		}
		rows = append(rows, row)
	}
}

func named(file string) Trace {
	return Trace{File: file, Arrival: "at", Prompt: "prompt", Output: "output", Unit: clock.Second, Block: DefaultBlock}
}

const (
	csvText      = "at,prompt,output,model\n1700000000.5,100,10,a\n1700000001.000000001,200,20,b\n1700000002.5,300,30,a\n"
	azureText    = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,100,10\n2023-11-16 18:15:47.0000000,200,20\n2023-11-16 18:15:48.5,300,30\n"
	burstText    = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,100,10,110,API log\n5.5,GPT-4,200,20,220,API log\n7,ChatGPT,300,30,330,API log\n"
	mooncakeText = `{"timestamp": 27500, "input_length": 100, "output_length": 10, "hash_ids": [5]}
{"timestamp": 28000, "input_length": 200, "output_length": 20, "hash_ids": [6]}
{"timestamp": 29500, "input_length": 300, "output_length": 30, "hash_ids": [5]}
`
	jsonlText = `{"at": 0.5, "usage": {"prompt": 100}, "output": 10, "model": "a"}
{"at": 1, "usage": {"prompt": 200}, "output": 20, "model": "b"}
{"at": 2.5, "usage": {"prompt": 300}, "output": 30, "model": "a"}
`
	aiperfText = `{"metadata": {"request_start_ns": 100, "benchmark_phase": "warmup"}, "metrics": {}}
{"metadata": {"request_start_ns": 2000000000, "benchmark_phase": "profiling"}, "metrics": {"input_sequence_length": {"value": 200, "unit": "tokens"}, "output_sequence_length": {"value": 20}}, "error": null}
{"metadata": {"request_start_ns": 1500000000}, "metrics": {"input_sequence_length": {"value": 100}, "output_sequence_length": {"value": 10}}}
{"metadata": {"request_start_ns": 3500000000}, "metrics": {"input_sequence_length": {"value": 300}, "output_sequence_length": {"value": 30}}}
`
	vllmText  = `{"date": "x", "request_rate": 2, "ttfts": [0.1, 0.2], "itls": [[0.1, 0.2], []], "input_lens": [100, 200, 300], "output_lens": [10, 20, 30], "start_times": [7.5, 8, 9.5], "errors": ["", "", ""]}`
	guideText = `{"benchmarks": [{"args": {"requests": 3}, "requests": {"successful": [
 {"info": {"timings": {"request_start": 1700000001.0}}, "input_metrics": {"text_tokens": 200}, "output_metrics": {"text_tokens": 20}},
 {"info": {"timings": {"request_start": 1700000000.5}}, "input_metrics": {"text_tokens": 100}, "output_metrics": {"text_tokens": 10}}],
 "incomplete": [{"x": 1}], "errored": []}}, {"requests": {"successful": [{"start_time": 1700000002.5, "prompt_tokens": 300, "output_tokens": 30}]}}]}`
)

func parquetFile(t testing.TB) []byte {
	out := []int64{10, 20, 30}
	return columnar(t, []parquetRow{{500_000, "a", 100, &out[0]}, {1_000_000, "b", 200, &out[1]}, {2_500_000, "a", 300, &out[2]}})
}

// Each format is recognised, and the same three requests come out of each, from
// plain files and from compressed ones.
func TestEveryFormatIsReadAndRecognised(t *testing.T) {
	for format, text := range map[string]string{
		"csv": strings.Replace(csvText, "000000001,", "0,", 1), "azure": azureText, "burstgpt": burstText, "mooncake": mooncakeText, "jsonl": jsonlText,
		"aiperf": aiperfText, "vllm-bench": vllmText, "guidellm": guideText, "parquet": string(parquetFile(t)),
	} {
		files := map[string][]byte{"plain": []byte(text)}
		if format != "parquet" {
			files["gz"], files["zst"] = zipped(t, text), zstandard(t, text)
		}
		for kind, bytes := range files {
			file := put(t, format+"."+kind, bytes)
			if got, err := DetectFormat(file); err != nil || got != format {
				t.Errorf("%s (%s) is taken for %q, %v", format, kind, got, err)
			}
			spec := named(file)
			spec.Unit = DefaultUnit(format)
			if format == "jsonl" {
				spec.Prompt = "usage.prompt"
			}
			rows, err := all(spec)
			if err != nil || len(rows) != 3 {
				t.Errorf("%s (%s): %d rows, %v", format, kind, len(rows), err)
				continue
			}
			for i, at := range []clock.Duration{0, 500 * clock.Millisecond, 2 * clock.Second} {
				r := rows[i]
				if r.Index != int64(i) || r.Arrival != at || r.Prompt != int32(100*(i+1)) || r.Output != int32(10*(i+1)) || (len(r.IDs) > 0) != (format == "mooncake") {
					t.Errorf("%s (%s), row %d: %+v", format, kind, i, r)
				}
			}
		}
	}
}

// A nanosecond beside an epoch in seconds survives.
func TestTimeStampsAreExact(t *testing.T) {
	rows, err := all(named(put(t, "x.csv", []byte(csvText))))
	if err != nil || rows[1].Arrival != 500_000_001 {
		t.Errorf("%v, %v", rows, err)
	}
	for text, want := range map[string]clock.Duration{"1": 1e9, "-2.5": -25e8, ".5": 5e8, "1e3": 1e12, "0.1234567894": 123456789, "0.1234567896": 123456790, "4000000000.123456789": 4000000000123456789} {
		if got, err := decimalTime([]byte(text), clock.Second); err != nil || got != want {
			t.Errorf("%s s is %d ns, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "-", "1.2.3", "NaN", "inf", "1e300", "99999999999999999999", "12h"} {
		if got, err := decimalTime([]byte(text), clock.Second); err == nil {
			t.Errorf("%q is %d ns", text, got)
		}
	}
}

// What is wrong with a trace is said with file and line; up to skip_bad broken
// rows are passed over and counted.
func TestBrokenTracesSayWhere(t *testing.T) {
	long := csvText + strings.Repeat("1700000003,1,1,a\n", 100)
	for _, c := range []struct {
		name, text string
		line       int
		says       string
		skippable  bool
	}{
		{"number.csv", strings.Replace(csvText, "200", "many", 1), 3, `"many" is no number of prompt tokens`, true},
		{"zero.csv", strings.Replace(csvText, ",20,", ",0,", 1), 3, "0 is no number of output tokens", true},
		{"absurd.csv", strings.Replace(csvText, "200", "200000000", 1), 3, "from 1 to 10,000,000", true},
		{"fraction.csv", strings.Replace(csvText, "200", "200.5", 1), 3, "a whole number", true},
		{"short.csv", strings.Replace(csvText, "200,20,b", "200", 1), 3, "2 columns, at least 3 expected", true},
		{"unsorted.csv", strings.Replace(csvText, "1700000002.5", "1700000000.7", 1), 4, "before the line above", true},
		{"time.csv", strings.Replace(csvText, "1700000002.5", "12:30", 1), 4, `"12:30" is no arrival time`, true},
		{"mixed-units.csv", strings.Replace(csvText, "1700000002.5", "1700000002500", 1), 4, "is the unit right?", true},
		{"columns.csv", strings.Replace(csvText, "prompt", "in", 1), 1, `no column "prompt"; the file has at, in, output, model`, false},
		{"empty.csv", "", 1, "the file is empty", false},
		{"blank.csv", "\n\n", 1, "the file is empty", false},
		{"header.csv", "at,prompt,output\n", 2, "the trace has no rows", false},
		{"cut.csv.gz", string(zipped(t, long)[:60]), 0, CutShort, false},
		{"cut.csv.zst", string(zstandard(t, long)[:50]), 0, CutShort, false},
		{"name.csv.gz", csvText, 1, "begins neither as gzip nor as zstd does", false},
		{"moon.jsonl", strings.Replace(mooncakeText, `"input_length": 200, `, "", 1), 2, `no "input_length"`, true},
		{"moon2.jsonl", strings.Replace(mooncakeText, `[6]}`, "[6", 1), 2, "ends in the middle", true},
		{"moon3.jsonl", strings.Replace(mooncakeText, `[6]`, "[6,7,8]", 1), 2, "3 block ids for 200 prompt tokens", true},
		{"moon4.jsonl", strings.Replace(mooncakeText, `[6]`, "[-6]", 1), 2, "not the JSON that is expected", true},
		{"fail.csv", strings.Replace(burstText, "200,20", "200,0", 1), 3, "0 is no number of output tokens", true},
		{"bench.json", strings.Replace(vllmText, "[10, 20, 30]", "[10, 20]", 1), 3, "not equally long", false},
		{"bench2.json", strings.Replace(vllmText, "[10, 20, 30]", "[10, 0, 30]", 1), 2, "request 2 failed", true},
		{"aiperf.jsonl", strings.Replace(aiperfText, `"error": null`, `"error": {"code": 500}`, 1), 2, "a failed request", true},
		{"guide.json", guideText[:300], 1, "the JSON document ends in the middle", false},
		{"noise.json", "[1, 2]", 1, "the format is not recognised", false},
	} {
		file := put(t, c.name, []byte(c.text))
		spec := named(file)
		if strings.HasPrefix(c.name, "moon") {
			spec.Unit = clock.Millisecond
		}
		_, err := ScanTrace(spec)
		var broken *TraceError
		if !errors.As(err, &broken) || broken.File != file || c.line > 0 && broken.Line != c.line || !strings.Contains(broken.Msg, c.says) {
			t.Errorf("%s: %v, want line %d and %q", c.name, err, c.line, c.says)
			continue
		}
		spec.SkipBad = 1
		stats, err := ScanTrace(spec)
		if (err == nil) != c.skippable || c.skippable && (stats.Rows != 2 || stats.Skipped != 1 || !strings.Contains(stats.Why, c.says)) {
			t.Errorf("%s with one row to spare: %+v, %v", c.name, stats, err)
		}
	}
}

func TestParquetSaysWhatIsWrong(t *testing.T) {
	out := int64(10)
	spec := named(put(t, "null.parquet", columnar(t, []parquetRow{{0, "a", 1, &out}, {5, "a", 1, nil}})))
	if _, err := ScanTrace(spec); err == nil || !strings.Contains(err.Error(), "null.parquet:2: row 2 has no output") {
		t.Error(err)
	}
	spec.Prompt = "in"
	if _, err := ScanTrace(spec); err == nil || !strings.Contains(err.Error(), `no column "in"; the file has at, model, prompt, output`) {
		t.Error(err)
	}
	whole := parquetFile(t)
	for _, n := range []int{4, 40, len(whole) / 2, len(whole) - 1} {
		if _, err := ScanTrace(named(put(t, "cut.parquet", whole[:n]))); err == nil {
			t.Errorf("%d of %d bytes are a whole file", n, len(whole))
		}
	}
}

// A class of a trace is chosen by the value of a column.
func TestTracesSplitByClass(t *testing.T) {
	for _, c := range []struct{ name, text, column string }{{"a.csv", csvText, "model"}, {"b.jsonl", strings.ReplaceAll(jsonlText, `{"prompt": 100}`, `{"prompt": 100}`), "model"}, {"c.parquet", string(parquetFile(t)), "model"}} {
		spec := named(put(t, c.name, []byte(c.text)))
		if c.name == "b.jsonl" {
			spec.Prompt = "usage.prompt"
		}
		spec.Where = Where{c.column, "a"}
		rows, err := all(spec)
		if err != nil || len(rows) != 2 || rows[0].Prompt != 100 || rows[1].Prompt != 300 || rows[1].Arrival != 2*clock.Second {
			t.Errorf("%s: %+v, %v", c.name, rows, err)
		}
	}
}

// Whatever bytes a file has, reading it ends with rows or with an error that has
// a place, and what comes out is sane.
func FuzzTraces(f *testing.F) {
	for i, text := range []string{csvText, azureText, burstText, mooncakeText, jsonlText, aiperfText, vllmText, guideText, string(parquetFile(f)), string(zipped(f, csvText)), string(zstandard(f, csvText))} {
		f.Add([]byte(text), byte(i))
	}
	names := append(TraceFormats(), "")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, which byte) {
		spec := named(filepath.Join(dir, "x"))
		if err := os.WriteFile(spec.File, text, 0o644); err != nil {
			t.Fatal(err)
		}
		spec.Format = names[int(which)%len(names)]
		spec.SkipBad = int64(which) % 3
		rows, err := all(spec)
		var broken *TraceError
		if err != nil && !errors.As(err, &broken) {
			t.Fatalf("%s: an error without a place: %v", spec.Format, err)
		}
		last := clock.Duration(0)
		for i, r := range rows {
			if r.Arrival < last || r.Prompt < 1 || r.Output < 1 || r.Index != int64(i) {
				t.Fatalf("%s: row %d is %+v after %v", spec.Format, i, r, last)
			}
			last = r.Arrival
		}
	})
}
