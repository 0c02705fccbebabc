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
	tried := make([]*Lever, len(list))
	var jobs []func()
	for i := range list {
		single := found[i]
		if !slices.Contains(pairable, list[i].name) || single == nil {
			continue
		}
		jobs = append(jobs, func() { tried[i] = s.pair(ctx, &list[best], found[best], &list[i], single) })
	}
	inOrder(max(1, len(jobs)), jobs) // the lab decides how many run
	var out []*Lever
	for _, l := range tried {
		if l != nil {
			l.rank = len(list) + len(out)
			out = append(out, l)
		}
	}
	return out
}

// pair tries lever b beside a at its dose; nil when that gains nothing. l and single are
// what a and b gave alone.
func (s *search) pair(ctx context.Context, a *candidate, l *Lever, b *candidate, single *Lever) *Lever {
	c := both(a, l.dose, b)
	if single.pass { // more than it takes alone is of no use
		c.doses = single.dose
	}
	x, err := s.dose(ctx, &c)
	switch {
	case err != nil:
		s.untried(c.name, err)
	case single.pass && x.dose >= single.dose:
		s.untried(c.name, fmt.Errorf("%s needs the same dose alone", b.name))
	case len(x.Restores) <= len(l.Restores) && !x.pass:
		s.untried(c.name, fmt.Errorf("with less than it takes alone they restore no more than %s does", a.name))
	default:
		return x
	}
	return nil
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
