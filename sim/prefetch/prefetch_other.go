//go:build !amd64 && !arm64

// Package prefetch does nothing on this architecture.
package prefetch

import "unsafe"

// Lines does nothing.
func Lines(p unsafe.Pointer, n int) {}

// One does nothing.
func One(p unsafe.Pointer) {}

// Two does nothing.
func Two(p unsafe.Pointer) {}

// Three does nothing.
func Three(p, q, r unsafe.Pointer) {}
