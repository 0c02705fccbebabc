package review

import (
	"math"
	"strings"
	"testing"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
	"slosim/workloads"
)

// A launch whose prompts all have one length can be slimmed as one with a distribution.
func TestSlimScalesOneLength(t *testing.T) {
	x := map[string]any{"prompt": int64(5000)}
	text, err := slim(x, .8)
	if err != nil || x["prompt"] != int64(4000) || text != "prompts of 4,000 tokens, 80 % of the planned length" {
		t.Errorf("%v, %q, %v", x, text, err)
	}
	if _, err := slim(map[string]any{}, .8); err == nil {
		t.Error("no prompts were scaled")
	}
}

// A run that is too short for a projection does not say that the budget lasts for ever.
func TestGoneIsNotNeverWhenTheRunIsTooShortToTell(t *testing.T) {
	at := &When{60, "day 1, 00:01"}
	for want, s := range map[string]SLO{
		"never → never":                 {},
		"never → day 1, 00:01":          {Gone: at},
		"not in the run":                {unprojected: true},
		"not in the run → day 1, 00:01": {Gone: at, unprojected: true},
	} {
		if got := s.goneText(); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}

// No difference is called "+never", and counts of one are singular.
func TestWordsOfNoEndAndOfOne(t *testing.T) {
	if got := interval(Estimate{Number(math.Inf(1)), Number(math.Inf(1)), Number(math.Inf(1))}, seconds); got != "without bound" {
		t.Error(got)
	}
	if a, b := plural(1, "replica"), plural(1200, "replica"); a != "1 replica" || b != "1,200 replicas" {
		t.Error(a, b)
	}
}

// The post-mortem names the alert that fired first, in whatever order pairs are listed.
func TestDetectionNamesTheFirstAlert(t *testing.T) {
	hour := clock.Time(clock.Hour)
	x := &sim.Result{SLOs: []sim.SLO{{Objective: slo.Objective{Name: "ttft"}, Alerts: []sim.Alert{{Name: "fast", Fired: 5 * hour}, {Name: "slow", Fired: 3 * hour}, {Name: "slow", Fired: 4 * hour}}}}}
	r := &Review{after: &world{e: sim.Experiment{}, reps: []*sim.Result{x}}}
	row := r.detection().Rows[0]
	if row[1] != "slow" || !strings.HasPrefix(row[3], "3 h") || row[5] != "3" {
		t.Errorf("%v", row)
	}
}

// A launch that a budget held back begins when it started, not when it was planned.
func TestIncidentBeginsWhenTheHeldChangeStarted(t *testing.T) {
	x := &sim.Result{Held: []sim.HeldChange{{Hold: sim.Hold{Change: "agents"}, Held: 1, Start: stats.Estimate{V: 7200, R: 1}}}}
	r := &Review{after: &world{e: sim.Experiment{Changes: []workloads.Change{{Name: "agents", At: clock.Hour, Ramp: clock.Minute}}}, reps: []*sim.Result{x}}, span: clock.Time(clock.Day)}
	if r.began() != clock.Time(2*clock.Hour) {
		t.Error(r.began())
	}
	rows := r.timeline().Rows
	if len(rows) != 2 || rows[0][3] != "agents begins" || rows[0][0] != r.began().DayHour(0) {
		t.Errorf("%v", rows)
	}
	x.Held[0].Never, x.Held[0].Start = 1, stats.Estimate{}
	if rows := r.timeline().Rows; len(rows) != 0 {
		t.Errorf("it never started: %v", rows)
	}
}
