package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/term"
)

// output is a writer that remembers its first error and then stays silent, so
// that a verb need not look at every line that it prints.
type output struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// screen returns the terminal behind w, which reports ask for its width and
// colours, or w itself.
func screen(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		if f, ok := o.w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return f
		}
	}
	return w
}

// lost reports an output that did not arrive, or nil. Nobody reading any more,
// as in "sim run ... | head", is no error.
func (o *output) lost() error {
	if o.err == nil || errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	reason := o.err
	var pe *fs.PathError
	if errors.As(reason, &pe) {
		reason = pe.Err
	}
	return fmt.Errorf("the output cannot be written: %w", reason)
}
