package review

import "slosim/internal/report"

type (
	// Cause is one ablation.
	Cause struct{ Name string }
	// Lever is one way to mend it.
	Lever struct{ Name string }
	// Promise is a price.
	Promise struct{ Name string }
	// Exposure is a canary.
	Exposure struct{ Name string }
)

func (r *Review) advice() string           { return "" }
func (r *Review) causeGrid() report.Grid   { return report.Grid{} }
func (r *Review) leverGrid() report.Grid   { return report.Grid{} }
func (r *Review) promiseGrid() report.Grid { return report.Grid{} }
func (r *Review) canaryGrid() report.Grid  { return report.Grid{} }
