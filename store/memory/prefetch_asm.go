//go:build amd64 || arm64

package memory

import "unsafe"

// prefetch starts fetching the 64 bytes at p and the 64 after them. Unlike a
// load it is done at once: what comes after, the clock for one, does not wait.
//
//go:noescape
func prefetch(p unsafe.Pointer)
