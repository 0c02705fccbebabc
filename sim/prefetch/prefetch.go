//go:build amd64 || arm64

// Package prefetch asks the processor for memory that will be needed soon, so that
// several lines come at once instead of one after the other when they are missed. It
// changes no result, only when data is in the cache.
package prefetch

import "unsafe"

// One asks for the line of 64 bytes that holds p.
//
//go:noescape
func One(p unsafe.Pointer)

// Lines is how many of them Ahead asks for from one address on.
const Lines = 16

// Ahead asks for as many lines as Lines says from p on, and for those that hold q, r and s.
//
//go:noescape
func Ahead(p, q, r, s unsafe.Pointer)
