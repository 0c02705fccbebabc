package models

import (
	"fmt"
	"slices"
	"strings"
)

// UnknownNameError says that a name is not in the catalogue, or stands for
// several entries.
type UnknownNameError struct {
	Kind      string   // "model" or "GPU"
	Name      string   // what was asked for
	Ambiguous bool     // the name starts several entries
	Near      []string // those entries, or the ones spelt most alike
	All       []string // every name of the kind, sorted
}

func (e *UnknownNameError) Error() string {
	switch {
	case e.Ambiguous:
		return fmt.Sprintf("%s %q is ambiguous: %s", e.Kind, e.Name, strings.Join(e.Near, ", "))
	case len(e.Near) > 0:
		return fmt.Sprintf("unknown %s %q: did you mean %s?", e.Kind, e.Name, strings.Join(e.Near, " or "))
	}
	return fmt.Sprintf("unknown %s %q: the catalogue has %s", e.Kind, e.Name, strings.Join(e.All, ", "))
}

// find returns the item of that name or alias, else the only one whose name
// starts with it, up to a dash or not. Case does not matter.
func find[T any](kind, name string, items []T, namesOf func(T) (string, []string)) (T, error) {
	want := strings.ToLower(strings.TrimSpace(name))
	e := &UnknownNameError{Kind: kind, Name: name}
	var match, word T
	words := 0
	for _, it := range items {
		has, aliases := namesOf(it)
		if has == want || slices.Contains(aliases, want) {
			return it, nil
		}
		if want != "" && strings.HasPrefix(has, want) {
			match = it
			e.Near = append(e.Near, has)
			if has[len(want)] == '-' {
				word = it
				words++
			}
		}
		e.All = append(e.All, has)
	}
	switch {
	case len(e.Near) == 1:
		return match, nil
	case words == 1:
		return word, nil
	}
	if e.Ambiguous = len(e.Near) > 1; !e.Ambiguous {
		e.Near = nearest(want, e.All)
	}
	var zero T
	return zero, e
}

// nearest returns the names that start most like want, or are spelt most like
// it, if the edits between are at most a third of its length.
func nearest(want string, names []string) []string {
	var near []string
	best := len(want) / 3
	if best == 0 {
		return nil
	}
	for _, n := range names {
		d := min(edits(want, n), edits(want, n[:min(len(n), len(want))]))
		if d < best {
			best, near = d, nil
		}
		if d == best {
			near = append(near, n)
		}
	}
	return near
}

// edits is the Levenshtein distance between a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
