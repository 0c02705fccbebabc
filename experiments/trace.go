package experiments

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/workloads"
)

const azureHint = "get it from https://github.com/Azure/AzurePublicDataset (data/AzureLLMInferenceTrace_conv.csv, CC-BY-4.0), then: "

// trace reads where the requests of a class are replayed from: a file, or a table.
func (l *loader) trace(class *config.Table) *workloads.Trace {
	before := l.doc.Failures()
	tr := &workloads.Trace{}
	if !class.IsTable("trace") {
		tr.File = config.Read(class, "trace", config.Text, config.Required, config.Example[string](`"data/requests.jsonl"`))
		if l.traceFile(class, "trace", tr); l.doc.Failures() == before {
			l.scanTrace(class, "trace", tr)
		}
		return tr
	}
	t := class.Sub("trace", `trace = { file = "requests.csv", format = "csv" }`)
	tr.File = config.Read(t, "file", config.Text, config.Required, config.Example[string](`"data/requests.csv"`))
	if t.Has("format") {
		tr.Format = config.Read(t, "format", config.OneOf(workloads.TraceFormats()...))
	} else {
		t.Know("format")
	}
	l.traceFile(t, "file", tr)
	traceColumns(t, tr)
	traceScale(t, tr)
	tr.SkipBad = int64(config.Read(t, "skip_bad", config.Int, config.Default(0, "any broken row is an error"), config.Example[int]("10"), config.Between(0, maxSkipped)))
	if l.doc.Failures() == before {
		l.scanTrace(t, "file", tr)
	}
	return tr
}

// maxSkipped bounds the broken rows that a trace may have.
const maxSkipped = 1_000_000_000

// traceColumns reads what a format leaves open.
func traceColumns(t *config.Table, tr *workloads.Trace) {
	columns := []string{"arrival", "prompt", "output"}
	switch {
	case tr.Format == "":
		t.Skip()
		return
	case workloads.HasColumns(tr.Format):
		tr.Arrival = config.Read(t, "arrival", config.Text, config.Default("arrival", "name of the column"), config.Example[string](`"arrived_at"`))
		tr.Prompt = config.Read(t, "prompt", config.Text, config.Default("prompt", "name of the column"), config.Example[string](`"prompt_tokens"`))
		tr.Output = config.Read(t, "output", config.Text, config.Default("output", "name of the column"), config.Example[string](`"output_tokens"`))
	default:
		forbid(t, "", fmt.Sprintf("the columns of format = %q are fixed; %s", tr.Format, workloads.Expected(*tr)), columns...)
	}
	if workloads.HasUnit(tr.Format) {
		tr.Unit = config.Read(t, "unit", config.Span, config.Default(workloads.DefaultUnit(tr.Format), "of the time stamps"), config.Example[clock.Duration](`"1ms"`), config.Between(1, clock.Day))
	} else {
		forbid(t, "", fmt.Sprintf("the unit of format = %q is fixed", tr.Format), "unit")
	}
	if tr.Format == "mooncake" {
		tr.Block = int32(config.Read(t, "block", config.Int, config.Default(workloads.DefaultBlock, "prompt tokens that an id of hash_ids stands for"), config.Example[int]("512"), config.Between(1, 1<<20)))
	} else {
		forbid(t, "", `block belongs to format = "mooncake": it is the tokens that a block id stands for`, "block")
	}
	if !t.Has("where") {
		t.Know("where")
		return
	}
	where := t.Sub("where", `where = { column = "model", is = "chat" }`)
	tr.Where.Column = config.Read(where, "column", config.Text, config.Required, config.Example[string](`"model"`))
	tr.Where.Is = config.Read(where, "is", config.Text, config.Required, config.Example[string](`"chat"`))
	switch tr.Format {
	case "mooncake", "vllm-bench", "guidellm":
		t.Errorf("where", "", "", "format = %q has no column to choose rows by", tr.Format)
	}
}

// traceScale reads how a replay differs from the file.
func traceScale(t *config.Table, tr *workloads.Trace) {
	tr.Speed = config.Read(t, "speed", config.Float, config.Default(1.0, "as in the file; 2 plays it in half the time"), config.Example[float64]("2"), config.Between(0.0001, 10_000))
	tr.Rate = config.Read(t, "rate", config.Float, config.Default(1.0, "requests for each of the file's, with its rate curve and burstiness"), config.Example[float64]("1.5"), config.Between(0.01, 1000))
	tr.Loop = config.Read(t, "loop", config.Bool, config.Default(false, "the trace ends with the file"))
	if tr.Speed == 1 {
		tr.Speed = 0
	}
	if tr.Rate == 1 {
		tr.Rate = 0
	}
}

