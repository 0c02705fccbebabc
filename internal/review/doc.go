// Package review compares the world with a change to the world without it: what it
// does to every objective, why, and what would mend it.
//
// Both worlds run the same replications on common random numbers, so that
// differences are paired: a request has the same lengths and arrives at the same
// time in either world, and a change that changes nothing differs by exactly zero.
//
// The two worlds run in full. Ablations, levers and canary readings run on the
// busiest two hours, where a promise is hardest to keep: a dose that suffices there
// suffices for the day. The recommended lever then runs in full on fresh seeds.
package review
