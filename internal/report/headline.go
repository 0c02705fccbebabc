package report

import (
	"fmt"
	"math"
	"strings"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// headline is the verdict as one sentence: what broke or held, when, by how
// much, and what becomes of the budget. Where the deciding quantile does not
// tell what the verdict tells, it is the verdict's own reason.
func (s *story) headline() string {
	reason := clean(s.r.Verdict.Reason)
	now := s.row(s.last, s.class, s.cohort)
	if s.focus == nil || now == nil || s.r.Partial {
		return reason
	}
	h, ok := decides(s.focus.Objective)
	if !ok || s.focus.Adaptive != nil {
		return reason
	}
	e, threshold := h.Of(now), s.focus.Threshold.Seconds()
	over := e.V > threshold
	if e.R == 0 || math.IsInf(e.V, 1) || over != (s.focus.Status == sim.Missed) || s.focus.Status == sim.Undecided {
		return reason
	}
	text := h.Name + " keeps its " + plainSeconds(threshold) + " SLO"
	if over {
		text = h.Name + " breaks its " + plainSeconds(threshold) + " SLO" + s.broken(threshold)
	}
	text += ": " + h.scale(e.V).full(e)
	if then := s.row(s.first, s.class, s.cohort); then != nil && h.Of(then).R > 0 {
		before := h.Of(then)
		text += " against " + h.scale(before.V).value(before) + " " + clean(s.first.Name)
	}
	return text + s.budgetClause()
}

// broken says how long after a change the focus class's P99 passed the
// threshold; "" where the series does not show it.
func (s *story) broken(threshold float64) string {
	data := s.series(s.class, s.cohort)
	if name, _ := quantileFor(s.focus.Target); data == nil || s.focus.Metric != slo.TTFT || name != "P99" {
		return ""
	}
	i := firstOver(data.TTFTP99, threshold)
	if i < 0 {
		return ""
	}
	if after := s.lastChange(s.r.Series.T[i]); after != "" {
		return " " + after
	}
	return ""
}

// budgetClause is the sentence's end: the day on which the budget is gone, or
// what is spent at the end of its window.
func (s *story) budgetClause() string {
	b := &s.focus.Budget
	if m := mark(b, 100); m != nil && m.Reached {
		return "; the " + span(s.focus.Window) + " budget is gone on " + s.day(m.At)
	}
	if b.Projected.R > 0 {
		return "; projected to spend " + inPercent.value(b.Projected) + " of the " + span(s.focus.Window) + " budget"
	}
	return ""
}

// crossing is the title of a chart with a promise: when the series passes it for
// two windows in a row, and where it peaks.
func (s *story) crossing(name string, values []float64, threshold float64) string {
	if i := firstOver(values, threshold); i >= 0 {
		if over := shareOver(values[i:], threshold); over < steadilyOver {
			return s.oftenOver(name, values, threshold)
		}
		t := s.r.Series.T[i]
		text := fmt.Sprintf("%s passes %s on %s", name, plainSeconds(threshold), s.label(t))
		if c := s.lastChange(t); c != "" {
			text += ", " + c
		}
		return text + s.worst(values, "it peaks at")
	}
	if argmax(values) < 0 && infinite(values) == 0 {
		return name + " over time"
	}
	if infinite(values) > 0 || largest(values) > threshold {
		return fmt.Sprintf("%s passes %s in single windows only", name, plainSeconds(threshold)) + s.worst(values, "its peak is")
	}
	return fmt.Sprintf("%s stays below %s", name, plainSeconds(threshold)) + strings.Replace(s.worst(values, "its peak is"), ";", ":", 1)
}

// worst is a title's end: where a P99 peaks or, where it lies among requests
// without an answer, in how many windows.
func (s *story) worst(values []float64, peaks string) string {
	if n := infinite(values); n > 0 {
		windows := fmt.Sprintf("%s of %s", count(n), plural(known(values), "window"))
		if n == known(values) {
			windows = "every window"
		}
		return "; in " + windows + " more than 1 % of the requests were rejected or never answered"
	}
	if k := argmax(values); k >= 0 {
		return fmt.Sprintf("; %s %s (%s)", peaks, plainAt(values[k]), s.label(s.r.Series.T[k]))
	}
	return ""
}

// known counts the windows with data.
func known(values []float64) int {
	n := 0
	for _, v := range values {
		if !math.IsNaN(v) {
			n++
		}
	}
	return n
}

// steadilyOver is the share of windows, from the first crossing on, from which a
// title speaks of a crossing rather than of a share of the time.
const steadilyOver = .9

// oftenOver is the title for a series that passes its threshold now and then.
func (s *story) oftenOver(name string, values []float64, threshold float64) string {
	return fmt.Sprintf("%s is over %s for %s of the time", name, plainSeconds(threshold), share(shareOver(values, threshold))) + s.worst(values, "its peak is")
}

// shareOver is the share of the windows with data that exceed the threshold.
func shareOver(values []float64, threshold float64) float64 {
	over, n := 0, 0
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		n++
		if v > threshold {
			over++
		}
	}
	return float64(over) / float64(max(1, n))
}

// firstOver is the first window from which the series exceeds the threshold in
// two windows in a row; −1 = never.
func firstOver(values []float64, threshold float64) int {
	for i, v := range values {
		if v > threshold && (i+1 == len(values) || values[i+1] > threshold) {
			return i
		}
	}
	return -1
}

// infinite counts the windows whose quantile lies among requests never answered.
func infinite(values []float64) int {
	n := 0
	for _, v := range values {
		if math.IsInf(v, 1) {
			n++
		}
	}
	return n
}

// peak is the title of a chart without a promise.
func (s *story) peak(name string, values []float64) string {
	if n := infinite(values); n > 0 {
		return name + " over time" + s.worst(values, "")
	}
	k := argmax(values)
	if k < 0 {
		return name + " over time"
	}
	return fmt.Sprintf("%s peaks at %s (%s)", name, plainAt(values[k]), s.label(s.r.Series.T[k]))
}

// lastChange writes how long before t the last change of the class began.
func (s *story) lastChange(t clock.Time) string {
	text := ""
	for _, c := range s.r.Experiment.Changes {
		if after := t.Sub(clock.Time(c.At)); c.Class == s.class && after >= 0 {
			text = "as " + short(c.Name, 40) + " starts"
			if after > 0 {
				text = span(after) + " after " + short(c.Name, 40) + " starts"
			}
		}
	}
	return text
}
