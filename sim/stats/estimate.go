package stats

// Estimate is a number with what is known of its error: the mean over
// replications and its 95 % Student-t interval.
type Estimate struct {
	V      float64 // mean over replications; +Inf when the quantile lies among requests never answered
	Lo, Hi float64 // 95 % interval; equal to V when R = 1
	N      int64   // observations behind it, all replications
	R      int     // replications that gave a value; 1 = no interval, 0 = no value
	Thin   bool    // fewer observations in a replication than the statistic needs (P99: 1,000)
}
