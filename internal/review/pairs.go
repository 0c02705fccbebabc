package review

import (
	"context"
	"fmt"
	"slices"
)

// pairable are the levers on the launch itself that are tried together with one of the
// platform's: each asks less of product or business when the other helps.
var pairable = []string{"shorter prompts", "smaller exposure"}

// pairs tries, beside the platform lever that restores most without more GPUs, how
// much less the launch has to give. found is what single levers gave, in the order of
// list.
func (s *search) pairs(ctx context.Context, list []candidate, found []*Lever) []*Lever {
	best := -1
	for i, l := range found {
		if l == nil || l.Asks != "platform" || l.GPUs > 0 || len(l.Restores) == 0 || l.pass {
			continue // one that mends everything needs no other
		}
		if best < 0 || len(l.Restores) > len(found[best].Restores) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	var out []*Lever
	for i := range list {
		if single := found[i]; slices.Contains(pairable, list[i].name) && single != nil {
			c := both(&list[best], found[best].dose, &list[i])
			if single.pass { // more than it takes alone is of no use
				c.doses = single.dose
			}
			l, err := s.dose(ctx, &c)
			switch {
			case err != nil:
				s.untried(c.name, err)
			case single.pass && l.dose >= single.dose:
				s.untried(c.name, fmt.Errorf("%s needs the same dose alone", list[i].name))
			case len(l.Restores) <= len(found[best].Restores) && !l.pass:
				s.untried(c.name, fmt.Errorf("with less than it takes alone they restore no more than %s does", list[best].name))
			default:
				l.rank = len(list) + len(out)
				out = append(out, l)
			}
		}
	}
	return out
}

// both is lever a at its dose, and b in all of its own.
func both(a *candidate, dose int, b *candidate) candidate {
	return candidate{name: a.name + " and " + b.name, asks: b.asks, doses: b.doses, edit: func(t tree, d int) (string, error) {
		first, err := a.edit(t, dose)
		if err != nil {
			return "", err
		}
		second, err := b.edit(t, d)
		return first + "; " + second, err
	}}
}
