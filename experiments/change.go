package experiments

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/workloads"
)

// Cohort names that reports use for all requests and for those in no cohort.
const (
	cohortAll      = "all"
	cohortExisting = "existing"
)

// changes reads all [[change]] tables and checks them against each other.
func (l *loader) changes(tables []*config.Table) {
	type read struct {
		t *config.Table
		c workloads.Change
	}
	var all []read
	end := clock.Duration(-1)
	for _, t := range tables {
		before := l.doc.Failures()
		c := l.change(t)
		l.e.Changes = append(l.e.Changes, c)
		if over := max(c.At+c.Ramp, c.Until); over > end {
			end, l.lastChange = over, t
		}
		if l.doc.Failures() == before {
			all = append(all, read{t, c})
		}
	}
	for i, a := range all {
		share := a.c.Share
		for _, b := range all[:i] {
			if b.c.Class == a.c.Class {
				share += b.c.Share
			}
			same := a.c.At == b.c.At && a.c.Ramp == b.c.Ramp
			if a.c.At < b.c.At+b.c.Ramp && b.c.At < a.c.At+a.c.Ramp && !same {
				a.t.Errorf("at", "", "start it when that ramp has ended, or give both the same at and ramp",
					"the ramp of change %q (%s + %s) overlaps that of change %q (%s + %s): numbers are reported per phase, and phases must not overlap",
					a.c.Name, config.SpanText(a.c.At), config.SpanText(a.c.Ramp), b.c.Name, config.SpanText(b.c.At), config.SpanText(b.c.Ramp))
			}
		}
		if share > 1+1e-12 {
			a.t.Errorf("share", "together at most 100%", "", "the changes of class %q up to %q move %s of its requests", a.c.Class, a.c.Name, config.Share.Format(share))
		}
	}
	slices.SortStableFunc(l.e.Changes, func(a, b workloads.Change) int { return int(min(max(a.At-b.At, -1), 1)) })
}

// change reads one [[change]] table.
func (l *loader) change(t *config.Table) workloads.Change {
	c := workloads.Change{RateFactor: 1}
	c.Name = config.Read(t, "name", config.Text, config.Required, config.Example[string](`"feature"`),
		config.Where(func(s string) bool { return s != "" && s != cohortAll && s != cohortExisting && len(s) <= 100 },
			"cannot name a cohort", `1 to 100 characters; "all" and "existing" stand for the other cohorts in reports`, ""))
	class := l.knownClass(t)
	c.At = config.Read(t, "at", config.Span, config.Required, config.Example[clock.Duration](`"32h"`))
	l.rollOut(t, &c)
	if class != nil {
		c.Class = class.Name
		c.RateFactor = rateFactor(t, class)
	} else {
		t.Know("rate")
	}
	for _, length := range []struct {
		key string
		to  **workloads.Dist
	}{{"prompt", &c.Prompt}, {"output", &c.Output}} {
		if t.Has(length.key) {
			d := dist(t, length.key, tokens, 1)
			*length.to = &d
		}
		t.Know(length.key)
	}
	c.OutputCap = int32(config.Read(t, "output_cap", config.WholeTokens, config.Default(0, "no cap"), config.Example[int]("512"), config.Between(0, int(maxTokens))))
	if c.OutputCap > 0 && class != nil && class.Trace == nil { // the closed forms see it too
		capped := class.Output
		if c.Output != nil {
			capped = *c.Output
		}
		if capped.Kind == "fixed" {
			capped.Mean = min(capped.Mean, float64(c.OutputCap))
		} else if most := float64(c.OutputCap); capped.Max == 0 || capped.Max > most {
			capped.Max, capped.Min = most, min(capped.Min, most)
		}
		c.Output = &capped
	}
	if t.Has("system_prompt") {
		s := system(t)
		c.System = &s
	} else {
		t.Know("system_prompt")
	}
	if t.Has("prefix_hit") {
		h := hit(t, system(t))
		c.Hit = &h
	} else {
		t.Know("prefix_hit")
	}
	l.checkChange(t, c)
	return c
}

// rollOut reads how a change comes into force, and whether it goes again.
func (l *loader) rollOut(t *config.Table, c *workloads.Change) {
	if t.Has("canary") {
		stages := config.Read(t, "canary", shareList)
		every := config.Read(t, "every", config.Span, config.Required, config.Note[clock.Duration]("from one share to the next"), config.Example[clock.Duration](`"1h"`), config.Between(clock.Second, maxSpan))
		for i, share := range stages {
			c.Steps = append(c.Steps, workloads.Step{After: clock.Duration(i) * every, Progress: share / stages[len(stages)-1]})
			c.Share = share
		}
		c.Ramp = clock.Duration(max(0, len(stages)-1)) * every
		forbid(t, "canary", "its shares say how the change comes into force", "ramp", "share")
	} else {
		t.Know("canary")
		forbid(t, "", `every belongs to canary = ["1%", "10%", "100%"]`, "every")
		c.Ramp = config.Read(t, "ramp", config.Span, config.Default(clock.Duration(0), "at once"), config.Example[clock.Duration](`"1h"`))
		c.Share = config.Read(t, "share", config.Share, config.Default(0.0, "no request changes its lengths"), config.Between(0.0, 1))
	}
	if !t.Has("rollback") {
		t.Know("rollback")
		return
	}
	c.Until = config.Read(t, "rollback", config.Span, config.Example[clock.Duration](`"50h"`))
	if t.Has("at") && c.Until <= c.At {
		t.Errorf("rollback", "more than at, "+config.SpanText(c.At), "", "rollback = %s does not come after the change", config.SpanText(c.Until))
	}
}

