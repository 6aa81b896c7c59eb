//go:build unix

package memory

import "syscall"

// mapMemory returns memory of the system's, or nil.
func mapMemory(bytes int) []byte {
	m, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return m
}

func unmapMemory(m []byte) { _ = syscall.Munmap(m) }
