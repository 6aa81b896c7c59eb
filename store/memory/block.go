package memory

// Blocks are what chunks are cut from once a store is past its beginnings.
// They are large enough to lie on huge pages, where the system has them: a
// table of millions of keys misses the translation buffer at nearly every key
// otherwise, which costs as much as missing the cache.
const (
	smallChunks = 512 // chunks allocated one by one: 768 KiB
	blockBytes  = 4 << 20
	blockChunks = blockBytes / chunkBytes
)

// cutLocked returns a fresh chunk.
func (b *budget) cutLocked() *chunk {
	if b.made++; b.made <= smallChunks {
		return new(chunk)
	}
	if len(b.block) == 0 {
		b.block = make([]chunk, blockChunks)
		adviseHuge(b.block)
	}
	c := &b.block[0]
	b.block = b.block[1:]
	return c
}
