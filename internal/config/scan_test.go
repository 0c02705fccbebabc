package config

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

// TestScannerFindsEveryKey shows, as a table, where the scanner sees each key
// and its value.
func TestScannerFindsEveryKey(t *testing.T) {
	text := strings.Join([]string{
		`title = "a # b" # comment`,
		`"quoted key" = 'it''s'`,
		`a.b . c = 1`,
		``,
		`[[pool]] # first`,
		`name = "main"`,
		`engine = { kind = "vllm", deep = { x = [1, 2] } }`,
		"\tclasses = [ # tab before",
		`  "a", # one`,
		`  "b",`,
		`]`,
		`[pool.thermal]`,
		`ambient = 30`,
		`[[pool]]`,
		`name = """`,
		`two = "lines"`,
		`"""`,
		`at = 1979-05-27 07:32:00`,
	}, "\n")
	want := `
title             1:1   1:9   "a # b"
quoted key        2:1   2:16  'it'
a                 3:1   3:1   a
a.b               3:3   3:3   b
a.b.c             3:7   3:11  1
pool              5:1   5:1   [[pool]]
pool.0            5:1   5:1   [[pool]]
pool.0.name       6:1   6:8   "main"
pool.0.engine     7:1   7:10  { kind = "vllm", deep = { x = [1, 2] } }
pool.0.engine.kind 7:12  7:19  "vllm"
pool.0.engine.deep 7:27  7:34  { x = [1, 2] }
pool.0.engine.deep.x 7:36  7:40  [1, 2]
pool.0.engine.deep.x.0 7:41  7:41  1
pool.0.engine.deep.x.1 7:44  7:44  2
pool.0.classes    8:2   8:12  [ # tab before
pool.0.classes.0  9:3   9:3   "a"
pool.0.classes.1  10:3  10:3  "b"
pool.0.thermal    12:1  12:1  [pool.thermal]
pool.0.thermal.ambient 13:1  13:11 30
pool.1            14:1  14:1  [[pool]]
pool.1.name       15:1  15:8  """
pool.1.at         18:1  18:6  1979-05-27 07:32:00
`
	// 'it''s' is two strings in TOML, so use a valid one.
	text = strings.Replace(text, `'it''s'`, `'it'`, 1)
	d := &Doc{text: text, lines: lineStarts(text)}
	var b strings.Builder
	b.WriteString("\n")
	walk("", scan(text), func(path string, n *node) {
		place := func(s span) string {
			var e Error
			d.locate(&e, s)
			return fmt.Sprintf("%d:%d", e.Line, e.Col)
		}
		value, _, _ := strings.Cut(text[n.val.start:n.val.end], "\n")
		fmt.Fprintf(&b, "%-17s %-5s %-5s %s\n", path, place(n.at), place(n.val), value)
	})
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// walk visits all nodes below n in their order.
func walk(path string, n *node, visit func(string, *node)) {
	step := func(part string, kid *node) {
		p := strings.TrimPrefix(path+"."+part, ".")
		visit(p, kid)
		walk(p, kid, visit)
	}
	for _, k := range n.keys {
		step(k, n.kids[k])
	}
	for i, e := range n.elems {
		step(fmt.Sprint(i), e)
	}
}

// paths lists every key and element of a decoded value.
func paths(prefix string, v any, out *[]string) {
	step := func(part string, kid any) {
		p := prefix + "\x00" + part
		*out = append(*out, p)
		paths(p, kid, out)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, kid := range v {
			step(k, kid)
		}
	case []map[string]any:
		for i, kid := range v {
			step(fmt.Sprint(i), kid)
		}
	case []any:
		for i, kid := range v {
			step(fmt.Sprint(i), kid)
		}
	}
}

// scannedPaths lists every key and element that the scanner found, as paths
// does.
func scannedPaths(prefix string, n *node, out *[]string) {
	step := func(part string, kid *node) {
		p := prefix + "\x00" + part
		*out = append(*out, p)
		scannedPaths(p, kid, out)
	}
	for k, kid := range n.kids {
		step(k, kid)
	}
	for i, kid := range n.elems {
		step(fmt.Sprint(i), kid)
	}
}

// FuzzScan proves that the scanner never panics, that all places lie within the
// text, and that it finds exactly the keys that the TOML library decodes.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		"", "a = 1", "a.b = 1\na.c = 2", "[a]\nb = 1\n[a.c]\nd = 2", "[[a]]\nb = 1\n[[a]]\n[a.c]\nd = 2\n[[a.e]]\nf = 1",
		"x = { a = 1, b.c = [1, { d = 2 }] }", "x = \"\"\"\na\\\"\"\"\" # \"\"\"\n\"\"\"\ny = '''it's''''", "\"a.b\" = 1\n'c d' = 2\n\"\\u00e9\\n\" = 3",
		"a = [\n 1, # x\n 2,\n]\n", "d = 1979-05-27 07:32:00Z\nt = 07:32:00", "\xef\xbb\xbfa = 1", "a = 1\r\nb = 2\r\n", "x = {\n a = 1, # c\n b = 2,\n}",
		"a = \"#\" # b = 2", "a = -inf", "[ a . \"b c\" ]\nd = 1", "x = \"\"\"a\"\"\"\"\"\nb = 1", "a = [[1, 2], []]\n[b]\n[b.c]\n", "= 1", "[[a]", "a = {", "a = [", "a = \"", "[a]]\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root := scan(text)
		walk("", root, func(path string, n *node) {
			for _, s := range []span{n.at, n.val} {
				if s.start < 0 || s.end < s.start || s.end > len(text) {
					t.Fatalf("%q lies at %v of %d bytes", path, s, len(text))
				}
			}
		})
		var values map[string]any
		if _, err := toml.Decode(text, &values); err != nil {
			return
		}
		var want, got []string
		paths("", values, &want)
		scannedPaths("", root, &got)
		sort.Strings(want)
		sort.Strings(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keys of %q (- library, + scanner):\n%s", text, diff)
		}
	})
}
