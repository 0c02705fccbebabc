package report

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"

	"slosim/sim"
	"slosim/sim/clock"
)

func TestTextsEndWithOneFullStop(t *testing.T) {
	for _, c := range []struct{ in, ended, sentence string }{
		{"waiting is the longest stage", "waiting is the longest stage.", "Waiting is the longest stage."},
		{"prompts are long. ", "prompts are long.", "Prompts are long."},
		{"so what...", "so what.", "So what."},
		{"why?", "why?", "Why?"},
		{"and so on…", "and so on…", "And so on…"},
		{"8.25 requests/s", "8.25 requests/s.", "8.25 requests/s."},
		{" . ", "", ""},
	} {
		if got := ended(c.in); got != c.ended {
			t.Errorf("ended(%q) = %q, want %q", c.in, got, c.ended)
		}
		if got := sentence(c.in); got != c.sentence {
			t.Errorf("sentence(%q) = %q, want %q", c.in, got, c.sentence)
		}
	}
}

func TestFindingsJoinTitleAndEvidence(t *testing.T) {
	f := fixtures()["prompt-growth"]
	f.result.Findings = []sim.Finding{{Title: "chat waits.", Evidence: "a problem of capacity."}, {Title: "Is it hot?", Evidence: "yes"}}
	var b bytes.Buffer
	Terminal(&b, f.result, f.meta)
	for _, want := range []string{"  - chat waits. A problem of capacity.\n", "  - Is it hot? Yes.\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	page := string(written(t, f)["report.html"])
	if want := "<b><bdi>chat waits.</bdi></b> <bdi>A problem of capacity.</bdi>"; !strings.Contains(page, want) {
		t.Errorf("the page has no %q", want)
	}
}

// TestLoadWithoutAClosedFormIsADash takes a pool whose traffic comes from a trace.
func TestLoadWithoutAClosedFormIsADash(t *testing.T) {
	f := fixtures()["prompt-growth"]
	p := &f.result.Pools[0]
	p.PeakLoad, p.SaturationRate, p.Load = 0, 0, []sim.PhaseLoad{{Phase: "before"}, {Phase: "after"}}
	var b bytes.Buffer
	Terminal(&b, f.result, f.meta)
	if !regexp.MustCompile(`main +4 +– `).MatchString(b.String()) {
		t.Errorf("no dash for the peak load in:\n%s", b.String())
	}
	s := newStory(f.result, f.meta)
	if got := s.poolTable().Rows[0][2]; got.Text != none || got.Sub != "" {
		t.Errorf("peak load on the page: %+v, want %q alone", got, none)
	}
	data, err := summaryJSON(s)
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Pools []struct {
			PeakLoad   *float64 `json:"peak_load"`
			Saturation *float64 `json:"saturation_per_s"`
		}
	}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if out.Pools[0].PeakLoad != nil || out.Pools[0].Saturation != nil {
		t.Errorf("summary.json has a load: %+v", out.Pools[0])
	}
}

// TestBudgetCountsWhatWasGoneBefore takes an objective with 60 % gone at t = 0.
func TestBudgetCountsWhatWasGoneBefore(t *testing.T) {
	f := fixtures()["one-replication"]
	o := &f.result.SLOs[0]
	o.Budget.Spent.V = .25
	s := newStory(f.result, f.meta)
	if got := gone(o).V; math.Abs(got-.85) > 1e-9 {
		t.Errorf("gone = %v, want 0.85", got)
	}
	if rest, ok := left(o); !ok || math.Abs(rest.V-.15) > 1e-9 {
		t.Errorf("left = %v, %v, want 0.15", rest.V, ok)
	}
	card := s.sloCard(o)
	if card.Bar.Before != 50 || card.Bar.Spent != 20.8 || card.Bar.Marks[0].When != "before the run" {
		t.Errorf("bar %+v, want 50 %% of its length before, 20.8 %% in the run, 50 %% passed before", card.Bar)
	}
	if want := "85.0 % of the budget is spent at the run's end, of it 60 % before the start."; card.Spent != want {
		t.Errorf("got %q, want %q", card.Spent, want)
	}
	c := s.burnDownChart(0)
	if at := c.t[0]; at != 0 || c.columns[0].Values[0] != 40 {
		t.Errorf("the burn-down begins at %v with %v %%, want 0 with 40 %%", at, c.columns[0].Values[0])
	}
	if o.Budget.Curve[1].T != clock.Time(clock.Hour) {
		t.Errorf("the curve's second point is at %v", o.Budget.Curve[1].T)
	}
}

func TestPromptChartSaysWhichLengthsAreSlow(t *testing.T) {
	gap := math.NaN()
	for _, c := range []struct {
		after, before []float64
		from          int
		threshold     float64
		want          string
	}{
		{[]float64{3, 3, 5}, []float64{.1, .2, gap}, 0, 2, "TTFT P99 is over 2 s at every prompt length, 3 s even for up to 250 tokens; before: at none"},
		{[]float64{1, 3, 5}, []float64{.1, .2, 2.5}, 3, 2, "TTFT P99 is over 2 s for prompts over 2K tokens; before: over 4K tokens"},
		{[]float64{1, 3, 5}, []float64{1, 3, 5}, 3, 2, "TTFT P99 is over 2 s for prompts over 2K tokens, as in phase before"},
		{[]float64{3, 1, gap, 5}, nil, 0, 2, "TTFT P99 is over 2 s for prompts in 2 of 3 ranges of length"},
		{[]float64{.1, .2, 1.2}, []float64{.1, .2, 2.5}, 7, 2, "TTFT P99 stays below 2 s at every prompt length: at most 1.2 s (over 64K tokens); before: over 64K tokens"},
		{[]float64{.1, .2, 1.2}, nil, 0, 0, "TTFT P99 is highest for prompts of 500 to 1K tokens: 1.2 s"},
		{[]float64{gap, gap}, nil, 0, 2, "TTFT by prompt length"},
	} {
		s := &story{first: &sim.Phase{Name: "before"}}
		if got := s.promptTitle(c.after, c.before, c.from, c.threshold); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

// TestPromptChartLeavesOutThinQuantiles checks that P99 of a few requests is not
// drawn while their P50 is, and that empty ends of the axis are cut.
func TestPromptChartLeavesOutThinQuantiles(t *testing.T) {
	f := fixtures()["prompt-growth"]
	for _, p := range []int{0, 2} {
		bands := f.result.Phases[p].Classes[0].ByLength
		bands[0] = sim.LengthBand{UpTo: 250}
		bands[8].N = leastForP99*reps - 1
	}
	c := newStory(f.result, f.meta).promptChart()
	if c.buckets[0].Label != "≤500" || c.buckets[len(c.buckets)-1].Label != ">64K" {
		t.Errorf("the axis goes from %s to %s, want ≤500 to >64K", c.buckets[0].Label, c.buckets[len(c.buckets)-1].Label)
	}
	for _, col := range c.columns {
		v := col.Values[7]
		if wide := strings.Contains(col.Label, "P99"); !col.hidden && math.IsNaN(v) != wide {
			t.Errorf("%s of a thin range is %v", col.Label, v)
		}
	}
}
