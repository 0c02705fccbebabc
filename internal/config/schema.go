package config

import (
	"fmt"
	"slices"
)

// Schema lists every key of every kind of table, in the order in which messages
// name them. A kind is a path without names: "" is the top level, "pool.engine"
// the table engine of any [[pool]].
type Schema map[string][]string

// Call names what the document is, for messages; without it, "the experiment".
func (d *Doc) Call(what string) { d.what = what }

// SetSchema makes every key of the schema one that messages offer, whether or
// not it counts in this document. From then on, reading a key that the schema
// does not have is a fault of the program. Synonyms are what people call a key
// elsewhere: "pool.engine.page_size" → "block_size".
func (d *Doc) SetSchema(s Schema, synonyms map[string]string) { d.schema, d.synonyms = s, synonyms }

// nearest returns the key that was probably meant, or "".
func (t *Table) nearest(key string) string {
	if known := t.doc.synonyms[t.kindOf(key)]; known != "" {
		return known
	}
	return Nearest(key, t.keys())
}

// keys returns the keys that the table may have: those of the schema, or without
// one those that were asked for.
func (t *Table) keys() []string {
	if t.doc.schema != nil {
		return t.doc.schema[t.kind]
	}
	return t.known
}

// mustDeclare panics when the schema does not have the key.
func (t *Table) mustDeclare(key string) {
	if t.doc.schema != nil && !slices.Contains(t.doc.schema[t.kind], key) {
		panic(fmt.Sprintf("config: the schema of table %q has no key %q", t.kind, key))
	}
}

// kindOf returns the kind of a table below this one.
func (t *Table) kindOf(key string) string {
	if t.kind == "" {
		return key
	}
	return t.kind + "." + key
}
