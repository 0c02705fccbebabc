// Package planner puts capacity formulas to the test and plans capacity itself:
//
//   - validate: formulas as data, compared claim by claim with a grid of simulations;
//   - curve: latency against load, up to saturation;
//   - ladder: the step test of the field, and what a longer look at each step says;
//   - plan: the cheapest deployment that meets every SLO.
//
// All of them fan out over internal/trials, one trial per replication, so that an
// interruption loses only what was running and every number has an interval over
// seeds. Replication r has the same seed in every trial: candidates meet the same
// arrivals (common random numbers).
//
// Queueing formulas are those of Erlang, Pollaczek and Khinchine, Kingman, and Allen
// and Cunneen, as in Gross, Shortle, Thompson and Harris, "Fundamentals of Queueing
// Theory", 5th ed., 2018. The state-dependent queue is a birth–death chain whose
// departure rate in state n is n ÷ S(n), S being the time in service beside n−1 others.
package planner
