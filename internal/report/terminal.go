package report

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"golang.org/x/term"

	"slosim/sim"
)

// Widths of the terminal summary: of a terminal that does not tell its own, the
// narrowest, and the widest lines that still read well.
const (
	defaultWidth = 100
	leastWidth   = 60
	mostWidth    = 140
)

// mostLabel bounds the labels of the numbers, which hold names of phases.
const mostLabel = 40

// maxPhaseRows bounds the table of phases; all of it is in summary.json.
const maxPhaseRows = 30

// Terminal prints the run's summary: the verdict first, then what it rests on.
// It uses colour only if w is a terminal and NO_COLOR is not set.
func Terminal(w io.Writer, r *sim.Result, m Meta) {
	t := &terminal{story: newStory(r, m), w: w, width: defaultWidth}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			t.width = max(leastWidth, min(mostWidth, columns))
		}
	}
	t.print()
}

type terminal struct {
	*story
	w      io.Writer
	width  int
	colour bool
}

func (t *terminal) print() {
	t.verdict()
	t.numbers()
	t.objectives()
	t.sold()
	t.stages()
	t.phases()
	t.pools()
	t.cluster()
	t.why()
	t.notes()
}

// The styles of the summary.
const (
	bold   = "1"
	dim    = "2"
	red    = "1;31"
	green  = "1;32"
	yellow = "1;33"
)

