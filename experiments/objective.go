package experiments

import (
	"fmt"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// outcomes that an objective may leave out, in the order of reports.
var outcomes = []string{"rejected", "failed", "timeout", "undecided"}

// objective reads one [[slo]] table.
func (l *loader) objective(t *config.Table) slo.Objective {
	o := slo.Objective{Name: name(t, "name", `"chat TTFT"`)}
	if t.Has("tier") {
		t.Know("class")
		forbid(t, "", "cohorts are those of one class: give the objective a class", "only", "exclude")
		t.Know("only", "exclude")
	} else if class := l.knownClass(t); class != nil {
		o.Class = class.Name
		o.Only, o.Exclude = l.cohorts(t, class.Name)
	} else {
		t.Know("only", "exclude")
	}
	o.Metric = slo.Metric(config.Read(t, "metric", config.OneOf(metricNames()...), config.Required))
	thresholds(t, &o)
	promptBand(t, &o)
	o.Target = target(t)
	o.Window = config.Read(t, "window", config.Span, config.Default(30*clock.Day, "of the error budget, from t = 0 on"),
		config.Example[clock.Duration](`"30d"`), config.Between(clock.Hour, maxSpan))
	o.Spent = config.Read(t, "spent", config.Share, config.Default(0.0, "of the budget at t = 0"), config.Example[float64](`"20%"`), config.Between(0.0, 1))
	budgetRules(t, &o)
	adaptive(t, &o)
	count := t.Sub("count", `count = { rejected = "skip" }`)
	for _, outcome := range outcomes {
		if config.Read(count, outcome, config.OneOf("bad", "skip"), config.Default("bad", "")) == "skip" {
			o.Skip = append(o.Skip, outcome)
		}
	}
	return o
}

// cohorts reads only and exclude: cohorts of the class.
func (l *loader) cohorts(t *config.Table, class string) (only, exclude []string) {
	names := []string{}
	for _, c := range l.e.Changes {
		if c.Class == class {
			names = append(names, c.Name)
		}
	}
	read := func(key, note string) []string {
		list := config.Read(t, key, config.Texts, config.Default([]string(nil), note), config.Example[[]string](`"feature"`))
		for _, n := range list {
			known := n == cohortExisting && key == "only"
			for _, c := range names {
				known = known || c == n
			}
			if !known {
				unknown(t, key, n, fmt.Sprintf("class %q has no cohort of this name", class), append(names, cohortExisting))
			}
		}
		return list
	}
	only = read("only", "every cohort counts")
	exclude = read("exclude", "every cohort counts")
	if len(only) > 0 && len(exclude) > 0 {
		t.Errorf("exclude", "", "remove one of the two", "only and exclude say the same thing in two ways")
	}
	// "existing" is what no change has moved: the same as excluding all changes.
	if len(only) == 1 && only[0] == cohortExisting {
		return nil, names
	}
	for _, n := range only {
		if n == cohortExisting {
			t.Errorf("only", "", `list the cohorts that do not count under exclude instead`, `"existing" must stand alone`)
		}
	}
	return only, exclude
}
