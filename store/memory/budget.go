package memory

import (
	"sync"
	"sync/atomic"
)

// chunk is the piece in which tables grow. All are of one size, so that what
// one table gives back another can use, and nothing is left to the collector.
type chunk [chunkSlots]slot

const (
	chunkSlots = 64
	chunkBytes = chunkSlots * slotBytes
)

// budget is the memory of all tables. A chunk given back keeps the generations
// of its slots: somebody may still be looking at them.
type budget struct {
	max  int64
	used atomic.Int64

	mu    sync.Mutex
	free  []*chunk // under mu
	made  int      // under mu: chunks ever cut
	block []chunk  // under mu: the rest of the block being cut
}

// spend takes bytes out of the budget, or reports false; must ignores the bound.
func (b *budget) spend(t *table, bytes int64, must bool) bool {
	if b.used.Add(bytes) > b.max && !must {
		b.used.Add(-bytes)
		return false
	}
	t.bytes.Add(bytes)
	return true
}

func (b *budget) giveBack(t *table, bytes int64) {
	b.used.Add(-bytes)
	t.bytes.Add(-bytes)
}

// chunk is a vacant chunk for t, or nil at the bound.
func (b *budget) chunk(t *table, must bool) *chunk {
	if !b.spend(t, chunkBytes, must) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		c := b.free[n-1]
		b.free[n-1] = nil
		b.free = b.free[:n-1]
		return c
	}
	return b.cutLocked()
}

// drop gives back a chunk whose slots are all vacant.
func (b *budget) drop(t *table, c *chunk) {
	b.giveBack(t, chunkBytes)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, c)
}
