package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table is a cursor on one table of a document. Every key that is asked for is
// thereby known; Done reports the others.
type Table struct {
	doc   *Doc
	node  *node
	path  string // dotted: "pool.main.engine"
	kind  string // of the schema: "pool.engine"
	label string // for messages: `[[pool]] "main"`; empty at the top level
	known []string
	hints map[string]string // key → example
	open  []*Table          // sub-tables, to be checked by Done
	subs  map[string]*Table // those that Sub returned
	skip  bool              // Done has nothing to say
}

// Skip keeps Done from reporting unknown keys of the table, for when an error
// before them leaves open which keys it may have.
func (t *Table) Skip() { t.skip = true }

// Root returns the cursor on the document's top level.
func (d *Doc) Root() *Table { return &Table{doc: d, node: d.root} }

// Doc returns the document that the table is part of.
func (t *Table) Doc() *Doc { return t.doc }

// Path returns the dotted path of a key of the table.
func (t *Table) Path(key string) string {
	if t.path == "" {
		return quotePart(key)
	}
	return t.path + "." + quotePart(key)
}

// know marks a key as known, with an example for messages about it.
func (t *Table) know(key, example string) *node {
	t.mustDeclare(key)
	if t.hints == nil {
		t.hints = map[string]string{}
	}
	if _, ok := t.hints[key]; !ok {
		t.known = append(t.known, key)
	}
	t.hints[key] = example
	return t.node.kids[key]
}

// Know makes keys known that nothing reads, for when an error before them leaves
// open what they mean.
func (t *Table) Know(keys ...string) {
	for _, key := range keys {
		t.know(key, "")
	}
}

// Name returns the text of a key, or "" if it is missing or no text. It records
// nothing; to look ahead at names.
func (t *Table) Name(key string) string {
	if n := t.node.kids[key]; n != nil {
		s, _ := n.value.(string)
		return s
	}
	return ""
}

// Has tells whether the key is given. It does not make the key known.
func (t *Table) Has(key string) bool { return t.node.kids[key] != nil }

// IsTable tells whether the key's value is a table.
func (t *Table) IsTable(key string) bool {
	n := t.node.kids[key]
	return n != nil && n.kind == table
}

// FromSet tells whether the key's value comes from a --set.
func (t *Table) FromSet(key string) bool {
	n := t.node.kids[key]
	return n != nil && n.set > 0
}

// Derived records the value of a key that is left out and follows from others,
// and makes the key known.
func (t *Table) Derived(key, value, note string) {
	t.Know(key)
	t.doc.Note(t.Path(key), value, "derived", note)
}

// Sub returns the cursor on a sub-table, the same at each call. A missing one reads as empty, so that
// its defaults are recorded.
func (t *Table) Sub(key, example string) *Table {
	if sub := t.subs[key]; sub != nil {
		return sub
	}
	n := t.know(key, example)
	sub := &Table{doc: t.doc, path: t.Path(key), kind: t.kindOf(key), node: &node{kind: table}}
	sub.label = quotePart(key)
	if t.label != "" {
		sub.label += " of " + t.label
	}
	switch {
	case n == nil:
	case n.kind == table:
		sub.node = n
	default:
		t.Errorf(key, "{ key = value, ... }", "for example: "+example, "%s is a table, not %s", quotePart(key), describe(n.plain()))
	}
	if t.subs == nil {
		t.subs = map[string]*Table{}
	}
	t.subs[key] = sub
	t.open = append(t.open, sub)
	return sub
}

// Tables returns a cursor on each table of the array [[key]], labelled by the
// value of its nameKey.
func (t *Table) Tables(key, nameKey, example string) []*Table {
	return t.tables(key, example, func(i int, e *node) (name, label string) {
		if kid := e.kids[nameKey]; kid != nil {
			if s, ok := kid.value.(string); ok && s != "" {
				return s, fmt.Sprintf("[[%s]] %q", key, s)
			}
		}
		return strconv.Itoa(i), fmt.Sprintf("[[%s]] number %d", key, i+1)
	})
}

