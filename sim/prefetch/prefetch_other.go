//go:build !amd64 && !arm64

// Package prefetch does nothing on this architecture.
package prefetch

import "unsafe"

// Lines is how many lines Ahead would ask for from one address on.
const Lines = 16

// One does nothing.
func One(p unsafe.Pointer) {}

// Ahead does nothing.
func Ahead(p, q, r, s unsafe.Pointer) {}
