package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// maxBytes bounds the text of one document.
const maxBytes = 1 << 20

// Doc is a TOML text with its --set overrides, being read: it collects every
// error and, setting by setting, where each value came from.
type Doc struct {
	file     string
	what     string // it is, for messages; "" = the experiment
	text     string
	lines    []int // byte offset of each line
	root     *node
	sets     []string
	schema   Schema
	synonyms map[string]string

	errs     Errors
	warnings Errors
	entries  []Entry
}

// Parse reads the text of file and applies sets ("path=value") to it. Errors of
// TOML syntax are returned at once, for there is nothing to read then; all other
// errors come from Err.
func Parse(file, text string, sets ...string) (*Doc, error) {
	d := &Doc{file: file, text: text, sets: sets, lines: lineStarts(text)}
	if len(text) > maxBytes {
		return nil, Errors{{File: file, Msg: fmt.Sprintf("the file has %d bytes", len(text)),
			Allowed: fmt.Sprintf("at most %d", maxBytes), Try: "is this really the file you mean?"}}
	}
	var values map[string]any
	if _, err := toml.Decode(text, &values); err != nil {
		return nil, Errors{d.syntaxError(err)}
	}
	if values == nil {
		values = map[string]any{}
	}
	d.root = build(values, scan(text))
	for i, set := range sets {
		d.apply(i, set)
	}
	return d, nil
}

func lineStarts(text string) []int {
	starts := []int{0}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// syntaxError words an error of the TOML library.
func (d *Doc) syntaxError(err error) *Error {
	e := &Error{File: d.file, Msg: "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
	var pe toml.ParseError
	if !errors.As(err, &pe) {
		return e
	}
	e.Msg = "not valid TOML: " + pe.Message
	e.Key = pe.LastKey
	start := min(max(pe.Position.Start, 0), len(d.text))
	// The library points behind a line that ends too early.
	if start > 0 && start == d.lines[d.lineOf(start)] && d.text[start-1] == '\n' && pe.Position.Line == d.lineOf(start) {
		start--
	}
	d.locate(e, span{start, start + pe.Position.Len})
	e.Try = syntaxHint(pe.Message, e.Source)
	return e
}

// syntaxHint says what to try after a syntax error.
func syntaxHint(msg, line string) string {
	switch {
	case strings.Contains(msg, "already"):
		return "remove or rename one of the two"
	case strings.Contains(msg, "expected value"), strings.Contains(line, "=") && !strings.ContainsAny(line, `"'`):
		return `text and values with a unit need quotes, for example: key = "72h"`
	case strings.Contains(msg, "expected"):
		return `one setting per line: key = value; a table begins with a line [name], one of a list with [[name]]`
	}
	return ""
}

// lineOf returns the index of the line that holds byte offset at.
func (d *Doc) lineOf(at int) int {
	return sort.Search(len(d.lines), func(i int) bool { return d.lines[i] > at }) - 1
}

// locate fills the error's place from a span of the text.
func (d *Doc) locate(e *Error, s span) {
	if s.end <= s.start && s.start == 0 {
		return
	}
	i := d.lineOf(s.start)
	end := len(d.text)
	if i+1 < len(d.lines) {
		end = d.lines[i+1] - 1
	}
	line := strings.TrimSuffix(d.text[d.lines[i]:end], "\r")
	e.Source = line
	e.Line = i + 1
	e.Col = utf8.RuneCountInString(d.text[d.lines[i]:min(s.start, end)]) + 1
	e.Width = max(1, utf8.RuneCountInString(d.text[min(s.start, end):min(max(s.end, s.start), end)]))
}

// report adds an error about node n (nil = the whole file), underlining s.
func (d *Doc) report(n *node, s span, e Error) { d.errs = append(d.errs, d.placed(n, s, e)) }

// placed returns the error with its place: node n (nil = the whole file), span s
// underlined.
func (d *Doc) placed(n *node, s span, e Error) *Error {
	e.File = d.file
	if n != nil && n.set > 0 {
		e.File = "--set " + d.sets[n.set-1]
	} else {
		d.locate(&e, s)
	}
	return &e
}

// Add adds an error about another file, such as one that the document names.
func (d *Doc) Add(e *Error) { d.errs = append(d.errs, e) }

// origin says where a node's value came from: "x.toml:12" or "--set".
func (d *Doc) origin(n *node) string {
	if n.set > 0 {
		return "--set"
	}
	if n.val.end == 0 {
		return filepath.Base(d.file)
	}
	return fmt.Sprintf("%s:%d", filepath.Base(d.file), d.lineOf(n.val.start)+1)
}

// Note records a value that the text does not hold: a figure of a catalogue or
// one derived from others. Origin is for example "catalogue: h100-sxm-80gb".
func (d *Doc) Note(path, value, origin, note string) {
	d.entries = append(d.entries, Entry{Path: path, Value: value, Origin: origin, Note: note})
}

// File returns the path of the document, for paths that are relative to it.
func (d *Doc) File() string { return d.file }

// Failures returns the number of errors so far. When it has not changed over a
// group of reads, all of them gave valid values.
func (d *Doc) Failures() int { return len(d.errs) }

// Err returns all errors as Errors, or nil.
func (d *Doc) Err() error {
	if len(d.errs) == 0 {
		return nil
	}
	return d.errs.sorted(d.file)
}

// Provenance returns where each setting that was read came from, in the order of
// reading, and all warnings.
func (d *Doc) Provenance() Provenance {
	return Provenance{File: d.file, Sets: d.sets, Entries: d.entries, Warnings: d.warnings.sorted(d.file)}
}
