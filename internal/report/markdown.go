package report

import (
	"fmt"
	"strings"

	"slosim/sim"
	"slosim/sim/stats"
)

// summaryMarkdown renders summary.md: what a pull request needs, on one screen.
func summaryMarkdown(s *story) ([]byte, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("### %s: %s", s.r.Verdict.Status, markdown(s.title()))
	line("")
	line("%s", markdown(s.headline()))
	if s.r.Partial {
		line("")
		line("**Partial**: interrupted; covers %s, until %s.", s.covered(), s.moment(s.r.End))
	}
	s.markdownPhases(line)
	s.markdownSLOs(line)
	s.markdownSold(line)
	s.markdownStages(line)
	s.markdownCluster(line)
	if s.focus != nil && s.focus.BlameText != "" {
		line("")
		line("%s %s", markdown(s.blame()), markdown(idleFloor(s.focus)))
	}
	line("")
	for _, f := range s.facts() {
		if strings.HasPrefix(f.Label, "Cost") {
			line("%s: **%s** (%s).", f.Label, markdown(f.Value), markdown(f.Basis))
		}
	}
	if notes := s.notes(); len(notes) > 0 {
		line("")
		for _, n := range notes {
			line("- Note: %s", markdown(n))
		}
	}
	line("")
	line("Replay: `%s` · version %s · seed %d · %s%s", strings.ReplaceAll(clean(s.m.Command), "`", "'"), markdown(s.m.Version),
		s.r.Experiment.Seed, plural(len(s.r.Seeds), "replication"), hashNote(s.hash()))
	return []byte(b.String()), nil
}

// title is the experiment's title, or its name where it has none.
func (s *story) title() string {
	if t := clean(s.r.Experiment.Title); t != "" {
		return t
	}
	return clean(s.r.Experiment.Name)
}

// markdownPhases compares the first and the last phase of the focus class.
func (s *story) markdownPhases(line func(string, ...any)) {
	if s.last == nil {
		return
	}
	phases := []*sim.Phase{s.last}
	if s.first != nil {
		phases = []*sim.Phase{s.first, s.last}
	}
	head, rule := "| "+markdown(s.class)+" |", "|---|"
	for _, p := range phases {
		head, rule = head+" "+markdown(p.Name)+" |", rule+"--:|"
	}
	line("\n%s\n%s", head, rule)
	for _, m := range []struct {
		name string
		of   func(*sim.ClassPhase) stats.Estimate
	}{
		{"TTFT P50", func(c *sim.ClassPhase) stats.Estimate { return c.TTFT.P50 }},
		{"TTFT P99", func(c *sim.ClassPhase) stats.Estimate { return c.TTFT.P99 }},
		{"TPOT P50", func(c *sim.ClassPhase) stats.Estimate { return c.TPOT.P50 }},
		{"E2E P99", func(c *sim.ClassPhase) stats.Estimate { return c.E2E.P99 }},
	} {
		cells := ""
		for _, p := range phases {
			cells += " " + seconds(m.of(s.row(p, s.class, everyone))) + " |"
		}
		line("| %s |%s", m.name, cells)
	}
	cells := ""
	for _, p := range phases {
		cells += " " + count(s.row(p, s.class, everyone).N) + " |"
	}
	line("| requests, %s |%s", plural(len(s.r.Seeds), "replication"), cells)
}

// markdownSLOs lists the objectives with their budgets.
func (s *story) markdownSLOs(line func(string, ...any)) {
	if len(s.r.SLOs) == 0 {
		return
	}
	line("\n| SLO | status | attained | target | budget spent | exhausted |\n|---|---|--:|--:|--:|---|")
	for i := range s.r.SLOs {
		o := &s.r.SLOs[i]
		line("| %s | %s | %s | %s | %s | %s |", markdown(o.Name), o.Status, attained(o.Attained), target(o.Target),
			spent(o), markdown(s.exhaustion(&o.Budget, o.Window)))
	}
}

func hashNote(hash string) string {
	if len(hash) < 12 {
		return ""
	}
	return " · experiment " + hash[:12]
}

// markdown makes text from an experiment inert in Markdown: no markup, no
// mention, no table cell of its own.
func markdown(text string) string {
	var b strings.Builder
	for _, r := range clean(text) {
		switch r {
		case '\\', '`', '*', '_', '[', ']', '|', '#', '~':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '@':
			b.WriteString("&#64;")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
