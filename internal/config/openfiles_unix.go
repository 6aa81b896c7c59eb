//go:build unix

package config

import "syscall"

// openFiles returns how many files this process may have open at once; 0 means any.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur)
}
