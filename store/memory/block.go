package memory

import (
	"slices"
	"unsafe"
)

// A store that is no longer small cuts its pages from blocks. Where possible, blocks are
// mapped from the operating system, not allocated from the Go heap, which may grow to twice
// its live size before a collection, and so to twice the bound. They are on huge pages where
// the system has them: otherwise a table of millions of keys misses the TLB for nearly every
// key, which costs as much as a cache miss.
const (
	smallPages = 512 // allocated one by one: 768 KiB
	hugePage   = 2 << 20
	blockBytes = 4 * hugePage
	pageSize   = int(unsafe.Sizeof(page{}))
	blockPages = blockBytes / pageSize
)

// block is the pages of a block.
type block [blockPages]page

// blocks is memory mapped from the system, for as long as its store is reachable.
type blocks struct {
	mapped [][]byte
}

// cutLocked returns a fresh page.
func (b *budget) cutLocked() *page {
	if b.made <= smallPages {
		return new(page)
	}
	cut := *b.cut.Load()
	n := int(b.made) - smallPages - 1
	if n%blockPages == 0 {
		cut = append(slices.Clip(cut), b.blocks.add())
		b.cut.Store(&cut)
	}
	return &cut[n/blockPages][n%blockPages]
}

// add returns a new block, which starts on a huge page. The mapped memory before that is
// never touched, and so takes no memory.
func (b *blocks) add() *block {
	all := b.alloc(blockBytes + hugePage)
	start := uintptr(unsafe.Pointer(unsafe.SliceData(all)))
	part := all[int(-start%hugePage):][:blockBytes]
	adviseHuge(part)
	return (*block)(unsafe.Pointer(unsafe.SliceData(part)))
}

// alloc returns zeroed memory: from the Go heap if none can be mapped, and with the race
// detector, which sees nothing else.
func (b *blocks) alloc(bytes int) []byte {
	if !raceEnabled {
		if m := mapMemory(bytes); m != nil {
			b.mapped = append(b.mapped, m)
			return m
		}
	}
	words := make([]uint64, bytes/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), bytes)
}

// free gives everything back. Nobody may hold a pointer into it.
func (b *blocks) free() {
	for _, m := range b.mapped {
		unmapMemory(m)
	}
}
