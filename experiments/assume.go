package experiments

import (
	"fmt"
	"slices"
)

// assumptions collects, in plain words, what has no citable source.
type assumptions struct{ list []string }

// add appends a sentence unless it is there already.
func (a *assumptions) add(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.list, text) {
		a.list = append(a.list, text)
	}
}
