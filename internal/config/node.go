package config

import (
	"fmt"
	"sort"
	"time"
)

// kind of a node.
type kind uint8

const (
	scalar kind = iota
	table
	array
)

// span is a range of bytes of the text; empty if unknown.
type span struct{ start, end int }

// node is a value of the document with its place in the text.
type node struct {
	kind  kind
	at    span // of the key; of an array's element, the element; of [[x]], the header
	val   span // of the value
	set   int  // number of the --set that gave the value, from 1; 0 = the file
	value any  // of a scalar, as the TOML library decodes it
	keys  []string
	kids  map[string]*node // of a table; keys holds their order
	elems []*node          // of an array
}

// put adds a key to a table; a key that is there already keeps its value.
func (n *node) put(key string, v *node) {
	if n.kids == nil {
		n.kids = map[string]*node{}
	}
	if n.kids[key] == nil {
		n.keys = append(n.keys, key)
		n.kids[key] = v
	}
}

// replace sets a key of a table to v, which takes the old value's place.
func (n *node) replace(key string, v *node) {
	n.put(key, v)
	n.kids[key] = v
}

// build makes the tree of a decoded value; places, which may be nil or differ in
// shape, is the scanner's tree of the same text.
func build(v any, places *node) *node {
	if places == nil {
		places = &node{}
	}
	n := &node{kind: scalar, at: places.at, val: places.val}
	switch v := v.(type) {
	case map[string]any:
		n.kind = table
		for _, k := range keyOrder(v, places) {
			n.put(k, build(v[k], places.kids[k]))
		}
	case []map[string]any:
		n.kind = array
		for i, e := range v {
			n.elems = append(n.elems, build(e, places.elem(i)))
		}
	case []any:
		n.kind = array
		for i, e := range v {
			n.elems = append(n.elems, build(e, places.elem(i)))
		}
	default:
		n.value = v
	}
	return n
}

func (n *node) elem(i int) *node {
	if i < len(n.elems) {
		return n.elems[i]
	}
	return nil
}

// keyOrder returns the keys of m as they stand in the text; keys that the
// scanner did not see come last, sorted.
func keyOrder(m map[string]any, places *node) []string {
	order := make([]string, 0, len(m))
	seen := map[string]bool{}
	for _, k := range places.keys {
		if _, ok := m[k]; ok {
			order, seen[k] = append(order, k), true
		}
	}
	known := len(order)
	for k := range m {
		if !seen[k] {
			order = append(order, k)
		}
	}
	sort.Strings(order[known:])
	return order
}

// plain returns the value of a node without its places: bool, int64, float64,
// string, time.Time, []any or map[string]any.
func (n *node) plain() any {
	switch n.kind {
	case table:
		m := make(map[string]any, len(n.kids))
		for k, kid := range n.kids {
			m[k] = kid.plain()
		}
		return m
	case array:
		list := make([]any, len(n.elems))
		for i, e := range n.elems {
			list[i] = e.plain()
		}
		return list
	}
	return n.value
}

// names returns the name of each element of an array of tables: its "name", or
// else its "class", or else "".
func (n *node) names() []string {
	names := make([]string, len(n.elems))
	for i, e := range n.elems {
		for _, key := range []string{"name", "class"} {
			if kid := e.kids[key]; kid != nil && names[i] == "" {
				names[i], _ = kid.value.(string)
			}
		}
	}
	return names
}

// describe names the kind of a value for a message.
func describe(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case string:
		return "text"
	case time.Time:
		return "a date or time without quotes"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return fmt.Sprintf("%T", v)
}
