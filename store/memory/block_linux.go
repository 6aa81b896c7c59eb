package memory

import (
	"syscall"
	"unsafe"
)

// adviseHuge asks for huge pages. It is advice: an error changes nothing.
func adviseHuge(block []chunk) {
	const page = 4096
	start := uintptr(unsafe.Pointer(unsafe.SliceData(block)))
	skip := (page - start%page) % page
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(block))), blockBytes/chunkBytes*chunkBytes)
	whole := bytes[skip:]
	_ = syscall.Madvise(whole[:len(whole)/page*page], syscall.MADV_HUGEPAGE)
}
