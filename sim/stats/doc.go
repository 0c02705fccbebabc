// Package stats holds the statistics of a run: exact and bounded-error
// quantiles, log-linear histograms, and intervals over replications.
package stats
