package slo

import (
	"strings"

	"slosim/sim/clock"
)

// Metric is what an objective judges.
type Metric string

// The metrics of an objective.
const (
	TTFT         Metric = "ttft"
	TPOT         Metric = "tpot"
	E2E          Metric = "e2e"
	Queue        Metric = "queue"   // time from the scheduler's queue to the first step
	ITL          Metric = "itl"     // each token after the first is an event: its gap to the one before
	Goodput      Metric = "goodput" // every threshold of All at once
	Availability Metric = "availability"
)

// Metrics in the order of reports.
var Metrics = []Metric{TTFT, TPOT, ITL, E2E, Queue, Goodput, Availability}

// Limits are the thresholds of goodput; 0 = none.
type Limits struct{ TTFT, TPOT, E2E clock.Duration }

// Objective is one request-based promise: at least Target of the events are
// good, over Window.
type Objective struct {
	Name      string
	Class     string   // traffic class
	Only      []string // cohorts that count; empty = all
	Exclude   []string // cohorts that do not
	Metric    Metric
	Threshold clock.Duration // good if the metric is ≤ Threshold; unused for availability and goodput
	Target    float64        // share of good events wanted, in (0, 1)
	Window    clock.Duration // of the error budget
	Spent     float64        // share of the budget already gone at t = 0

	// Skip lists outcomes that are no events for this objective: "rejected",
	// "failed", "timeout", "undecided". By default all of them count as bad.
	Skip []string

	All Limits `json:",omitzero"` // of goodput
	// MinPrompt and MaxPrompt bound the prompts that count, [Min, Max); 0 = no bound.
	MinPrompt int32 `json:",omitzero"`
	MaxPrompt int32 `json:",omitzero"`

	// Rolling says that events older than Window leave the budget; otherwise it
	// starts anew at the end of each Window from t = 0 on.
	Rolling   bool   `json:",omitzero"`
	Policy    Policy `json:",omitzero"`
	Alerts    []Pair `json:",omitzero"` // instead of StandardPairs
	MinEvents int64  `json:",omitzero"` // of an alert's short window, instead of 20

	Adaptive *Adaptive `json:",omitempty"` // moves Threshold; nil = it stands
}

// InBand tells whether prompts of a length count.
func (o *Objective) InBand(prompt int32) bool {
	return prompt >= o.MinPrompt && (o.MaxPrompt == 0 || prompt < o.MaxPrompt)
}

// Banded tells whether prompts of some lengths do not count.
func (o *Objective) Banded() bool { return o.MinPrompt > 0 || o.MaxPrompt > 0 }

// Longest returns the largest threshold.
func (o *Objective) Longest() clock.Duration {
	longest := max(o.Threshold, o.All.TTFT, o.All.TPOT, o.All.E2E)
	if o.Adaptive != nil {
		longest = max(longest, o.Adaptive.Max)
	}
	return longest
}

// Pairs returns the burn-rate alerts of the objective.
func (o *Objective) Pairs() []Pair {
	if len(o.Alerts) > 0 {
		return o.Alerts
	}
	return StandardPairs
}

// Text writes the thresholds of goodput: "TTFT 2s, TPOT 50ms".
func (l Limits) Text(format func(clock.Duration) string) string {
	var parts []string
	for _, p := range []struct {
		name  string
		limit clock.Duration
	}{{"TTFT", l.TTFT}, {"TPOT", l.TPOT}, {"E2E", l.E2E}} {
		if p.limit > 0 {
			parts = append(parts, p.name+" "+format(p.limit))
		}
	}
	return strings.Join(parts, ", ")
}
