// Package report tells what a run found: the page (report.html), the terminal
// summary, summary.json for programs, summary.md for a pull request,
// and timeseries.csv and timeseries-pools.csv for further analysis.
//
// Every output is a pure function of the result and Meta: no wall clock, no map
// order, so that two reports of the same run are the same bytes.
//
// The page is one file that fetches nothing. Its charts are ECharts options
// (assets/echarts/VERSIONS), carried as JSON and drawn by assets/page.js; names
// from an experiment are data everywhere and never markup. What the page does
// not do: it computes no statistics of its own beyond ratios of numbers in the
// result, and it holds at most one point per window and series (720).
package report
