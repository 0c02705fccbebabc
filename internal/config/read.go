package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Unit reads one kind of value and writes it back.
type Unit[T any] struct {
	Name    string               // "a duration", for messages
	Allowed string               // how it is written
	Example string               // one value, as TOML
	Parse   func(any) (T, error) // the error completes "replicas = 0 ..."
	Format  func(T) string       // as TOML; Parse reads it back
}

// A Rule says what holds for one setting beyond its unit.
type Rule[T any] func(*setting[T])

type setting[T any] struct {
	def      *T
	note     string
	required bool
	example  string
	checks   []check[T]
}

type check[T any] struct {
	ok      func(T) bool
	problem string // "is out of range"
	allowed func(Unit[T]) string
	try     string
}

// Required: leaving the key out is an error.
func Required[T any](s *setting[T]) { s.required = true }

// Default gives the value of a key that is left out, and a note on where it
// comes from.
func Default[T any](v T, note string) Rule[T] {
	return func(s *setting[T]) { s.def, s.note = &v, note }
}

// Note says what the value means or where it comes from when it is given.
func Note[T any](note string) Rule[T] { return func(s *setting[T]) { s.note = note } }

// Example is the value, as TOML, that messages about the key suggest.
func Example[T any](text string) Rule[T] { return func(s *setting[T]) { s.example = text } }

// Where adds a check. Problem completes "key = value ...".
func Where[T any](ok func(T) bool, problem, allowed, try string) Rule[T] {
	return func(s *setting[T]) {
		s.checks = append(s.checks, check[T]{ok, problem, func(Unit[T]) string { return allowed }, try})
	}
}

// Between allows lo to hi, both included.
func Between[T cmp.Ordered](lo, hi T) Rule[T] {
	return func(s *setting[T]) {
		s.checks = append(s.checks, check[T]{
			ok:      func(v T) bool { return v >= lo && v <= hi },
			allowed: func(u Unit[T]) string { return u.Format(lo) + " to " + u.Format(hi) },
		})
	}
}

// Above allows more than lo, up to hi.
func Above[T cmp.Ordered](lo, hi T) Rule[T] {
	return func(s *setting[T]) {
		s.checks = append(s.checks, check[T]{
			ok:      func(v T) bool { return v > lo && v <= hi },
			allowed: func(u Unit[T]) string { return "more than " + u.Format(lo) + ", at most " + u.Format(hi) },
		})
	}
}

// Read returns the value of a key of the table, checked; it records the setting,
// or an error at its place. After an error it returns the default or zero.
func Read[T any](t *Table, key string, u Unit[T], rules ...Rule[T]) T {
	s := setting[T]{example: u.Example}
	for _, r := range rules {
		r(&s)
	}
	example := quotePart(key) + " = " + s.example
	allowed := u.Allowed
	n := t.know(key, example)
	if n != nil && n.set > 0 { // on the command line, text needs no quotes
		example = setArg(t.Path(key), strings.Trim(s.example, `"`))
		allowed = strings.TrimSuffix(strings.TrimSuffix(allowed, ", in quotes"), ", without quotes")
	}
	var zero T
	if n == nil {
		switch {
		case s.def != nil:
			t.doc.Note(t.Path(key), u.Format(*s.def), "default", s.note)
			return *s.def
		case s.required:
			t.missing(key, u.Name, example)
		}
		return zero
	}
	if s.def != nil {
		zero = *s.def
	}
	v, err := u.Parse(n.plain())
	if err != nil {
		t.Errorf(key, allowed, "for example: "+example, "%s %s", t.quote(key, n), err)
		return zero
	}
	for _, c := range s.checks {
		if !c.ok(v) {
			t.Errorf(key, c.allowed(u), cmp.Or(c.try, "for example: "+example), "%s %s", t.quote(key, n), cmp.Or(c.problem, "is out of range"))
			return zero
		}
	}
	note := s.note
	if s.def != nil {
		note = "" // it tells of the default
	}
	t.doc.Note(t.Path(key), u.Format(v), t.doc.origin(n), note)
	return v
}

// missing reports a required key that is left out.
func (t *Table) missing(key, what, example string) {
	where := t.label
	if where == "" {
		where = cmp.Or(t.doc.what, "the experiment")
	}
	t.doc.report(t.node, t.node.at, Error{Key: t.Path(key),
		Msg: fmt.Sprintf("%s has no %q", where, key), Allowed: what, Try: "add a line such as: " + example})
}

// quote writes "key = value" as the person wrote it, for a message.
func (t *Table) quote(key string, n *node) string {
	return quotePart(key) + " = " + t.doc.textOf(n)
}

// textOf returns the text of a value, shortened to fit a line.
func (d *Doc) textOf(n *node) string {
	text := ""
	if n.set > 0 {
		text = setText(d.sets[n.set-1])
	} else if n.val.end > n.val.start && n.val.end <= len(d.text) {
		text = d.text[n.val.start:n.val.end]
	}
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		text = strings.TrimSpace(text[:i]) + " ..."
	}
	if r := []rune(text); len(r) > 60 {
		text = string(r[:57]) + "..."
	}
	return text
}
