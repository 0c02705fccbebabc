// Package sim runs an experiment: a cluster of pools and replicas under traffic,
// with clients, a gateway and controllers, recorded request by request and
// reduced to phases, SLOs, pools and time series.
//
// A run is a pure function of the experiment and the binary. Replications differ
// only in their seed; they run side by side and are combined in order.
package sim
