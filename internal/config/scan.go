package config

import (
	"strings"
	"unicode/utf8"
)

// maxDepth bounds nested arrays and inline tables; deeper text stays without
// positions.
const maxDepth = 64

// A scanner reads TOML text for one purpose: where each key and value stands.
// Values come from the TOML library, which knows no positions; so the scanner
// neither checks nor converts, and at text it cannot follow it stops with what
// it has.
type scanner struct {
	text string
	pos  int
	bad  bool
}

// segment is one part of a dotted key.
type segment struct {
	name string
	at   span
}

// scan returns the tree of all keys of the text, without values.
func scan(text string) *node {
	s := &scanner{text: text}
	if strings.HasPrefix(text, "\xef\xbb\xbf") { // byte order mark
		s.pos = 3
	}
	root := &node{kind: table}
	cur := root
	for {
		s.blank()
		if s.bad || s.pos >= len(s.text) {
			return root
		}
		switch {
		case s.has("[["):
			cur = s.header(root, "[[", "]]")
		case s.has("["):
			cur = s.header(root, "[", "]")
		default:
			s.pair(cur, 0)
		}
		if cur == nil {
			return root
		}
	}
}

func (s *scanner) has(prefix string) bool { return strings.HasPrefix(s.text[s.pos:], prefix) }

func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

// take skips the prefix, or gives up when it is not there.
func (s *scanner) take(prefix string) {
	if !s.has(prefix) {
		s.bad = true
		return
	}
	s.pos += len(prefix)
}

// spaces skips blanks within a line.
func (s *scanner) spaces() {
	for c := s.peek(); c == ' ' || c == '\t'; c = s.peek() {
		s.pos++
	}
}

// blank skips blanks, line ends and comments.
func (s *scanner) blank() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		case '#':
			n := strings.IndexByte(s.text[s.pos:], '\n')
			if n < 0 {
				n = len(s.text) - s.pos
			}
			s.pos += n
		default:
			return
		}
	}
}

// header reads a [table] or [[array]] line and returns the table that the
// following keys belong to, or nil.
func (s *scanner) header(root *node, open, end string) *node {
	start := s.pos
	s.take(open)
	path := s.key()
	s.take(end)
	if s.bad {
		return nil
	}
	at := span{start, s.pos}
	cur := root
	for _, k := range path[:len(path)-1] {
		if cur = cur.descend(k); cur == nil {
			return nil
		}
	}
	last := path[len(path)-1]
	if open == "[" {
		if cur = cur.descend(last); cur != nil {
			cur.at, cur.val = at, at
		}
		return cur
	}
	list := cur.kids[last.name]
	if list == nil {
		list = &node{kind: array, at: at, val: at}
		cur.put(last.name, list)
	}
	if list.kind != array {
		return nil
	}
	elem := &node{kind: table, at: at, val: at}
	list.elems = append(list.elems, elem)
	return elem
}

// descend returns the table that k leads to, made if need be; of an array of
// tables it is the last one.
func (n *node) descend(k segment) *node {
	kid := n.kids[k.name]
	if kid == nil {
		kid = &node{kind: table, at: k.at, val: k.at}
		n.put(k.name, kid)
	}
	if kid.kind == array && len(kid.elems) > 0 {
		kid = kid.elems[len(kid.elems)-1]
	}
	if kid.kind != table {
		return nil
	}
	return kid
}

// pair reads "key = value" into the table.
func (s *scanner) pair(into *node, depth int) {
	path := s.key()
	s.take("=")
	s.spaces()
	if s.bad {
		return
	}
	for _, k := range path[:len(path)-1] {
		if into = into.descend(k); into == nil {
			s.bad = true
			return
		}
	}
	v := s.value(depth)
	if s.bad {
		return
	}
	last := path[len(path)-1]
	v.at = last.at
	into.put(last.name, v)
}

