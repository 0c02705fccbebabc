package slo

import "slosim/sim/clock"

// Metric is what an objective judges.
type Metric string

// The metrics of an objective.
const (
	TTFT         Metric = "ttft"
	TPOT         Metric = "tpot"
	E2E          Metric = "e2e"
	Availability Metric = "availability"
)

// Objective is one request-based promise: at least Target of the events are
// good, over Window.
type Objective struct {
	Name      string
	Class     string   // traffic class
	Only      []string // cohorts that count; empty = all
	Exclude   []string // cohorts that do not
	Metric    Metric
	Threshold clock.Duration // good if the metric is ≤ Threshold; unused for availability
	Target    float64        // share of good events wanted, in (0, 1)
	Window    clock.Duration // of the error budget
	Spent     float64        // share of the budget already gone at t = 0

	// Skip lists outcomes that are no events for this objective: "rejected",
	// "failed", "timeout", "undecided". By default all of them count as bad.
	Skip []string
}
