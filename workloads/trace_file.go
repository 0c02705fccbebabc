package workloads

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// traceFile is an open file, decompressed on the way.
type traceFile struct {
	*bufio.Reader
	name    string
	file    *os.File
	unpack  io.Closer
	ended   *remembering
	packed  bool
	parquet bool
	also    []io.Closer // further handles that a decoder opened
}

// openFile opens a file and looks at its first bytes.
func openFile(name string) (*traceFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	t := &traceFile{name: name, file: f}
	raw := bufio.NewReaderSize(f, 1<<16)
	magic, _ := raw.Peek(4)
	var in io.Reader = raw
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		t.packed = true
		z, err := gzip.NewReader(raw)
		if err != nil {
			f.Close()
			return nil, &TraceError{name, 1, "not a gzip file: " + err.Error()}
		}
		in = z
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		t.packed = true
		z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<28))
		if err != nil {
			f.Close()
			return nil, &TraceError{name, 1, "not a zstd file: " + err.Error()}
		}
		in, t.unpack = z, z.IOReadCloser()
	case bytes.Equal(magic, []byte("PAR1")):
		t.parquet = true
	case strings.HasSuffix(name, ".gz"), strings.HasSuffix(name, ".zst"):
		if len(magic) > 0 {
			f.Close()
			return nil, &TraceError{name, 1, "the name says compressed, but the file begins neither as gzip nor as zstd does"}
		}
	}
	t.ended = &remembering{Reader: in}
	t.Reader = bufio.NewReaderSize(t.ended, detectBytes)
	return t, nil
}

// Close releases the file.
func (t *traceFile) Close() error {
	for _, c := range t.also {
		c.Close()
	}
	if t.unpack != nil {
		t.unpack.Close()
	}
	return t.file.Close()
}

// broken is an error of reading, with its line.
func (t *traceFile) broken(line int, err error) error {
	msg := err.Error()
	switch {
	case t.packed && errors.Is(err, io.ErrUnexpectedEOF):
		msg = CutShort
	case errors.Is(err, bufio.ErrTooLong):
		msg = fmt.Sprintf("the line is longer than %d bytes: is this a trace?", longestLine)
	}
	return &TraceError{t.name, line, msg}
}

// remembering is a reader that knows how it ended.
type remembering struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (r *remembering) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// lines reads a file line by line.
type lines struct {
	file *traceFile
	in   *bufio.Scanner
	n    int
	text []byte
}

const longestLine = 1 << 24

func newLines(f *traceFile) *lines {
	l := &lines{file: f, in: bufio.NewScanner(f)}
	l.in.Buffer(make([]byte, 1<<16), longestLine)
	l.in.Split(l.split)
	return l
}

// split splits lines like bufio.ScanLines, but the rest of a file that could not
// be read to its end is no line.
func (l *lines) split(data []byte, atEOF bool) (int, []byte, error) {
	if atEOF && l.file.ended.err != nil && bytes.IndexByte(data, '\n') < 0 {
		return 0, nil, nil
	}
	return bufio.ScanLines(data, atEOF)
}

// next moves to the next line that is not empty; io.EOF at the end.
func (l *lines) next() error {
	for l.in.Scan() {
		l.n++
		l.text = bytes.TrimSpace(l.in.Bytes())
		if l.n == 1 {
			l.text = bytes.TrimPrefix(l.text, []byte("\ufeff"))
		}
		if len(l.text) > 0 {
			return nil
		}
	}
	if err := l.in.Err(); err != nil {
		return l.file.broken(l.n+1, err)
	}
	return io.EOF
}

func newDecoder(spec Trace, f *traceFile) (decoder, error) {
	k := slices.IndexFunc(traceFormats, func(t traceFormat) bool { return t.name == spec.Format })
	if k < 0 {
		return nil, fmt.Errorf("trace: unknown format %q; there are %s", spec.Format, strings.Join(TraceFormats(), ", "))
	}
	return traceFormats[k].open(spec, f)
}

// DetectFormat recognises the format of a trace by its beginning.
func DetectFormat(name string) (string, error) {
	f, err := openFile(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if f.parquet {
		return "parquet", nil
	}
	first, err := f.Peek(detectBytes)
	if len(bytes.TrimSpace(first)) == 0 {
		if err != nil && err != io.EOF {
			return "", f.broken(1, err)
		}
		return "", &TraceError{name, 1, "the file is empty"}
	}
	first = bytes.TrimSpace(bytes.TrimPrefix(first, []byte("\ufeff")))
	line, _, _ := bytes.Cut(first, []byte("\n"))
	if len(line) > 0 && (line[0] == '{' && len(bytes.TrimSpace(line)) < 3) {
		line = first // a document over several lines
	}
	if header(line, "t_s", "rate_rps") {
		return "", &TraceError{name, 1, `a table of windows, not of requests: take it as a rate, rate = { shape = "windows", windows = "..." }`}
	}
	for _, t := range traceFormats {
		if t.is != nil && t.is(line) {
			return t.name, nil
		}
	}
	return "", &TraceError{name, 1, "the format is not recognised; name it, one of " + strings.Join(TraceFormats(), ", ")}
}

// detectBytes is how much of a file its format is recognised by.
const detectBytes = 1 << 16
