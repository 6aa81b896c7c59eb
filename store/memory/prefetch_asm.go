//go:build amd64 || arm64

package memory

import "unsafe"

// prefetch starts fetching the 64 bytes at p and the 64 after them into the cache. It
// returns at once: unlike after a load, what follows does not wait.
//
//go:noescape
func prefetch(p unsafe.Pointer)
