package memory

import (
	"syscall"
	"unsafe"
)

// adviseHuge asks for huge pages. It is advice: an error changes nothing.
func adviseHuge(block []byte) {
	const page = 4096
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(block))) % page
	block = block[skip:]
	_ = syscall.Madvise(block[:len(block)/page*page], syscall.MADV_HUGEPAGE)
}
