package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// TestUnansweredWindowsAreDrawnAndNamed takes P99 beyond the run in two windows,
// and then in all of them.
func TestUnansweredWindowsAreDrawnAndNamed(t *testing.T) {
	f := fixtures()["prompt-growth"]
	s := newStory(f.result, f.meta)
	data := s.series(s.class, everyone)
	inf := math.Inf(1)
	data.TTFTP99[400], data.TTFTP99[401] = inf, inf
	c := s.heroChart()
	if want := "in 2 of "; !strings.Contains(c.Title, want) || strings.Contains(c.Title, "peak") {
		t.Errorf("title %q, want %q and no peak", c.Title, want)
	}
	if len(c.bands) != 1 || c.clip < c.largest() {
		t.Errorf("%d bands, infinite values at %v of an axis up to %v", len(c.bands), c.clip, c.largest())
	}
	raw, err := c.JSON(0)
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		Columns []struct {
			Label, As string
			Above     []int
			Values    []*float64
		}
	}
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		t.Fatal(err)
	}
	for _, col := range b.Columns {
		if col.Label == "TTFT P99" && (len(col.Above) != 2 || col.Above[0] != 400 || col.Values[400] == nil || *col.Values[400] != c.clip || col.As != "not answered") {
			t.Errorf("P99 has rows %v above the axis (%q)", col.Above, col.As)
		}
	}
	for i := range data.TTFTP99 {
		data.TTFTP99[i], data.TTFTP50[i] = inf, inf
	}
	if c := s.heroChart(); c == nil || !strings.Contains(c.Title, "in every window more than 1 %") {
		t.Errorf("no chart that says that nothing was answered: %+v", c)
	}
	// One window alone is no crossing, but no peak below the SLO either.
	if got := s.crossing("TTFT P99", []float64{.1, inf, .1}, 2); !strings.Contains(got, "in 1 of 3 windows") {
		t.Errorf("got %q", got)
	}
}

func TestHeadlineReadsTheQuantileOfTheTarget(t *testing.T) {
	f := fixtures()["prompt-growth"]
	row := &f.result.Phases[2].Classes[0]
	row.TTFT.P99.V = math.Inf(1)
	row.Answered.P99 = stats.Estimate{V: 4, R: 1}
	row.TTFT.P999 = stats.Estimate{V: 9, R: 1}
	o := f.result.SLOs[0].Objective
	o.Skip = []string{"rejected"}
	if h, _ := decides(o); h.Name != "TTFT P99 of answered" || h.Of(row).V != 4 {
		t.Errorf("%s is %v", h.Name, h.Of(row).V)
	}
	o.Skip, o.Target = nil, .999
	if h, _ := decides(o); h.Name != "TTFT P99.9" || h.Of(row).V != 9 {
		t.Errorf("%s is %v", h.Name, h.Of(row).V)
	}
}

func TestRoundingDoesNotContradict(t *testing.T) {
	for _, c := range []struct {
		e    stats.Estimate
		want string
	}{
		{stats.Estimate{V: .9972, Lo: .985, Hi: 1.02, R: 3}, "99.7 % [98.5, 100.0]"},
		{stats.Estimate{V: .9972, Lo: .8, Hi: 1.2, R: 3}, "99.7 % [80.0, 100.0]"},
		{stats.Estimate{V: .0004, Lo: -.2, Hi: .2, R: 3}, "0.04 % [0.00, 20.00]"},
		{stats.Estimate{V: 1, R: 1}, "100 %"},
		{stats.Estimate{V: 0, R: 1}, "0 %"},
	} {
		if got := attained(c.e); got != c.want {
			t.Errorf("attained(%v) = %q, want %q", c.e, got, c.want)
		}
	}
	if got := inSeconds.full(stats.Estimate{V: 1, Lo: -2, Hi: 4, R: 3}); got != "1.0 s [0.0, 4.0]" {
		t.Errorf("got %q", got)
	}
	if got := estimated(stats.Estimate{Thin: true}); got.Text != none {
		t.Errorf("a cell without a value says %q", got.Text)
	}
}

func TestPartialRunSaysWhatItCovers(t *testing.T) {
	f := fixtures()["partial"]
	f.result.Seeds = f.result.Seeds[:2]
	var b bytes.Buffer
	Terminal(&b, f.result, f.meta)
	if want := "covers 2 of 5 replications, 20 h of 72 h"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in:\n%s", want, b.String())
	}
}

func TestWarningsOfTheExperimentAreShown(t *testing.T) {
	f := fixtures()["prompt-growth"]
	p := *f.meta.Provenance
	p.Warnings = []*config.Error{{Key: "change.feature.at", Msg: "too late"}}
	f.meta.Provenance = &p
	files := written(t, f)
	for _, name := range []string{"summary.md", "report.html"} {
		if !strings.Contains(string(files[name]), "change.feature.at: too late") {
			t.Errorf("%s lacks the warning", name)
		}
	}
}

// TestCloseNamesDoNotCollide checks changes within an hour, levels within a few
// pixels, and an axis that ends with a window shorter than the run.
func TestCloseNamesDoNotCollide(t *testing.T) {
	f := fixtures()["prompt-growth"]
	e := &f.result.Experiment
	second := e.Changes[0]
	second.Name, second.At = "other", second.At+clock.Hour
	e.Changes = append(e.Changes, second)
	f.result.SLOs[0].Window = 24 * clock.Hour
	f.result.SLOs[0].Burn[7].Rate = 300
	s := newStory(f.result, f.meta)
	c := s.runChart("x", "")
	if want := short(e.Changes[0].Name, 20) + ", other start"; len(c.moments) != 2 || c.moments[0].name != want || c.moments[1].name != "" {
		t.Errorf("moments %+v, want the first named %q", c.moments, want)
	}
	if c := s.burnDownChart(0); c.to != clock.Time(24*clock.Hour) || c.t[len(c.t)-1] > c.to {
		t.Errorf("the budget's axis ends at %v", c.to)
	}
	levels := s.burnChart().levels
	if len(levels) != 3 || levels[0].name != "" || levels[1].name != "" || !strings.Contains(levels[2].name, "6×") {
		t.Errorf("levels %+v", levels)
	}
}

func TestPrefixHitsShowWhereThereAreAny(t *testing.T) {
	f := fixtures()["prompt-growth"]
	f.result.Pools[0].PrefixHit = stats.Estimate{V: .37, R: 1}
	f.result.Pools[0].KVPeak = .987
	f.result.Series.Pools[0].PrefixHit = []float64{.1, .2}
	s := newStory(f.result, f.meta)
	if head := s.poolTable().Head; head[len(head)-1].Text != "prefix hits" {
		t.Errorf("head %+v", head)
	}
	c := s.cacheChart(0, &f.result.Series.Pools[0])
	if !strings.Contains(c.Title, "98.7 %") || !strings.Contains(c.Aid, "prefix cache") {
		t.Errorf("%q, %q", c.Title, c.Aid)
	}
}
