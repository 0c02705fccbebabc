// Package traffic says what is in a stream of requests: a trace, or what an
// experiment would send. It measures rates by window, gaps, dispersion, lengths,
// correlation and prefix reuse in one pass and constant memory, fits a
// [[traffic]] table to a trace, and draws pages.
//
// Definitions: the gap CV is the standard deviation of inter-arrival times over
// their mean; the dispersion of a window width is the variance of the counts in
// windows of that width over their mean (1 for a Poisson process); correlations
// are of ranks (Spearman), from a sample; prefix reuse is what a cache of
// unbounded memory would find, counted in blocks from the prompt's start.
package traffic
