// Package promrules writes the Prometheus rules that watch in production what was
// simulated: recording rules of each objective's bad share, its multi-window
// burn-rate alerts (SRE workbook, chapter 5), and an alarm on prompt lengths.
//
// The metrics are vLLM's (v1 engine; histograms of time to first token, time per
// output token, inter-token latency, end-to-end latency, queue time and prompt
// tokens). vLLM knows no traffic classes: a selector such as model_name="chat"
// must single out the servers of a class. A histogram counts only at its buckets:
// a threshold between two of them is interpolated, as histogram_quantile does.
package promrules
