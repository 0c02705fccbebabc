package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxShown bounds how many errors are printed at once.
const maxShown = 20

// Error is one thing wrong with the input, written for the person who wrote it.
type Error struct {
	File      string // path as given, or "--set path=value"
	Line, Col int    // from 1, in characters; 0 = the whole file
	Key       string // dotted path: "pool.main.replicas"
	Msg       string // what is wrong
	Allowed   string // what would be right; may be empty
	Try       string // what to do next; may be empty
	Warning   bool   // likely wrong, but not certainly

	Source string // the line of the text, if there is one
	Width  int    // characters to underline
}

// Error writes the error with its source line and a caret.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
	}
	kind := "error"
	if e.Warning {
		kind = "warning"
	}
	fmt.Fprintf(&b, ": %s: %s\n", kind, e.Msg)
	if e.Line > 0 && e.Source != "" {
		number := fmt.Sprintf("%5d", e.Line)
		fmt.Fprintf(&b, "%s | %s\n%5s | %s\n", number, e.Source, "", underline(e.Source, e.Col, e.Width))
	}
	if e.Allowed != "" {
		fmt.Fprintf(&b, "  allowed: %s\n", e.Allowed)
	}
	if e.Try != "" {
		fmt.Fprintf(&b, "  %s\n", e.Try)
	}
	return strings.TrimRight(b.String(), "\n")
}

// underline returns a caret under column col of the line, with width-1 tildes;
// tabs are kept so that it lines up.
func underline(line string, col, width int) string {
	var b strings.Builder
	n := 0
	for _, r := range line {
		if n++; n >= col {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	width = min(width, max(1, len([]rune(line))-col+1))
	b.WriteString("^")
	b.WriteString(strings.Repeat("~", max(0, width-1)))
	return b.String()
}

// Errors are all the errors of an input, in the order of the text.
type Errors []*Error

// Error writes all errors, one paragraph each, and counts them.
func (es Errors) Error() string {
	var b strings.Builder
	for i, e := range es {
		if i == maxShown {
			fmt.Fprintf(&b, "... and %d more\n\n", len(es)-i)
			break
		}
		fmt.Fprintf(&b, "%s\n\n", e.Error())
	}
	if len(es) == 1 {
		b.WriteString("1 error")
	} else {
		fmt.Fprintf(&b, "%d errors", len(es))
	}
	return b.String()
}

// Unwrap gives errors.As each error.
func (es Errors) Unwrap() []error {
	list := make([]error, len(es))
	for i, e := range es {
		list[i] = e
	}
	return list
}

// sorted returns the errors in order of their place in file, then those about
// other files, then those about --set arguments, without repetitions.
func (es Errors) sorted(file string) Errors {
	rank := func(e *Error) int {
		switch {
		case e.File == file:
			return 0
		case strings.HasPrefix(e.File, "--set "):
			return 2
		}
		return 1
	}
	out := slices.Clone(es)
	slices.SortStableFunc(out, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return slices.CompactFunc(out, func(a, b *Error) bool { return *a == *b })
}

// IsInput tells whether err is the fault of the input, to be shown without a
// stack and to be fixed by the person.
func IsInput(err error) bool {
	var one *Error
	return errors.As(err, &one)
}