// key reads a dotted key; on success it has at least one segment.
func (s *scanner) key() []segment {
	var path []segment
	for {
		s.spaces()
		start := s.pos
		var name string
		switch s.peek() {
		case '"':
			name = unescape(s.quoted(`"`, true))
		case '\'':
			name = s.quoted(`'`, false)
		default:
			for s.pos < len(s.text) && !strings.ContainsRune(" \t\r\n.=[]{}#,\"'", rune(s.text[s.pos])) {
				s.pos++
			}
			name = s.text[start:s.pos]
			s.bad = s.bad || name == ""
		}
		if s.bad {
			return nil
		}
		path = append(path, segment{name, span{start, s.pos}})
		s.spaces()
		if s.peek() != '.' {
			return path
		}
		s.pos++
	}
}

// value reads a value of any kind.
func (s *scanner) value(depth int) *node {
	start := s.pos
	v := &node{kind: scalar}
	switch {
	case depth > maxDepth:
		s.bad = true
	case s.has(`"""`):
		s.quoted(`"""`, true)
	case s.has(`'''`):
		s.quoted(`'''`, false)
	case s.has(`"`):
		s.quoted(`"`, true)
	case s.has(`'`):
		s.quoted(`'`, false)
	case s.has("["):
		v.kind = array
		s.list("[", "]", func() {
			e := s.value(depth + 1)
			e.at = e.val
			v.elems = append(v.elems, e)
		})
	case s.has("{"):
		v.kind = table
		s.list("{", "}", func() { s.pair(v, depth+1) })
	default:
		s.bare()
	}
	v.val = span{start, s.pos}
	return v
}

// list reads comma-separated items between two brackets.
func (s *scanner) list(open, end string, item func()) {
	s.take(open)
	for {
		s.blank()
		if s.bad || s.has(end) {
			break
		}
		item()
		s.blank()
		if !s.has(",") {
			break
		}
		s.pos++
	}
	s.take(end)
}

// bare skips a number, boolean or date, which may hold one blank.
func (s *scanner) bare() {
	start := s.pos
	for s.pos < len(s.text) && !strings.ContainsRune(",]}#\r\n", rune(s.text[s.pos])) {
		s.pos++
	}
	s.pos = start + len(strings.TrimRight(s.text[start:s.pos], " \t"))
	s.bad = s.bad || s.pos == start
}

// quoted skips a string that begins and ends with quote and returns its inside.
func (s *scanner) quoted(quote string, escapes bool) string {
	s.take(quote)
	start := s.pos
	for s.pos < len(s.text) && !s.bad {
		c := s.text[s.pos]
		switch {
		case escapes && c == '\\':
			s.pos = min(s.pos+2, len(s.text))
		case s.has(quote):
			end := s.pos
			s.pos += len(quote)
			// A multi-line string may end in up to two quotes of its own.
			for i := 0; len(quote) == 3 && i < 2 && s.peek() == quote[0]; i++ {
				s.pos++
			}
			return s.text[start:end]
		case c == '\n' && len(quote) == 1:
			s.bad = true
		default:
			s.pos++
		}
	}
	s.bad = true
	return ""
}

// escapes of one character in a TOML basic string.
var escapes = map[byte]string{
	'b': "\b", 't': "\t", 'n': "\n", 'f': "\f", 'r': "\r", 'e': "\x1b", '"': `"`, '\\': `\`,
}

// unescape resolves the escapes of a quoted key.
func unescape(in string) string {
	if !strings.Contains(in, `\`) {
		return in
	}
	var b strings.Builder
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' || i+1 == len(in) {
			b.WriteByte(in[i])
			continue
		}
		i++
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[in[i]]
		if digits == 0 {
			b.WriteString(escapes[in[i]])
			continue
		}
		r := rune(0)
		for ; digits > 0 && i+1 < len(in); digits-- {
			i++
			r = r<<4 | hexDigit(in[i])
		}
		if !utf8.ValidRune(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

func hexDigit(c byte) rune {
	if i := strings.IndexByte("0123456789abcdef", c|0x20); i >= 0 {
		return rune(i)
	}
	return 0
}