// shareList is the stages of a canary.
var shareList = config.Unit[[]float64]{
	Name: "a list of shares", Allowed: "shares that rise, the last at most 100%", Example: `["1%", "10%", "50%", "100%"]`,
	Parse: func(v any) ([]float64, error) {
		list, ok := v.([]any)
		if !ok || len(list) == 0 || len(list) > 1000 {
			return nil, errors.New("is no list of shares")
		}
		var out []float64
		for i, e := range list {
			share, err := config.Share.Parse(e)
			if err != nil || !(share > 0 && share <= 1) {
				return nil, fmt.Errorf("has no share from 0%% to 100%% at position %d", i+1)
			}
			if i > 0 && share <= out[i-1] {
				return nil, errors.New("does not rise: for a way back give rollback")
			}
			out = append(out, share)
		}
		return out, nil
	},
	Format: func(list []float64) string {
		text := make([]string, len(list))
		for i, s := range list {
			text[i] = config.Share.Format(s)
		}
		return "[" + strings.Join(text, ", ") + "]"
	},
}

// checkChange reports a change that changes nothing or comes too late.
func (l *loader) checkChange(t *config.Table, c workloads.Change) {
	lengths := c.Prompt != nil || c.Output != nil || c.OutputCap > 0 || c.System != nil || c.Hit != nil
	switch {
	case !t.Has("rate") && !lengths:
		t.Errorf("name", "rate, prompt, output", `for example: prompt = { dist = "lognormal", mean = 20000, p99 = 60000 }`, "change %q changes nothing", c.Name)
	case lengths && !t.Has("share") && !t.Has("canary"):
		t.Errorf("share", "more than 0%, at most 100%", `for example: share = "30%"`, "change %q gives new lengths but no share of the requests that have them", c.Name)
	}
	end := l.e.Duration
	if end == 0 || !t.Has("at") {
		return
	}
	switch span := config.SpanText; {
	case c.At <= 0:
		t.Errorf("at", "more than 0s", "put the new values into [[traffic]] if they hold from the start", "a change at %s leaves no time before it to compare with", span(c.At))
	case c.At >= end:
		t.Errorf("at", "less than the duration, "+span(end), "let it start earlier, or run longer: --set duration="+hours(2*c.At), "change %q starts at %s, but the run ends at %s", c.Name, span(c.At), span(end))
	case c.Until >= end:
		t.Errorf("rollback", "less than "+span(end), "roll back earlier, or run longer: --set duration="+hours(2*c.Until), "change %q is rolled back at %s, but the run ends at %s", c.Name, span(c.Until), span(end))
	case c.At+c.Ramp >= end:
		t.Errorf("ramp", "less than "+span(end-c.At), "shorten the ramp, or run longer", "the ramp of change %q ends at %s, but the run ends at %s: nothing would be measured after it", c.Name, span(c.At+c.Ramp), span(end))
	}
}

// hours rounds a duration up to whole hours, as text.
func hours(d clock.Duration) string {
	return fmt.Sprintf("%dh", (d+clock.Hour-1)/clock.Hour)
}

// knownClass reads the key "class" and returns the class of that name, or nil
// after an error.
func (l *loader) knownClass(t *config.Table) *workloads.Class {
	before := l.doc.Failures()
	class := config.Read(t, "class", config.Text, config.Required, config.Example[string](`"chat"`))
	if l.doc.Failures() > before {
		return nil
	}
	for i := range l.e.Traffic {
		if l.e.Traffic[i].Name == class {
			return &l.e.Traffic[i]
		}
	}
	unknown(t, "class", class, "no [[traffic]] has this class", l.classNames())
	return nil
}

func (l *loader) classNames() []string {
	names := make([]string, len(l.e.Traffic))
	for i, c := range l.e.Traffic {
		names[i] = c.Name
	}
	return names
}

// unknown reports a name that refers to nothing.
func unknown(t *config.Table, key, name, why string, names []string) {
	allowed := ""
	for i, n := range names {
		if i > 0 {
			allowed += ", "
		}
		allowed += fmt.Sprintf("%q", n)
	}
	try := ""
	if near := config.Nearest(name, names); near != "" {
		try = fmt.Sprintf("did you mean %q?", near)
	}
	t.Errorf(key, allowed, try, "%s = %q: %s", key, name, why)
}

// rateFactor reads the new rate of a class as a multiple of the old one.
func rateFactor(t *config.Table, class *workloads.Class) float64 {
	if !t.Has("rate") {
		t.Know("rate")
		t.Doc().Note(t.Path("rate"), `"1x"`, "default", "the rate does not change")
		return 1
	}
	switch {
	case class.Trace != nil:
		t.Know("rate")
		t.Errorf("rate", "", "", "class %q replays a trace: its rate is that of the file", class.Name)
	case class.Client.Users > 0:
		t.Know("rate")
		t.Errorf("rate", "", "", "class %q is a closed loop of users: it has no rate of its own", class.Name)
	default:
		c := config.Read(t, "rate", rateOrFactor)
		if c.mean > 0 && class.Rate.Mean > 0 {
			return c.mean / class.Rate.Mean
		}
		return c.factor
	}
	return 1
}
