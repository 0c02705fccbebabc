package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"slosim/sim"
	"slosim/sim/stats"
)

// tableView is a table of the page.
type tableView struct {
	Head  []cell
	Rows  [][]cell
	Notes []string
}

// cell is a table cell: text, or a number with its interval, or bars.
type cell struct {
	Text   string
	Sub    string // small, below
	Num    bool   // aligned right
	Strong bool
	Bars   []barPart
	shade  Shade
}

// Style is the shade behind the cell, for a style attribute.
func (c cell) Style() template.CSS {
	if c.shade.Colour == "" {
		return ""
	}
	return template.CSS(fmt.Sprintf("background:color-mix(in srgb,var(%s) %.0f%%,transparent);padding-left:6px", c.shade.Colour, 100*c.shade.Share))
}

// barPart is a piece of a stacked bar, in percent of its width.
type barPart struct {
	Width  float64
	Colour string // CSS custom property
	Name   string
}

// Paint is the part's colour for a style attribute.
func (b barPart) Paint() template.CSS { return paint(b.Colour) }

func text(s string) cell { return cell{Text: s} }
func num(s string) cell  { return cell{Text: s, Num: true} }

// estimated writes a time with its interval below.
func estimated(e stats.Estimate) cell {
	sc := timeScale(e.V)
	c := cell{Text: sc.value(e), Sub: sc.interval(e), Num: true}
	if e.Thin && c.Text != none {
		c.Text += " *"
	}
	return c
}

// phaseView holds the tables of one class.
type phaseView struct {
	Class    string // "" when there is only one
	Latency  *tableView
	Stages   *tableView
	Outcomes *tableView
}

// phaseViews are the tables per class, phase and cohort.
func (s *story) phaseViews() []phaseView {
	var names []string
	seen := map[string]bool{}
	for i := range s.r.Phases {
		for _, c := range s.r.Phases[i].Classes {
			if !seen[c.Class] {
				seen[c.Class] = true
				names = append(names, c.Class)
			}
		}
	}
	var out []phaseView
	for _, name := range names {
		v := s.phaseView(name)
		if len(names) > 1 {
			v.Class = clean(name)
		}
		out = append(out, v)
	}
	return out
}

func (s *story) phaseView(class string) phaseView {
	latency := &tableView{Head: []cell{text("phase"), text("cohort"), num("requests"), num("TTFT P50"), num("TTFT P90"), num("TTFT P99"), text("mean TTFT by stage"), num("TPOT P50"), num("TPOT P99"), num("E2E P50"), num("E2E P99")}}
	stages := &tableView{Head: []cell{text("phase"), text("cohort"), num("network"), num("queue"), num("prefill"), num("publish"), num("= TTFT mean"), num("decode")}}
	outcomes := &tableView{Head: []cell{text("phase"), text("cohort"), num("ok"), num("rejected"), num("timed out"), num("failed"), num("undecided, late"), num("undecided, young"), num("retries"), num("given up for good"), num("prompt mean"), num("prompt P99"), num("output mean"), num("output P99")}}
	longest := s.longestMean(class)
	thin, never, relative := false, false, 0.0
	for i := range s.r.Phases {
		p := &s.r.Phases[i]
		first := true
		for j := range p.Classes {
			c := &p.Classes[j]
			if c.Class != class || redundant(p, c) {
				continue
			}
			lead := []cell{{Strong: true}, text(clean(c.Cohort))}
			if first {
				lead[0].Text, lead[0].Sub = clean(p.Name), s.label(p.From)+" to "+s.label(p.To)
			}
			first = false
			p99 := estimated(c.TTFT.P99)
			p99.Strong = true
			if math.IsInf(c.TTFT.P99.V, 1) && c.Answered.P99.R > 0 {
				p99.Sub, never = "answered: "+seconds(c.Answered.P99), true
			}
			latency.Rows = append(latency.Rows, append(lead, num(count(c.N)), estimated(c.TTFT.P50), estimated(c.TTFT.P90), p99,
				cell{Bars: stageBars(&c.Stages, longest)}, estimated(c.TPOT.P50), estimated(c.TPOT.P99), estimated(c.E2E.P50), estimated(c.E2E.P99)))
			stages.Rows = append(stages.Rows, append(lead, estimated(c.Stages.Network), estimated(c.Stages.Queue), estimated(c.Stages.Prefill),
				estimated(c.Stages.Publish), estimated(c.TTFT.Mean), estimated(c.Stages.Decode)))
			outcomes.Rows = append(outcomes.Rows, append(lead, outcomeCells(c)...))
			thin = thin || c.TTFT.P99.Thin || c.TPOT.P99.Thin || c.E2E.P99.Thin
			relative = max(relative, c.TTFT.RelError)
		}
	}
	latency.Notes = s.tableNotes(thin, never, relative)
	return phaseView{Latency: latency, Stages: stages, Outcomes: outcomes}
}

