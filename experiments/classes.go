package experiments

import (
	"fmt"
	"strings"
)

// assignClasses settles which pool serves which class: each class exactly one.
// A pool without classes takes those that no other pool names; if it is the only
// pool, its list stays empty, which stands for all.
func (l *loader) assignClasses() {
	owner := map[string]string{} // class → pool
	catchAll := -1
	for i, p := range l.e.Pools {
		t := l.pools[i]
		if len(p.Classes) == 0 {
			if catchAll >= 0 {
				t.Errorf("classes", l.quotedClasses(), "give each pool its classes, for example: classes = [\"chat\"]",
					"pools %q and %q both have no classes: each class is served by one pool", l.e.Pools[catchAll].Name, p.Name)
			}
			catchAll = i
			continue
		}
		for _, c := range p.Classes {
			if !l.hasClass(c) {
				unknown(t, "classes", c, "no [[traffic]] has this class", l.classNames())
			} else if other, taken := owner[c]; taken {
				t.Errorf("classes", "", "remove it from one of the two", "class %q is served by pool %q already: each class is served by one pool", c, other)
			}
			owner[c] = p.Name
		}
	}
	var rest []string
	for i, c := range l.e.Traffic {
		if owner[c.Name] != "" || c.Name == "" {
			continue
		}
		rest = append(rest, c.Name)
		if catchAll < 0 && len(l.e.Pools) > 0 {
			l.classes[i].Errorf("class", "", fmt.Sprintf("add it to the classes of a pool, for example: classes = [%q]", c.Name), "class %q is served by no pool", c.Name)
		}
	}
	if catchAll >= 0 && len(l.e.Pools) > 1 {
		if len(rest) == 0 {
			l.pools[catchAll].Errorf("name", "", "give it classes, or remove it", "pool %q has nothing to serve: other pools name every class", l.e.Pools[catchAll].Name)
		}
		l.e.Pools[catchAll].Classes = rest
	}
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
