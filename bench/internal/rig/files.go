package rig

import (
	"fmt"
	"syscall"
)

// RaiseFiles lets this program and those that it starts open as many files as the system
// allows: thousands of connections need more than the usual 1,024.
func RaiseFiles() error {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err == nil {
		limit.Cur = limit.Max
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	if err != nil {
		return fmt.Errorf("allow more open files: %w", err)
	}
	return nil
}