// traceFile finds the file, its hash and, unless it is given, its format.
func (l *loader) traceFile(t *config.Table, key string, tr *workloads.Trace) {
	if tr.File == "" {
		return
	}
	// A path on the command line is relative to where the person is.
	if !filepath.IsAbs(tr.File) && !t.FromSet(key) {
		tr.File = filepath.Join(l.dir, tr.File)
	}
	sum, err := hashFile(tr.File)
	if err != nil {
		set := "--set " + t.Path(key) + "=/path/to/file.csv"
		try := "paths are relative to the experiment file; or give another: " + set
		if tr.Format == "azure" {
			try = azureHint + set
		}
		t.Errorf(key, "", try, "the trace file %s cannot be read: %s", tr.File, reason(err))
		return
	}
	tr.SHA256 = sum
	if tr.Format != "" || t.Has("format") && key == "file" {
		return
	}
	format, err := workloads.DetectFormat(tr.File)
	if err != nil {
		l.brokenTrace(t, key, tr, err)
		return
	}
	tr.Format = format
	if key == "file" {
		t.Doc().Note(t.Path("format"), fmt.Sprintf("%q", format), "derived", "recognised by the first line")
		return
	}
	tr.SetDefaults()
	t.Doc().Note(t.Path(key)+".format", fmt.Sprintf("%q", format), "derived", "recognised by the first line")
}

// brokenTrace reports what is wrong with a trace.
func (l *loader) brokenTrace(t *config.Table, key string, tr *workloads.Trace, err error) {
	var broken *workloads.TraceError
	if !errors.As(err, &broken) {
		t.Errorf(key, "", workloads.Expected(*tr), "the trace file %s cannot be read: %s", tr.File, reason(err))
		return
	}
	try := workloads.Expected(*tr)
	if broken.Msg == workloads.CutShort {
		try = "copy or compress it again"
	}
	l.doc.Add(&config.Error{File: broken.File, Line: broken.Line, Col: 1, Key: t.Path(key), Msg: broken.Msg,
		Source: sourceLine(tr, broken), Width: 1, Try: try})
}

// scanTrace checks every line of a trace and records what is in it.
func (l *loader) scanTrace(t *config.Table, key string, tr *workloads.Trace) {
	stats, err := workloads.ScanTrace(*tr)
	if err != nil {
		l.brokenTrace(t, key, tr, err)
		return
	}
	l.traces[len(l.e.Traffic)] = stats // the class being read
	note := func(what, value, why string) {
		path := t.Path(key) + "." + what
		if key == "file" {
			path = t.Path(what)
		}
		l.doc.Note(path, value, "derived", why)
	}
	note("sha256", fmt.Sprintf("%q", tr.SHA256), "of the file's bytes")
	what := "lines of the file"
	if tr.Rate > 0 || tr.Where.Column != "" {
		what = "of the file, as replayed"
	}
	note("requests", fmt.Sprint(stats.Rows), what)
	note("span", config.Span.Format(stats.Span), "from the first arrival to the last")
	note("mean_prompt", fmt.Sprintf("%.1f", stats.MeanPrompt), "tokens")
	note("mean_output", fmt.Sprintf("%.1f", stats.MeanOutput), "tokens")
	if stats.Skipped > 0 {
		note("skipped", fmt.Sprint(stats.Skipped), "broken rows, such as "+stats.Why)
		t.Warnf(key, "", "%s of the trace %s passed over, such as %s", count(int(stats.Skipped), "broken row"), map[bool]string{true: "is", false: "are"}[stats.Skipped == 1], stats.Why)
	}
	if !tr.Loop {
		l.checkLength(t, key, stats.Span)
	}
}

// checkLength reports a trace that ends before the run does; a second too long is
// what it takes to count the last request.
func (l *loader) checkLength(t *config.Table, key string, span clock.Duration) {
	need := l.e.Warmup + l.e.Duration
	if l.e.Duration == 0 || need <= span+clock.Second {
		return
	}
	try := "--set warmup=0s --set duration=" + config.SpanText(max(clock.Second, (span+clock.Second-1)/clock.Second*clock.Second))
	if rest := (span - l.e.Warmup) / clock.Minute * clock.Minute; rest > 0 {
		try = "--set duration=" + config.SpanText(rest)
	}
	t.Errorf(key, "", "a trace starts with the warm-up; shorten the run, for example: "+try,
		"the trace ends after %s, but warm-up and duration are %s", config.SpanText(span/clock.Second*clock.Second), config.SpanText(need))
}

// unread says what is wrong with a file beside the experiment, with its name.
func unread(path string, err error) string {
	var broken *workloads.TraceError
	if errors.As(err, &broken) {
		return err.Error()
	}
	return fmt.Sprintf("the file %s cannot be read: %s", path, reason(err))
}

// sourceLine returns the broken line, where the file has lines that can be shown.
func sourceLine(tr *workloads.Trace, broken *workloads.TraceError) string {
	if !workloads.HasLines(tr.Format) {
		return ""
	}
	return lineOf(broken.File, broken.Line)
}

// lineOf returns a line of a text file, shortened, or "" if it cannot be shown.
func lineOf(file string, line int) string {
	f, err := os.Open(file)
	if err != nil || strings.HasSuffix(file, ".gz") || strings.HasSuffix(file, ".zst") {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if n == line {
			return fmt.Sprintf("%.100s", strings.ToValidUTF8(lines.Text(), "?"))
		}
	}
	return ""
}

// hashFile returns the SHA-256 of a file's bytes.
func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