func (t *terminal) style(code, text string) string {
	if !t.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func statusStyle(s sim.Status) string {
	return map[sim.Status]string{sim.Met: green, sim.Missed: red, sim.Undecided: yellow}[s]
}

// paragraph prints text wrapped, with a lead before the first line and the rest
// aligned below it.
func (t *terminal) paragraph(lead, leadStyle, text string) {
	indent := strings.Repeat(" ", width(lead))
	for i, line := range wrap(clean(text), t.width-width(lead)) {
		if i == 0 {
			fmt.Fprintln(t.w, t.style(leadStyle, lead)+line)
		} else {
			fmt.Fprintln(t.w, indent+line)
		}
	}
}

func (t *terminal) section(name string) { fmt.Fprintf(t.w, "\n%s\n", t.style(bold, name)) }

func (t *terminal) verdict() {
	v, head, lead := t.r.Verdict, t.headline(), ""
	if v.Status != "" {
		lead = string(v.Status) + "  "
	}
	if head == "" {
		head = t.title()
	} else {
		defer t.paragraph("", dim, t.title())
	}
	t.paragraph(lead, statusStyle(v.Status), head)
	if t.r.Partial {
		t.paragraph("partial: ", yellow, "interrupted; covers "+t.covered())
	}
}

func (t *terminal) numbers() {
	facts := t.facts()
	if len(facts) == 0 {
		return
	}
	fmt.Fprintln(t.w)
	wide := 0
	most := min(mostLabel, t.width-26) // an interval keeps its line
	for _, f := range facts {
		wide = max(wide, width(fit(f.Label, most)))
	}
	for _, f := range facts {
		label := fit(f.Label, most)
		lead := "  " + label + strings.Repeat(" ", wide-width(label)) + "  "
		parts := []string{strings.TrimSpace(f.Value + " " + f.Interval)}
		for _, p := range []string{f.Extra, f.Change, f.Basis} {
			if p != "" {
				parts = append(parts, p)
			}
		}
		t.paragraph(lead, dim, strings.Join(parts, " · "))
	}
}

func (t *terminal) objectives() {
	if len(t.r.SLOs) == 0 {
		return
	}
	t.section("SLOs")
	table := textTable{columns: []textColumn{{"objective", true, 0}, {"status", true, 0}, {"attained", false, 1}, {"target", false, 2},
		{"budget spent", false, 3}, {"50 %", true, 6}, {"80 %", true, 5}, {"100 %", true, 4}, {"idle floor", false, 7}, {"alerts", false, 8}}}
	for i := range t.r.SLOs {
		o := &t.r.SLOs[i]
		floor := none
		if o.IdleFloor.R > 0 {
			floor = share(o.IdleFloor.V)
		}
		table.add(fit(clean(o.Name), t.width*2/5), string(o.Status), attained(o.Attained), target(o.Target), inPercent.full(gone(o)),
			t.markCell(o, 50), t.markCell(o, 80), t.markCell(o, 100), floor, count(len(o.Alerts)))
	}
	table.write(t.w, t.width, t.paintStatus(func(i int) sim.Status { return t.r.SLOs[i].Status }, 1))
	for i := range t.r.SLOs {
		if o := &t.r.SLOs[i]; o.Spent > 0 {
			t.paragraph("  ", dim, clean(o.Name)+": budget spent "+spent(o)+".")
		}
	}
}

// paintStatus dims the head and colours the status column.
func (t *terminal) paintStatus(status func(row int) sim.Status, column int) func(int, int, string) string {
	return func(row, col int, text string) string {
		switch {
		case row < 0:
			return t.style(dim, text)
		case col == column:
			return t.style(statusStyle(status(row)), text)
		}
		return text
	}
}

// markCell writes when a share of the budget is gone: "day 4, 19:00".
func (t *terminal) markCell(o *sim.SLO, percent float64) string {
	m := mark(&o.Budget, percent)
	switch {
	case goneBefore(o, percent):
		return "before the run"
	case m != nil && m.Reached:
		return m.At.DayHour(t.r.Experiment.Start)
	case o.Budget.Needs != "":
		return "?"
	}
	return "not reached"
}

func (t *terminal) phases() {
	if len(t.r.Phases) == 0 {
		return
	}
	t.section("Phases")
	table := textTable{columns: []textColumn{{"phase", true, 0}, {"class", true, 6}, {"cohort", true, 0}, {"requests", false, 3}, {"TTFT P50", false, 4},
		{"P90", false, 7}, {"P99", false, 0}, {"TPOT P50", false, 5}, {"E2E P99", false, 8}, {"not ok", false, 2}}}
	if len(t.classes()) > 1 {
		table.columns[1].drop = 1
	}
	thin, left := false, 0
	for i := range t.r.Phases {
		p := &t.r.Phases[i]
		for j := range p.Classes {
			c := &p.Classes[j]
			if redundant(p, c) {
				continue
			}
			if len(table.rows) == maxPhaseRows {
				left++
				continue
			}
			p99 := seconds(c.TTFT.P99)
			if c.TTFT.P99.Thin && p99 != none {
				p99, thin = p99+"*", true
			}
			table.add(clean(p.Name), clean(c.Class), clean(c.Cohort), count(c.N), timeScale(c.TTFT.P50.V).value(c.TTFT.P50),
				timeScale(c.TTFT.P90.V).value(c.TTFT.P90), p99, timeScale(c.TPOT.P50.V).value(c.TPOT.P50),
				timeScale(c.E2E.P99.V).value(c.E2E.P99), count(notOK(c.Outcomes)))
		}
	}
	table.write(t.w, t.width, t.paintStatus(nil, -1))
	if left > 0 {
		t.paragraph("  ", dim, plural(left, "more row")+" in summary.json.")
	}
	if thin {
		t.paragraph("  * ", dim, "P99 from fewer than 1,000 requests in a replication.")
	}
	if len(t.r.Seeds) == 1 {
		t.paragraph("  ", dim, t.oneReplication())
	}
}

// notOK counts the requests that were decided and not answered in full.
func notOK(o sim.Outcomes) int64 { return o.Rejected + o.TimedOut + o.Failed + o.Late }

func (t *terminal) pools() {
	if len(t.r.Pools) == 0 {
		return
	}
	t.section("Pools")
	table := textTable{columns: []textColumn{{"pool", true, 0}, {"replicas", false, 1}, {"peak load", false, 0}, {"busy", false, 3}, {"KV peak", false, 2},
		{"preemptions", false, 4}, {"ITL P99", false, 3}, {"SM clock", false, 5}, {"hottest", false, 6}, {"W/GPU", false, 7}, {"per month", false, 2}}}
	hits, links := t.prefixHits(), t.usesLinks()
	if links {
		table.columns = append(table.columns, textColumn{"KV link", false, 3})
	}
	if hits {
		table.columns = append(table.columns, textColumn{"prefix hits", false, 3})
	}
	for i := range t.r.Pools {
		p := &t.r.Pools[i]
		cells := []string{clean(p.Name), count(p.Replicas), peakLoad(p), inPercent.value(p.Busy), share(p.KVPeak), scale{1, ""}.value(p.Preemptions), lastITL(p),
			scale{1, " MHz"}.value(p.ClockMHz), degrees(p.TempMaxC), scale{1, " W"}.value(p.PowerW), perMonth(p)}
		if links {
			cells = append(cells, inPercent.value(p.LinkUse))
		}
		if hits {
			found := inPercent.value(p.PrefixHit)
			if p.PrefixLoaded.V > 0 {
				found += " (" + inPercent.value(p.PrefixLoaded) + " from host)"
			}
			cells = append(cells, found)
		}
		table.add(cells...)
	}
	table.write(t.w, t.width, t.paintStatus(nil, -1))
}

// lastITL is a pool's P99 of the inter-token latency in the last phase.
func lastITL(p *sim.PoolResult) string {
	if len(p.ITL) == 0 || p.ITL[len(p.ITL)-1].P99.R == 0 {
		return none
	}
	return seconds(p.ITL[len(p.ITL)-1].P99)
}

func degrees(c float64) string {
	if c == 0 || math.IsNaN(c) {
		return none
	}
	return number(c, 0) + " °C"
}

func (t *terminal) why() {
	if t.focus == nil || t.focus.BlameText == "" && idleFloor(t.focus) == "" && len(t.r.Findings) == 0 {
		return
	}
	t.section("Why")
	t.paragraph("  ", "", t.blame())
	t.paragraph("  ", "", idleFloor(t.focus))
	for _, f := range t.r.Findings {
		t.paragraph("  - ", "", ended(f.Title)+" "+sentence(f.Evidence))
	}
}

func (t *terminal) notes() {
	fmt.Fprintln(t.w)
	for _, text := range t.r.Warnings {
		t.paragraph("note: ", yellow, text)
	}
	if len(t.r.NotModelled) > 0 {
		t.paragraph("not modelled: ", dim, strings.Join(t.r.NotModelled, "; "))
	}
	t.paragraph("replay: ", dim, t.m.Command)
}