func (s *story) tableNotes(thin, never bool, relative float64) []string {
	notes := []string{"Values with their 95 % interval over replications; requests are counted over all of them."}
	if len(s.r.Seeds) == 1 {
		notes[0] = s.oneReplication()
	}
	if thin {
		notes = append(notes, "* from fewer than 1,000 requests in a replication.")
	}
	if never {
		notes = append(notes, "“never”: more requests than the quantile allows were not answered within the run; below it the quantile of the answered ones.")
	}
	if relative > 0 {
		notes = append(notes, "Some quantiles come from a histogram with a relative error of at most "+share(relative)+".")
	}
	return notes
}

func outcomeCells(c *sim.ClassPhase) []cell {
	o := c.Outcomes
	var out []cell
	for _, n := range []int64{o.OK, o.Rejected, o.TimedOut, o.Failed, o.Late, o.Young, o.Retries, o.Lost} {
		out = append(out, num(count(n)))
	}
	for _, e := range []stats.Estimate{c.Prompt.Mean, c.Prompt.P99, c.Output.Mean, c.Output.P99} {
		out = append(out, cell{Text: inTokens.value(e), Sub: inTokens.interval(e), Num: true})
	}
	return out
}

// longestMean is the greatest mean TTFT of a class over phases and cohorts: the
// full width of its stage bars.
func (s *story) longestMean(class string) float64 {
	top := 0.0
	for i := range s.r.Phases {
		for j := range s.r.Phases[i].Classes {
			c := &s.r.Phases[i].Classes[j]
			if v := stageValues(&c.Stages); c.Class == class {
				top = max(top, v[0]+v[1]+v[2]+v[3])
			}
		}
	}
	return top
}

func stageBars(s *sim.Stages, longest float64) []barPart {
	if !(longest > 0) {
		return nil
	}
	var out []barPart
	for i, v := range stageValues(s) {
		if v > 0 {
			out = append(out, barPart{Width: math.Round(1000*v/longest) / 10, Colour: "--" + ttftStages[i], Name: ttftStages[i] + " " + plainAt(v)})
		}
	}
	return out
}

