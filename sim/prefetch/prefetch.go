//go:build amd64 || arm64

// Package prefetch asks the processor for memory that will be needed soon, so that
// several lines come at once instead of one after the other when they are missed. It
// changes no result, only when data is in the cache.
package prefetch

import "unsafe"

// Lines asks for n lines of 64 bytes, at least one, from the one that holds p on.
//
//go:noescape
func Lines(p unsafe.Pointer, n int)

// One asks for the line that holds p, without Lines' loop.
//
//go:noescape
func One(p unsafe.Pointer)

// Two asks for the line that holds p and the next one.
//
//go:noescape
func Two(p unsafe.Pointer)

// Three asks for the lines that hold p, q and r.
//
//go:noescape
func Three(p, q, r unsafe.Pointer)
