package experiments

import (
	"slices"

	"slosim/internal/config"
	"slosim/sim"
)

// holds reads which changes error budgets may hold back; the objectives are known by
// now.
func (l *loader) holds(changes []*config.Table) {
	for _, t := range changes {
		by := config.Read(t, "gated_by", config.Texts, config.Default([]string(nil), "it starts whatever the budgets say"), config.Example[[]string](`"chat TTFT"`))
		essential := config.Read(t, "essential", config.Bool, config.Default(false, "with gated_by it waits while a budget is frozen; essential: only while one is gone"))
		if len(by) == 0 {
			if essential {
				t.Errorf("essential", "", "name the budget, for example: gated_by = \"chat TTFT\"", "nothing holds this change back: essential has no meaning without gated_by")
			}
			continue
		}
		h := sim.Hold{Change: t.Name("name"), Essential: essential}
		for i, name := range by {
			if l.sloNamed(t, "gated_by", name) != nil && !slices.Contains(by[:i], name) {
				h.SLOs = append(h.SLOs, name)
			}
		}
		for _, ch := range l.e.Changes {
			if ch.Name != h.Change || ch.RateFactor == 1 {
				continue
			}
			for _, c := range l.e.Traffic {
				if c.Name == ch.Class && !c.Rate.Renewal() {
					t.Errorf("gated_by", "", "use a rate without hawkes and without clients of its own, or a change without rate", "change %q alters the rate of class %q, whose arrivals depend on each other: they cannot be drawn anew when a budget holds the change back", ch.Name, ch.Class)
				}
			}
		}
		l.e.Holds = append(l.e.Holds, h)
	}
	slices.SortStableFunc(l.e.Holds, func(a, b sim.Hold) int { return l.changeIndex(a.Change) - l.changeIndex(b.Change) })
}

func (l *loader) changeIndex(name string) int {
	for i := range l.e.Changes {
		if l.e.Changes[i].Name == name {
			return i
		}
	}
	return len(l.e.Changes)
}
