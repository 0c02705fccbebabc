package review

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"slosim/experiments"
	"slosim/sim"
)

// Source is the text of an experiment, from which levers make experiments of their
// own: what a review simulates is what it writes down.
type Source struct {
	Name string   // file name, for messages
	Dir  string   // that files named in the text are relative to
	Text string   // TOML
	Sets []string // overrides of the command line
}

// tree is an experiment's TOML as nested tables.
type tree map[string]any

// parse reads the text and applies the overrides.
func (s Source) parse() (tree, error) {
	var t tree
	if _, err := toml.Decode(s.Text, &t); err != nil {
		return nil, err
	}
	for _, set := range s.Sets {
		if err := t.set(set); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// set carries out an override that the loader has accepted already.
func (t tree) set(set string) error {
	path, value, _ := strings.Cut(set, "=")
	for strings.Count(path, `"`)%2 == 1 { // an equals sign inside of a quoted name
		head, rest, ok := strings.Cut(value, "=")
		if !ok {
			return fmt.Errorf("--set %s has no value", set)
		}
		path, value = path+"="+head, rest
	}
	var at any = map[string]any(t)
	parts := splitPath(path)
	for i, key := range parts {
		last := i == len(parts)-1
		switch x := at.(type) {
		case map[string]any:
			if last {
				x[key] = literal(value)
				return nil
			}
			if x[key] == nil {
				x[key] = map[string]any{}
			}
			at = x[key]
		case []map[string]any:
			found := named(x, key)
			if found == nil {
				return fmt.Errorf("--set %s: there is no table %q", set, key)
			}
			at = found
		default:
			return fmt.Errorf("--set %s leads into a single value", set)
		}
	}
	return nil
}

// splitPath cuts a dotted path whose parts may be quoted.
func splitPath(path string) []string {
	var out []string
	part, quoted := "", false
	for _, c := range strings.TrimSpace(path) {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '.' && !quoted:
			out, part = append(out, part), ""
		default:
			part += string(c)
		}
	}
	return append(out, part)
}

// literal reads a value as TOML, or else as text.
func literal(value string) any {
	var doc map[string]any
	if _, err := toml.Decode("v = "+value, &doc); err == nil && len(doc) == 1 {
		return doc["v"]
	}
	return strings.TrimSpace(value)
}

// named finds a table by its identifying key; nil when there is none.
func named(list []map[string]any, name string) map[string]any {
	for _, t := range list {
		for _, key := range []string{"name", "class"} {
			if id, ok := t[key]; ok {
				if id == name {
					return t
				}
				break
			}
		}
	}
	return nil
}

// table returns the table of that name in an array of tables; nil when there is none.
func (t tree) table(array, name string) map[string]any {
	list, _ := t[array].([]map[string]any)
	if array == "traffic" {
		for _, x := range list {
			if x["class"] == name {
				return x
			}
		}
		return nil
	}
	return named(list, name)
}

// clone copies a tree deeply.
func clone(v any) any {
	switch x := v.(type) {
	case tree:
		return tree(clone(map[string]any(x)).(map[string]any))
	case map[string]any:
		x = maps.Clone(x)
		for k := range x {
			x[k] = clone(x[k])
		}
		return x
	case []map[string]any:
		out := make([]map[string]any, len(x))
		for i := range x {
			out[i] = clone(x[i]).(map[string]any)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = clone(x[i])
		}
		return out
	}
	return v
}

// sub returns a table within a table, made if need be.
func sub(t map[string]any, key string) map[string]any {
	if x, ok := t[key].(map[string]any); ok {
		return x
	}
	x := map[string]any{}
	t[key] = x
	return x
}

// text writes the tree as an experiment file.
func (t tree) text(comment string) (string, error) {
	var b bytes.Buffer
	for _, line := range strings.Split(comment, "\n") {
		fmt.Fprintln(&b, strings.TrimRight("# "+line, " "))
	}
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	if err := enc.Encode(map[string]any(t)); err != nil {
		return "", err
	}
	return b.String(), nil
}

// absolute makes the trace files that it names independent of where it lies.
func (t tree) absolute(dir string) {
	list, _ := t["traffic"].([]map[string]any)
	for _, c := range list {
		trace, ok := c["trace"].(map[string]any)
		if !ok {
			continue
		}
		if file, ok := trace["file"].(string); ok && !filepath.IsAbs(file) {
			if path, err := filepath.Abs(filepath.Join(dir, file)); err == nil {
				trace["file"] = path
			}
		}
	}
}

// load resolves the tree.
func (s Source) load(t tree) (sim.Experiment, error) {
	text, err := t.text(s.Name)
	if err != nil {
		return sim.Experiment{}, err
	}
	e, _, err := experiments.Parse(s.Name, s.Dir, text)
	return e, err
}