// List returns a cursor on each table of a list without names.
func (t *Table) List(key, example string) []*Table {
	return t.tables(key, example, func(i int, _ *node) (name, label string) {
		return strconv.Itoa(i), fmt.Sprintf("number %d of %s of %s", i+1, key, t.label)
	})
}

func (t *Table) tables(key, example string, naming func(int, *node) (string, string)) []*Table {
	n := t.know(key, example)
	if n == nil {
		return nil
	}
	if n.kind != array {
		t.Errorf(key, "", "for example: "+example, "%s is a list of tables, not %s", key, describe(n.plain()))
		return nil
	}
	var out []*Table
	for i, e := range n.elems {
		if e.kind != table {
			t.doc.report(e, e.val, Error{Key: t.Path(key), Msg: fmt.Sprintf("%s is a list of tables, not of %s", key, describe(e.plain()))})
			continue
		}
		name, label := naming(i, e)
		out = append(out, &Table{doc: t.doc, node: e, path: t.Path(key) + "." + quotePart(name), kind: t.kindOf(key), label: label})
	}
	t.open = append(t.open, out...)
	return out
}

// Errorf reports an error about a key of the table, at its value if it is given,
// else at the table. Allowed and try may be empty.
func (t *Table) Errorf(key, allowed, try, format string, args ...any) {
	e := Error{Key: t.Path(key), Msg: fmt.Sprintf(format, args...), Allowed: allowed, Try: try}
	if n := t.node.kids[key]; n != nil {
		t.doc.report(n, n.val, e)
		return
	}
	t.doc.report(t.node, t.node.at, e)
}

// Warnf records a warning about a key of the table, at its value if it is given,
// else at the table. Try may be empty.
func (t *Table) Warnf(key, try, format string, args ...any) {
	e := Error{Warning: true, Key: t.Path(key), Msg: fmt.Sprintf(format, args...), Try: try}
	n := t.node.kids[key]
	if n == nil {
		n = t.node
	}
	t.doc.warnings = append(t.doc.warnings, t.doc.placed(n, n.val, e))
}

// Done reports the unknown keys of the table and of all tables below it.
func (t *Table) Done() {
	if t.skip {
		return
	}
	for _, key := range t.node.keys {
		switch _, known := t.hints[key]; {
		case known:
		case slices.Contains(t.keys(), key):
			t.Errorf(key, "", "remove it", "%s has no meaning here", key)
		default:
			t.unknown(key)
		}
	}
	for _, sub := range t.open {
		sub.Done()
	}
}

// unknown reports a key that nothing asked for.
func (t *Table) unknown(key string) {
	n := t.node.kids[key]
	where := "at the top level"
	if t.label != "" {
		where = "in " + t.label
	}
	e := Error{
		Key:     t.Path(key),
		Msg:     fmt.Sprintf("unknown key %q %s", key, where),
		Allowed: strings.Join(t.keys(), ", "),
	}
	near := t.nearest(key)
	switch {
	case near != "" && n.set > 0:
		e.Try = "did you mean " + t.doc.corrected(n.set, t.Path(key), near) + "?"
	case near != "":
		e.Try = fmt.Sprintf("did you mean %q?", near)
		if t.hints[near] != "" {
			e.Try += "  For example: " + t.hints[near]
		}
	default:
		e.Try = t.elsewhere(key, n)
	}
	t.doc.report(n, n.at, e)
}

// elsewhere says of an unknown key that another table has one of that name.
func (t *Table) elsewhere(key string, n *node) string {
	paths := make([]string, len(t.doc.entries))
	for i, e := range t.doc.entries {
		paths[i] = e.Path
	}
	path := endingIn(key, paths)
	switch {
	case path == "":
		return ""
	case n.set > 0 && n.kind == scalar:
		return "did you mean " + setArg(path, setText(t.doc.sets[n.set-1])) + "?"
	}
	return fmt.Sprintf("there is such a key at %s", path)
}
