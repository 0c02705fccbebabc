package openslo

import (
	"fmt"
	"strconv"
	"strings"

	"slosim/internal/config"
	"slosim/sim/slo"
)

// TOML writes objectives as [[slo]] tables of an experiment.
func TOML(list []SLO) string {
	var b strings.Builder
	for i := range list {
		s := &list[i]
		line := func(key, value string, given bool) {
			if given {
				fmt.Fprintf(&b, "%s = %s\n", key, value)
			}
		}
		names := func(list []string) string { return config.Texts.Format(list) }
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("[[slo]]\n")
		if s.Method == Timeslices {
			fmt.Fprintf(&b, "# Timeslices in OpenSLO: slices of %s are good when %g of their events are.\n", config.SpanText(s.SliceWindow), s.SliceTarget)
		}
		line("name", strconv.Quote(s.Name), true)
		line("class", strconv.Quote(s.Class), true)
		line("only", names(s.Only), len(s.Only) > 0)
		line("exclude", names(s.Exclude), len(s.Exclude) > 0)
		line("metric", strconv.Quote(string(s.Metric)), true)
		line("threshold", config.Span.Format(s.Objective.Threshold), s.Objective.Threshold > 0 && s.Metric != slo.Availability && s.Metric != slo.Goodput)
		line("all", limits(s.All), s.Metric == slo.Goodput)
		line("objective", config.Share.Format(s.Target), true)
		line("min_prompt", strconv.Itoa(int(s.MinPrompt)), s.MinPrompt > 0)
		line("max_prompt", strconv.Itoa(int(s.MaxPrompt)), s.MaxPrompt > 0)
		line("window", config.Span.Format(s.Window), true)
		line("window_kind", `"rolling"`, s.Rolling)
		line("spent", config.Share.Format(s.Spent), s.Spent > 0)
		p := s.Policy
		line("policy", fmt.Sprintf("{ warn = %s, freeze = %s, stop = %s }", config.Share.Format(p.Warn/100), config.Share.Format(p.Freeze/100), config.Share.Format(p.Stop/100)), p != slo.Policy{})
		if s.Adaptive != nil {
			line("adaptive", adaptiveTOML(s.Adaptive), true)
		}
		line("min_events", strconv.FormatInt(s.MinEvents, 10), s.MinEvents > 0)
		var skips []string
		for _, k := range s.Skip {
			skips = append(skips, k+` = "skip"`)
		}
		line("count", "{ "+strings.Join(skips, ", ")+" }", len(skips) > 0)
		var alerts []string
		for _, a := range s.Alerts {
			alerts = append(alerts, fmt.Sprintf("\n  { long = %s, short = %s, factor = %s, severity = %q },", config.Span.Format(a.Long), config.Span.Format(a.Short), number(a.Factor), a.Severity))
		}
		line("alerts", "["+strings.Join(alerts, "")+"\n]", len(alerts) > 0)
	}
	return b.String()
}

func limits(l slo.Limits) string {
	var parts []string
	if l.TTFT > 0 {
		parts = append(parts, "ttft = "+config.Span.Format(l.TTFT))
	}
	if l.TPOT > 0 {
		parts = append(parts, "tpot = "+config.Span.Format(l.TPOT))
	}
	if l.E2E > 0 {
		parts = append(parts, "e2e = "+config.Span.Format(l.E2E))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