// poolTable lists what each pool is and did.
func (s *story) poolTable() *tableView {
	if len(s.r.Pools) == 0 {
		return nil
	}
	t := &tableView{Head: []cell{text("pool"), num("replicas"), num("peak load"), num("busy"), num("KV peak"), num("preemptions"), num("ITL P99"), num("SM clock"), num("hottest"), num("power per GPU"), num("energy"), num("GPU hours"), num("per month")}}
	hits, links := s.prefixHits(), s.usesLinks()
	if links {
		t.Head = append(t.Head, num("KV link in use"))
	}
	if hits {
		t.Head = append(t.Head, num("prefix hits"))
	}
	for i := range s.r.Pools {
		p := &s.r.Pools[i]
		plainUnit := func(unit string, e stats.Estimate) cell {
			sc := scale{1, unit}
			return cell{Text: sc.value(e), Sub: sc.interval(e), Num: true}
		}
		minimum := ""
		if p.ClockMinMHz > 0 {
			minimum = "least " + number(p.ClockMinMHz, 0)
		}
		row := []cell{
			{Text: clean(p.Name), Sub: plural(p.GPUs, "GPU"), Strong: true}, num(count(p.Replicas)),
			{Text: peakLoad(p), Sub: loadNote(p), Num: true}, {Text: inPercent.value(p.Busy), Sub: inPercent.interval(capped(p.Busy)), Num: true},
			{Text: share(p.KVPeak), Sub: "of " + count(p.KVBlocks) + " blocks", Num: true}, plainUnit("", p.Preemptions), {Text: lastITL(p), Sub: medianITL(p), Num: true},
			{Text: scale{1, " MHz"}.value(p.ClockMHz), Sub: minimum, Num: true}, num(degrees(p.TempMaxC)), plainUnit(" W", p.PowerW),
			num(kilowattHours(p.EnergyKWh)), num(number(p.GPUHours, 0)), num(perMonth(p)),
		}
		if links {
			row = append(row, cell{Text: inPercent.value(p.LinkUse), Sub: inPercent.interval(capped(p.LinkUse)), Num: true})
		}
		if hits {
			found := cell{Text: inPercent.value(p.PrefixHit), Sub: inPercent.interval(capped(p.PrefixHit)), Num: true}
			if p.PrefixLoaded.V > 0 {
				found.Sub = strings.TrimPrefix(found.Sub+", "+inPercent.value(p.PrefixLoaded)+" from host memory", ", ")
			}
			row = append(row, found)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{"Peak load is the highest rate of the last phase ÷ the rate at which its mix saturates the pool. Busy is the share of time a step runs: near 100 % from light load on, and no measure of utilisation.",
		"ITL is the time between two tokens of a stream, token by token, in the last phase: its tail shows stalls that TPOT averages away. Rows that were preempted in between are not followed."}
	return t
}

// medianITL is a pool's median inter-token latency in the last phase.
func medianITL(p *sim.PoolResult) string {
	if len(p.ITL) == 0 || p.ITL[len(p.ITL)-1].P50.R == 0 {
		return ""
	}
	return "median " + seconds(p.ITL[len(p.ITL)-1].P50)
}

// usesLinks reports whether any pool sends KV to another.
func (s *story) usesLinks() bool {
	return slices.ContainsFunc(s.r.Pools, func(p sim.PoolResult) bool { return p.LinkUse.V > 0 })
}

// prefixHits reports whether any pool's prefix cache was of use.
func (s *story) prefixHits() bool {
	return slices.ContainsFunc(s.r.Pools, func(p sim.PoolResult) bool { return p.PrefixHit.V > 0 })
}

func kilowattHours(v float64) string {
	if v == 0 || math.IsNaN(v) {
		return none
	}
	return number(v, decimals(v, 0)) + " kWh"
}

// perMonth is a pool's price for 30 days, where it has one.
func perMonth(p *sim.PoolResult) string {
	if p.USDPerMonth == 0 {
		return none
	}
	return usd(p.USDPerMonth)
}

// peakLoad is the highest load of the last phase, where the pool's traffic has a
// closed form to tell it.
func peakLoad(p *sim.PoolResult) string {
	if p.PeakLoad == 0 {
		return none
	}
	return share(p.PeakLoad)
}

// loadNote writes the peak load of each phase: "before 22 %, after 83 %".
func loadNote(p *sim.PoolResult) string {
	var parts []string
	if len(p.Load) < 2 {
		return ""
	}
	for _, l := range p.Load {
		if q := l.PeakRate / l.Saturation; q > 0 && !math.IsInf(q, 0) {
			parts = append(parts, fmt.Sprintf("%s %s", short(l.Phase, 20), share(q)))
		}
	}
	return strings.Join(parts, ", ")
}
