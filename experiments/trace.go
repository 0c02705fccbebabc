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

// trace reads where the requests of a class are replayed from.
func (l *loader) trace(class *config.Table) *workloads.Trace {
	before := l.doc.Failures()
	t := class.Sub("trace", `trace = { file = "requests.csv", format = "csv" }`)
	tr := &workloads.Trace{
		File:   config.Read(t, "file", config.Text, config.Required, config.Example[string](`"data/requests.csv"`)),
		Format: config.Read(t, "format", config.OneOf("azure", "csv"), config.Required),
	}
	switch tr.Format {
	case "csv":
		tr.Arrival = config.Read(t, "arrival", config.Text, config.Default("arrival", "name of the column"), config.Example[string](`"arrived_at"`))
		tr.Prompt = config.Read(t, "prompt", config.Text, config.Default("prompt", "name of the column"), config.Example[string](`"prompt_tokens"`))
		tr.Output = config.Read(t, "output", config.Text, config.Default("output", "name of the column"), config.Example[string](`"output_tokens"`))
		tr.Unit = config.Read(t, "unit", config.Span, config.Default(clock.Second, "of the arrival column"), config.Example[clock.Duration](`"1ms"`), config.Between(1, clock.Day))
	case "azure":
		forbid(t, "", `the columns of format = "azure" are fixed: TIMESTAMP, ContextTokens, GeneratedTokens`, "arrival", "prompt", "output", "unit")
	default:
		t.Skip()
	}
	if tr.File == "" {
		return tr
	}
	// A path on the command line is relative to where the person is.
	if !filepath.IsAbs(tr.File) && !t.FromSet("file") {
		tr.File = filepath.Join(l.dir, tr.File)
	}
	sum, err := hashFile(tr.File)
	if err != nil {
		set := "--set " + t.Path("file") + "=/path/to/file.csv"
		try := "paths are relative to the experiment file; or give another: " + set
		if tr.Format == "azure" {
			try = azureHint + set
		}
		t.Errorf("file", "", try, "the trace file %s cannot be read: %s", tr.File, reason(err))
		return tr
	}
	tr.SHA256 = sum
	if tr.Format != "" && l.doc.Failures() == before {
		l.scanTrace(t, tr)
	}
	return tr
}

// scanTrace checks every line of a trace and records what is in it.
func (l *loader) scanTrace(t *config.Table, tr *workloads.Trace) {
	stats, err := workloads.ScanTrace(*tr)
	var broken *workloads.TraceError
	switch {
	case errors.As(err, &broken):
		try := traceHint(tr)
		if broken.Msg == workloads.CutShort {
			try = "copy or compress it again"
		}
		l.doc.Add(&config.Error{File: broken.File, Line: broken.Line, Col: 1, Key: t.Path("file"), Msg: broken.Msg,
			Source: lineOf(broken.File, broken.Line), Width: 1, Try: try})
		return
	case err != nil:
		t.Errorf("file", "", traceHint(tr), "the trace file %s cannot be read: %s", tr.File, reason(err))
		return
	}
	l.traces[len(l.e.Traffic)] = stats // the class being read
	note := func(key, value, why string) { l.doc.Note(t.Path(key), value, "derived", why) }
	note("sha256", fmt.Sprintf("%q", tr.SHA256), "of the file's bytes")
	note("requests", fmt.Sprint(stats.Rows), "lines of the file")
	note("span", config.Span.Format(stats.Span), "from the first arrival to the last")
	note("mean_prompt", fmt.Sprintf("%.1f", stats.MeanPrompt), "tokens")
	note("mean_output", fmt.Sprintf("%.1f", stats.MeanOutput), "tokens")
	l.checkLength(t, stats.Span)
}

// checkLength reports a trace that ends before the run does.
func (l *loader) checkLength(t *config.Table, span clock.Duration) {
	need := l.e.Warmup + l.e.Duration
	if l.e.Duration == 0 || span >= need {
		return
	}
	try := "--set warmup=0s --set duration=" + config.SpanText(max(clock.Second, span/clock.Second*clock.Second))
	if rest := (span - l.e.Warmup) / clock.Minute * clock.Minute; rest > 0 {
		try = "--set duration=" + config.SpanText(rest)
	}
	t.Errorf("file", "", "a trace starts with the warm-up; shorten the run, for example: "+try,
		"the trace ends after %s, but warm-up and duration are %s", config.SpanText(span/clock.Second*clock.Second), config.SpanText(need))
}

func traceHint(tr *workloads.Trace) string {
	if tr.Format == "azure" {
		return "expected are the columns TIMESTAMP,ContextTokens,GeneratedTokens, in order of TIMESTAMP"
	}
	return fmt.Sprintf("expected are the columns %s, %s and %s, in order of %s", tr.Arrival, tr.Prompt, tr.Output, tr.Arrival)
}

// lineOf returns a line of a text file, shortened, or "" if it cannot be shown.
func lineOf(file string, line int) string {
	f, err := os.Open(file)
	if err != nil || strings.HasSuffix(file, ".gz") {
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
