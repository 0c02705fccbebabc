// Package workloads says who arrives when, with which prompt and output lengths:
// rate curves, arrival processes, length distributions, changes over time with
// their cohorts, trace readers and client behaviour.
//
// Arrivals are drawn by inversion of the cumulative rate and every draw of
// request i is a hash of (seed, purpose, class stream, i), so request i keeps
// its lengths and its cohort under any rate and in every scenario. It leaves out
// tokens' contents: a request is its lengths.
package workloads
