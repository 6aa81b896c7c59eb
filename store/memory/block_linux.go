package memory

import "syscall"

// adviseHuge asks for huge pages. It is advice: an error changes nothing.
func adviseHuge(block []byte) { _ = syscall.Madvise(block, syscall.MADV_HUGEPAGE) }
