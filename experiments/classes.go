package experiments

import (
	"fmt"
	"slices"
	"strings"

	"slosim/sim"
)

// assignClasses settles which pool serves which class: each class exactly one,
// not counting prefill pools, which have one each of their own (assignPrompts).
// A pool without classes takes those that no other pool names; if it is the only
// pool, its list stays empty, which stands for all.
func (l *loader) assignClasses() {
	l.assign("served", false)
	if slices.ContainsFunc(l.e.Pools, func(p sim.Pool) bool { return p.Role == prefill }) {
		l.assign("prefilled", true)
	}
	l.assignPrompts()
}

// assign settles the classes of the prefill pools or of all others; verb says
// what these do.
func (l *loader) assign(verb string, prefills bool) {
	owner := map[string]string{} // class → pool
	catchAll, pools := -1, 0
	for i, p := range l.e.Pools {
		if (p.Role == prefill) != prefills || p.Standby {
			continue
		}
		if ranged(&p) { // it may share its classes with others
			for _, c := range p.Classes {
				if !l.hasClass(c) {
					unknown(l.pools[i], "classes", c, "no [[traffic]] has this class", l.classNames())
				}
			}
			continue
		}
		pools++
		t := l.pools[i]
		if len(p.Classes) == 0 {
			if catchAll >= 0 {
				t.Errorf("classes", l.quotedClasses(), "give each pool its classes, for example: classes = [\"chat\"]",
					"pools %q and %q both have no classes: each class is %s by one pool", l.e.Pools[catchAll].Name, p.Name, verb)
			}
			catchAll = i
			continue
		}
		for _, c := range p.Classes {
			if !l.hasClass(c) {
				unknown(t, "classes", c, "no [[traffic]] has this class", l.classNames())
			} else if other, taken := owner[c]; taken {
				t.Errorf("classes", "", "remove it from one of the two", "class %q is %s by pool %q already: each class is %s by one pool", c, verb, other, verb)
			}
			owner[c] = p.Name
		}
	}
	var rest []string // for the pool without classes
	for i, c := range l.e.Traffic {
		if owner[c.Name] != "" || c.Name == "" || !prefills && l.inRange(c.Name) && catchAll < 0 || prefills && !l.decoded(c.Name) {
			continue
		}
		rest = append(rest, c.Name)
		if catchAll < 0 && !prefills && len(l.e.Pools) > 0 {
			l.classes[i].Errorf("class", "", fmt.Sprintf("add it to the classes of a pool, for example: classes = [%q]", c.Name), "class %q is served by no pool", c.Name)
		}
	}
	if catchAll >= 0 && (pools > 1 || prefills && len(rest) < len(l.e.Traffic)) {
		if len(rest) == 0 && pools > 1 {
			l.pools[catchAll].Errorf("name", "", "give it classes, or remove it", "pool %q has nothing to serve: other pools name every class", l.e.Pools[catchAll].Name)
		}
		l.e.Pools[catchAll].Classes = rest
	}
}

// inRange tells whether pools with prompt ranges serve a class.
func (l *loader) inRange(class string) bool {
	return slices.ContainsFunc(l.e.Pools, func(p sim.Pool) bool {
		return ranged(&p) && (len(p.Classes) == 0 || slices.Contains(p.Classes, class))
	})
}

// decoded tells whether a decode pool serves the class.
func (l *loader) decoded(class string) bool {
	return slices.ContainsFunc(l.e.Pools, func(p sim.Pool) bool { return p.Role == decode && slices.Contains(l.served(&p), class) })
}

func (l *loader) hasClass(name string) bool {
	for _, c := range l.e.Traffic {
		if c.Name == name {
			return true
		}
	}
	return false
}

func (l *loader) quotedClasses() string {
	return `"` + strings.Join(l.classNames(), `", "`) + `"`
}
