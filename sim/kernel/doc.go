// Package kernel is the clock of a run and the order of its events.
//
// One total order: time first; at equal times replicas (by number), then timers
// (in the order they were set), then arrivals. Replicas wait in a tournament
// by their next event, timers and processes in a heap by (time, sequence),
// arrivals in a single slot. Nothing else moves the clock.
//
// Control processes are coroutines on simgo, hosted by process.go: simgo runs
// them, this kernel wakes them.
package kernel
