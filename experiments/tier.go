package experiments

import (
	"slices"

	"slosim/internal/config"
	"slosim/sim/slo"
)

// tier reads what a class is sold as: tenants of one tier are classes of their own.
func (l *loader) tier(t *config.Table, class string) {
	if tier := config.Read(t, "tier", config.Text, config.Default("", "none: for objectives of a tier"), config.Example[string](`"enterprise"`)); tier != "" {
		l.tiers = append(l.tiers, [2]string{tier, class})
	}
}

// objectives reads one [[slo]] table: an objective of a class, or of a tier, which is
// one of each of its classes.
func (l *loader) objectives(t *config.Table) []slo.Objective {
	o := l.objective(t)
	if !t.Has("tier") {
		t.Know("tier")
		return []slo.Objective{o}
	}
	tier := config.Read(t, "tier", config.Text, config.Required, config.Note[string]("an objective of each of its classes"), config.Example[string](`"enterprise"`))
	if t.Has("class") {
		t.Errorf("tier", "", "remove one of the two", "an objective is of a class or of a tier, not of both")
	}
	var classes, names []string
	for _, x := range l.tiers {
		if x[0] == tier {
			classes = append(classes, x[1])
		}
		if !slices.Contains(names, x[0]) {
			names = append(names, x[0])
		}
	}
	if len(classes) == 0 {
		unknown(t, "tier", tier, "no [[traffic]] is of this tier", names)
		return []slo.Objective{o}
	}
	var out []slo.Objective
	for _, class := range classes {
		x := o
		x.Class = class
		if len(classes) > 1 {
			x.Name += ", " + class
		}
		out = append(out, x)
	}
	return out
}
