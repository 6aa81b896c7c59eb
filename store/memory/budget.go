package memory

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"tidegate.dev/tidegate/internal/algo"
)

// page is the unit of allocation for every table, whether it holds 64 slots or the
// words of records. All pages are of one size, so that any table can use one that
// another gives back, and the garbage collector has nothing to do.
//
// A reader without a lock may still be reading slots of a page that now holds records. It
// finds them busy or vacant: each word of a record has the top bit set, which is the busyBit
// of a slot.
type page = algo.Page

// chunk is a page as slots.
type chunk [chunkSlots]slot

const (
	chunkSlots = 64
	pageBytes  = chunkSlots*slotBytes + 16 // with its share of the lists of pages
)

// budget is the memory of all tables.
type budget struct {
	max  int64
	used atomic.Int64
	kept atomic.Int64             // bytes that cannot be reclaimed: of tables that keep their exhausted keys, and of reservations
	all  atomic.Pointer[[]*page]  // by number; numbers start at 1, unused ones are nil
	cut  atomic.Pointer[[]*block] // blocks in the order of the numbers of their pages

	mu     sync.Mutex
	made   uint32   // under mu: the last number given
	free   []uint32 // under mu: numbers of the pages that nobody uses
	blocks *blocks  // under mu: where the blocks come from
}

func (b *budget) open(max int64) {
	b.max = max
	all := make([]*page, 16)
	b.all.Store(&all)
	b.cut.Store(new([]*block))
	b.blocks = new(blocks)
}

// spend takes bytes from the budget for t, or reports false if it has not as many.
func (b *budget) spend(t *table, bytes int64) bool {
	if b.used.Add(bytes) > b.max {
		b.used.Add(-bytes)
		return false
	}
	b.note(t, bytes)
	return true
}

// giveBack returns bytes of t to the budget. A negative number takes them, even beyond the bound.
func (b *budget) giveBack(t *table, bytes int64) {
	b.used.Add(-bytes)
	b.note(t, -bytes)
}

// note adds bytes to what t holds.
func (b *budget) note(t *table, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.bytes.Add(bytes)
	if t.keepsExhausted.Load() {
		b.kept.Add(bytes)
	}
}

// keepExhausted notes whether t keeps its exhausted keys.
func (b *budget) keepExhausted(t *table, keeps bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch was := t.keepsExhausted.Swap(keeps); {
	case keeps && !was:
		b.kept.Add(t.bytes.Load())
	case was && !keeps:
		b.kept.Add(-t.bytes.Load())
	}
}

// freePages returns how many more pages fit into the budget.
func (b *budget) freePages() int { return int((b.max - b.used.Load()) / pageBytes) }

// A table that keeps its exhausted keys is rationed, because nothing can be reclaimed from it: it
// may hold at most ration times what all such tables leave free. So however many such tables there
// are, the last sixteenth of the memory is for tables that hold little (in a small store, beside a
// table that holds most, a quarter). What other tables hold counts as free, since they shed keys.
const (
	ration        = 15
	smallShare    = 64                                                     // a table holds little up to this part of the memory, or
	fewBytes      = tableBytes + segmentBytes + recordsBytes + 2*pageBytes // with a page of slots and one of records
	reservedBytes = 64 << 10
)

// rationed reports whether t must not get another page.
func (b *budget) rationed(t *table) bool {
	if !t.keepsExhausted.Load() {
		return false
	}
	held, left := t.bytes.Load()+pageBytes, b.max-b.kept.Load()-pageBytes
	return held > ration*left ||
		left < b.max/(ration+1) && held > max(b.max/smallShare, fewBytes) ||
		left < min(reservedBytes, b.max/4) && held > b.max/2
}

// take returns the number of a page for t, or 0 at the bound.
func (b *budget) take(t *table) uint32 {
	if b.rationed(t) || !b.spend(t, pageBytes) {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		number := b.free[n-1]
		b.free = b.free[:n-1]
		return number
	}
	all := *b.all.Load()
	if b.made++; int(b.made) == len(all) {
		all = append(all, make([]*page, len(all))...)
		b.all.Store(&all)
	}
	all[b.made] = b.cutLocked()
	return b.made
}

// drop gives back a page that nobody uses any more.
func (b *budget) drop(t *table, number uint32) {
	b.mu.Lock()
	b.free = append(b.free, number)
	b.mu.Unlock()
	b.giveBack(t, pageBytes)
}

// page returns the page of that number. A page in a block is found by arithmetic: with millions of keys,
// looking it up in a list would miss the cache.
func (b *budget) page(number uint32) *page {
	if n := int(number) - smallPages - 1; n >= 0 && !raceEnabled {
		return &(*b.cut.Load())[n/blockPages][n%blockPages]
	}
	return (*b.all.Load())[number]
}

// chunk returns the page as slots, all vacant. They keep their generations.
func (b *budget) chunk(number uint32) *chunk {
	c := (*chunk)(unsafe.Pointer(b.page(number)))
	for i := range c {
		if c[i].tag.Load() != 0 {
			c[i].tag.Store(0)
		}
	}
	return c
}

// words returns the page as empty words for records.
func (b *budget) words(number uint32) *page {
	if raceEnabled {
		// The race detector does not know that late readers of slots do no harm.
		b.mu.Lock()
		(*b.all.Load())[number] = new(page)
		b.mu.Unlock()
	}
	p := b.page(number)
	for i := range p {
		p[i] = busyBit
	}
	return p
}
