// Package spread is a counter that many goroutines add to at once. Where every request
// adds to one word of memory, that word goes from core to core, which takes longer
// than what is counted. A [Counter] is several words, and each goroutine has its own of
// them, shared with some others. Reading it is slow. For what is counted seldom, use package sync/atomic.
package spread

import (
	"sync/atomic"
	"unsafe"
)

// Counter starts at 0.
type Counter struct{ words [8]word }

// word has a line of the cache for itself.
type word struct {
	n atomic.Uint64
	_ [56]byte
}

// Inc adds one.
func (c *Counter) Inc() {
	// Goroutines are known by where their stacks are, which is all that is needed here.
	var here byte
	at := uint64(uintptr(unsafe.Pointer(&here))) >> 11 * 0x9E3779B97F4A7C15
	c.words[at>>61].n.Add(1)
}

// Load is how often Inc has returned, and no more than how often it was called.
func (c *Counter) Load() (sum uint64) {
	for i := range c.words {
		sum += c.words[i].n.Load()
	}
	return sum
}
