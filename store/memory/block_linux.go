package memory

import (
	"syscall"
	"unsafe"
)

// adviseHuge asks for huge pages. It is advice: an error changes nothing.
func adviseHuge(block []chunk) {
	const page = 4096
	start := unsafe.Pointer(unsafe.SliceData(block))
	skip := -uintptr(start) % page
	bytes := unsafe.Slice((*byte)(start), len(block)*chunkBytes)[skip:]
	_ = syscall.Madvise(bytes[:len(bytes)/page*page], syscall.MADV_HUGEPAGE)
}
