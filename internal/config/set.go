package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// apply carries out one --set. Unknown keys are found later, when the document
// is read; here only a path that leads nowhere is an error.
func (d *Doc) apply(i int, set string) {
	path, value, problem := splitSet(set)
	if problem != "" {
		d.setError(set, "", problem, "path=value", "for example: --set table.key=8")
		return
	}
	v, err := setValue(value)
	if err != nil {
		d.setError(set, joinPath(path), "not a valid value: "+err.Error(), "", `a list is written ["a", "b"], a table { a = 1, b = 2 }`)
		return
	}
	leaf := build(v, nil)
	leaf.mark(i + 1)
	last := len(path) - 1
	if parent := d.parent(i, set, path); parent != nil && d.mayReplace(set, path, parent, leaf) {
		if old := parent.kids[path[last]]; old != nil {
			leaf.at, leaf.val = old.at, old.val
		}
		parent.replace(path[last], leaf)
	}
}

// parent returns the table that holds the last key of the path, made if need be;
// nil after an error.
func (d *Doc) parent(i int, set string, path []string) *node {
	cur := d.root
	for depth, part := range path[:len(path)-1] {
		if cur.kind == array {
			if cur = d.element(set, cur, path, depth); cur == nil {
				return nil
			}
			continue
		}
		kid := cur.kids[part]
		if kid == nil {
			kid = &node{kind: table}
			kid.mark(i + 1)
			cur.put(part, kid)
		}
		if kid.kind == scalar {
			here := joinPath(path[:depth+1])
			d.setError(set, here, fmt.Sprintf("%s is a single value (%s), not a table", here, d.textOf(kid)), "", "set it whole: "+setArg(here, "..."))
			return nil
		}
		cur = kid
	}
	return cur
}

// mayReplace reports a --set that would replace a whole table.
func (d *Doc) mayReplace(set string, path []string, parent, leaf *node) bool {
	here := joinPath(path)
	if parent.kind == array {
		if e := d.element(set, parent, path, len(path)-1); e != nil {
			d.setError(set, here, here+" is a whole table", "", "name a key of it, for example: "+setArg(here+"."+firstOf(e.keys, "key"), "..."))
		}
		return false
	}
	old := parent.kids[path[len(path)-1]]
	if old != nil && old.kind == table && leaf.kind != table {
		d.setError(set, here, fmt.Sprintf("%s is a table with %s", here, quoteList(old.keys)), "",
			"set one of its keys, for example: "+setArg(here+"."+firstOf(old.keys, "key"), setText(set)))
		return false
	}
	return true
}

// element finds the table of an array that path[depth] names.
func (d *Doc) element(set string, list *node, path []string, depth int) *node {
	names := list.names()
	for i, name := range names {
		if name == path[depth] {
			return list.elems[i]
		}
	}
	if i, err := strconv.Atoi(path[depth]); err == nil && i >= 0 && i < len(names) && names[i] == "" {
		return list.elems[i]
	}
	what := joinPath(path[:depth])
	try := ""
	if near := Nearest(path[depth], names); near != "" {
		right := append(append(append([]string{}, path[:depth]...), near), path[depth+1:]...)
		try = "did you mean " + setArg(joinPath(right), setText(set)) + "?"
	}
	d.setError(set, joinPath(path[:depth+1]), fmt.Sprintf("no [[%s]] is named %q", what, path[depth]), quoteList(names), try)
	return nil
}

func (d *Doc) setError(set, key, msg, allowed, try string) {
	d.errs = append(d.errs, &Error{File: "--set " + set, Key: key, Msg: msg, Allowed: allowed, Try: try})
}

// mark says that a node and all below it come from --set number i.
func (n *node) mark(i int) {
	n.set = i
	for _, kid := range n.kids {
		kid.mark(i)
	}
	for _, e := range n.elems {
		e.mark(i)
	}
}

// splitSet parts "a.b.\"c d\"=value" into its path and value.
func splitSet(set string) (path []string, value, problem string) {
	var part strings.Builder
	quote := rune(0)
	for i, r := range set {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			part.WriteRune(r)
		case r == '"' || r == '\'':
			quote = r
		case r == '.' || r == '=':
			name := strings.TrimSpace(part.String())
			if name == "" {
				return nil, "", "the path has an empty part"
			}
			path = append(path, name)
			part.Reset()
			if r == '=' {
				return path, strings.TrimSpace(set[i+1:]), ""
			}
		default:
			part.WriteRune(r)
		}
	}
	return nil, "", "there is no \"=\""
}

// setText returns the text behind the "=" of a --set.
func setText(set string) string {
	_, value, _ := splitSet(set)
	return value
}

// setValue reads the value of a --set: TOML where it looks like TOML (numbers,
// true, false, quotes, lists, tables), plain text otherwise, so that no quotes
// are needed: 6/s, 10%, 2h, h100-sxm-80gb.
func setValue(text string) (any, error) {
	looks := text == "true" || text == "false"
	if !looks && text != "" {
		looks = strings.ContainsRune("\"'[{", rune(text[0]))
	}
	if !looks {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, "0123456789") {
			return f, nil
		}
		return text, nil
	}
	var doc map[string]any
	if _, err := toml.Decode("v = "+text, &doc); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return nil, errors.New(pe.Message)
		}
		return nil, err
	}
	if len(doc) != 1 {
		return nil, errors.New("more than one value")
	}
	return doc["v"], nil
}

// setArg writes a --set argument as a shell takes it.
func setArg(path, value string) string {
	arg := path + "=" + value
	if strings.ContainsAny(arg, " \"'[]{}*?&;()<>|$`\\") {
		arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return "--set " + arg
}

// corrected returns --set number i with the last part of the path wrong, which
// leads along it, replaced.
func (d *Doc) corrected(i int, wrong, right string) string {
	set := d.sets[i-1]
	parts, value, _ := splitSet(set)
	wrongParts, _, _ := splitSet(wrong + "=")
	if at := len(wrongParts) - 1; at < len(parts) {
		parts[at] = right
	}
	return setArg(joinPath(parts), value)
}

// joinPath writes a dotted path, quoting the parts that need it.
func joinPath(parts []string) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = quotePart(p)
	}
	return strings.Join(out, ".")
}

// quotePart quotes a part of a path that is no bare TOML key.
func quotePart(p string) string {
	for _, r := range p {
		if !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return strconv.Quote(p)
		}
	}
	return p
}

func quoteList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strconv.Quote(n)
	}
	return strings.Join(out, ", ")
}

func firstOf(names []string, otherwise string) string {
	if len(names) > 0 {
		return names[0]
	}
	return otherwise
}
