package config

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Widths beyond which the columns of Explain are no longer aligned.
const (
	maxPathWidth  = 48
	maxValueWidth = 36
)

// Explain writes the settings, one a line: path = value  # origin, note. With a
// key it writes that setting and all below it; an unknown key is an error that
// names the nearest.
func (p Provenance) Explain(w io.Writer, key string) error {
	entries := p.under(key)
	if len(entries) == 0 {
		return p.unknownKey(key)
	}
	pathWidth, valueWidth := 0, 0
	for _, e := range entries {
		pathWidth = max(pathWidth, min(utf8.RuneCountInString(e.Path), maxPathWidth))
		valueWidth = max(valueWidth, min(utf8.RuneCountInString(e.Value), maxValueWidth))
	}
	last := ""
	for i, e := range entries {
		if g := group(e.Path); i > 0 && g != last {
			fmt.Fprintln(w)
		}
		last = group(e.Path)
		why := e.Origin
		if e.Note != "" {
			why += ", " + e.Note
		}
		line := fmt.Sprintf("%-*s = %-*s  # %s", pathWidth, e.Path, valueWidth, e.Value, why)
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// group returns the table of a path that Explain keeps together: pool.main of
// pool.main.engine.kind.
func group(path string) string {
	parts, _, problem := splitSet(path + "=")
	if problem != "" || len(parts) < 3 {
		return ""
	}
	return joinPath(parts[:2])
}

// under returns the entries at and below a path; all for "".
func (p Provenance) under(key string) []Entry {
	var out []Entry
	key = normalPath(key)
	for _, e := range p.Entries {
		if key == "" || e.Path == key || strings.HasPrefix(e.Path, key+".") {
			out = append(out, e)
		}
	}
	return out
}

// normalPath drops and adds quotes so that slo.chat TTFT and slo."chat TTFT" are
// the same path.
func normalPath(key string) string {
	if key == "" {
		return ""
	}
	parts, _, problem := splitSet(key + "=")
	if problem != "" {
		return key
	}
	return joinPath(parts)
}

func (p Provenance) unknownKey(key string) error {
	seen := map[string]bool{}
	var paths []string
	for _, e := range p.Entries {
		for i := range e.Path {
			if e.Path[i] == '.' && !seen[e.Path[:i]] {
				seen[e.Path[:i]] = true
				paths = append(paths, e.Path[:i])
			}
		}
		paths = append(paths, e.Path)
	}
	e := &Error{File: p.File, Key: key, Msg: fmt.Sprintf("there is no setting %q", key), Try: "without a key, explain lists them all"}
	if near := Nearest(normalPath(key), paths); near != "" {
		e.Try = fmt.Sprintf("did you mean %s?", near)
	} else if near := endingIn(key, paths); near != "" {
		e.Try = fmt.Sprintf("did you mean %s?", near)
	}
	return Errors{e}
}

// endingIn returns the first path whose last part is the key, or "".
func endingIn(key string, paths []string) string {
	for _, path := range paths {
		if strings.HasSuffix(path, "."+key) {
			return path
		}
	}
	return ""
}
