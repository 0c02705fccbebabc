package workloads

import (
	"bytes"
	"strings"

	"slosim/sim/clock"
)

// traceFormat is one format: how it is recognised and read.
type traceFormat struct {
	name string
	is   func(first []byte) bool // by the beginning of the first line; nil = never on its own
	open func(spec Trace, f *traceFile) (decoder, error)
	// free tells whether the columns and the unit are the user's to name; where the
	// unit alone is, columns is false.
	columns, unit bool
	expected      string // for messages
}

// traceFormats in order of detection: the more special ones come first.
var traceFormats = []traceFormat{
	{"azure", func(first []byte) bool { return header(first, azureColumns[:]...) }, openAzure, false, false,
		"the columns TIMESTAMP,ContextTokens,GeneratedTokens, in order of TIMESTAMP"},
	{"burstgpt", func(first []byte) bool { return header(first, burstColumns[:]...) }, openBurst, false, false,
		"the columns Timestamp,Request tokens,Response tokens, in order of Timestamp; failed requests have 0 response tokens: take a file without fails, or skip_bad"},
	{"mooncake", func(first []byte) bool { return object(first, "timestamp", "input_length", "output_length") }, openMooncake, false, true,
		`JSON lines such as {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}, in order of timestamp`},
	{"aiperf", func(first []byte) bool { return object(first, "request_start_ns", "metrics") }, openAIPerf, false, false,
		"AIPerf's profile_export.jsonl"},
	{"guidellm", func(first []byte) bool { return first[0] == '{' && bytes.Contains(first, []byte(`"benchmarks"`)) }, openGuide, false, false,
		"guidellm's report as JSON, with its requests"},
	{"vllm-bench", func(first []byte) bool { return object(first, "input_lens", "output_lens", "start_times") }, openVLLM, false, false,
		"a result of vllm bench serve with --save-result and --save-detailed"},
	{"parquet", nil, openParquet, true, true, ""},
	{"jsonl", func(first []byte) bool { return first[0] == '{' }, openJSONL, true, true, ""},
	{"csv", func(first []byte) bool { return bytes.IndexByte(first, ',') > 0 && first[0] != '[' }, openCSV, true, true, ""},
}

func formatNamed(name string) traceFormat {
	for _, f := range traceFormats {
		if f.name == name {
			return f
		}
	}
	return traceFormat{}
}

// HasColumns tells whether a format's columns are for the user to name.
func HasColumns(format string) bool { return formatNamed(format).columns }

// HasUnit tells whether the unit of a format's time stamps is for the user to
// say.
func HasUnit(format string) bool { return formatNamed(format).unit }

// HasLines tells whether a format has one record per line, so that the line of an
// error is one of the file; otherwise it is the number of the record.
func HasLines(format string) bool {
	return format != "parquet" && format != "guidellm" && format != "vllm-bench"
}

// Expected says what a trace should look like, for a message about a broken one.
func Expected(spec Trace) string {
	f := formatNamed(spec.Format)
	switch {
	case f.name == "":
		return "formats: " + strings.Join(TraceFormats(), ", ")
	case f.name == "parquet":
		return "expected are the columns " + spec.Arrival + ", " + spec.Prompt + " and " + spec.Output + ", in order of " + spec.Arrival + "; numbers after the file's name count rows"
	case !HasLines(f.name):
		return "expected: " + f.expected + "; numbers after the file's name count requests"
	case f.columns:
		return "expected are the columns " + spec.Arrival + ", " + spec.Prompt + " and " + spec.Output + ", in order of " + spec.Arrival
	}
	return "expected: " + f.expected
}

// SetDefaults fills in columns, unit and block of a trace of which only file and
// format are known.
func (t *Trace) SetDefaults() {
	f := formatNamed(t.Format)
	if f.columns {
		t.Arrival, t.Prompt, t.Output = "arrival", "prompt", "output"
	}
	if f.unit {
		t.Unit = DefaultUnit(t.Format)
	}
	if t.Format == "mooncake" {
		t.Block = DefaultBlock
	}
}

// DefaultUnit is the unit of a format's time stamps.
func DefaultUnit(format string) clock.Duration {
	if format == "mooncake" {
		return clock.Millisecond
	}
	return clock.Second
}

// DefaultBlock is how many tokens an id of a trace stands for.
const DefaultBlock = 512

// TraceFormats are the formats that OpenTrace reads.
func TraceFormats() []string {
	var names []string
	for _, f := range traceFormats {
		names = append(names, f.name)
	}
	return names
}

// header tells whether a header line has all of the columns.
func header(first []byte, columns ...string) bool {
	have := map[string]bool{}
	for _, f := range strings.Split(string(first), ",") {
		have[strings.TrimSpace(string(unquote([]byte(f))))] = true
	}
	for _, c := range columns {
		if !have[c] {
			return false
		}
	}
	return true
}

// object tells whether a line begins a JSON object in which all keys appear.
func object(first []byte, keys ...string) bool {
	if first[0] != '{' {
		return false
	}
	for _, k := range keys {
		if !bytes.Contains(first, []byte(`"`+k+`"`)) {
			return false
		}
	}
	return true
}
