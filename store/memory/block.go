package memory

import "unsafe"

// Blocks are what pages are cut from once a store is past its beginnings.
// They lie on huge pages, where the system has them: a table of millions of keys
// misses the translation buffer at nearly every key otherwise, which costs as
// much as missing the cache.
const (
	smallPages = 512 // allocated one by one: 768 KiB
	hugePage   = 2 << 20
	blockBytes = 4 * hugePage
)

// cutLocked returns a fresh page.
func (b *budget) cutLocked() *page {
	if len(*b.all.Load()) <= smallPages {
		return new(page)
	}
	if len(b.block) == 0 {
		b.block = newBlock()
	}
	p := &b.block[0]
	b.block = b.block[1:]
	return p
}

// newBlock returns the pages of a block that starts on a huge page. What lies
// before is never touched, and so takes no memory.
func newBlock() []page {
	const size = int(unsafe.Sizeof(page{}))
	all := make([]page, (blockBytes+hugePage)/size)
	start := uintptr(unsafe.Pointer(unsafe.SliceData(all)))
	skip := int(-start%hugePage) / size
	block := all[skip : skip+blockBytes/size]
	adviseHuge(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(block))), len(block)*size))
	return block
}
