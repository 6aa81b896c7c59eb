package memory

import "unsafe"

// Blocks are what chunks are cut from once a store is past its beginnings.
// They lie on huge pages, where the system has them: a table of millions of keys
// misses the translation buffer at nearly every key otherwise, which costs as
// much as missing the cache.
const (
	smallChunks = 512 // chunks allocated one by one: 768 KiB
	hugePage    = 2 << 20
	blockBytes  = 4 * hugePage
)

// cutLocked returns a fresh chunk.
func (b *budget) cutLocked() *chunk {
	if b.made++; b.made <= smallChunks {
		return new(chunk)
	}
	if len(b.block) == 0 {
		b.block = newBlock()
	}
	c := &b.block[0]
	b.block = b.block[1:]
	return c
}

// newBlock returns the chunks of a block that starts on a huge page. What lies
// before is never touched, and so takes no memory.
func newBlock() []chunk {
	all := make([]chunk, (blockBytes+hugePage)/chunkBytes)
	start := uintptr(unsafe.Pointer(unsafe.SliceData(all)))
	skip := (-start % hugePage) / chunkBytes
	block := all[skip : skip+blockBytes/chunkBytes]
	adviseHuge(block)
	return block
}
