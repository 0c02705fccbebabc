// Package sweep simulates one experiment at many points: a grid, a Latin hypercube or a
// Sobol' design over its settings, each point on the same seeds. It tells which setting
// moves which figure, and by how much.
//
// It leaves out interactions of more than the two settings of a heat map: those are in
// results.parquet, for a tool of your own.
package sweep
