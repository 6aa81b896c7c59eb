//go:build unix

package main

import (
	"syscall"
	"time"
)

// ownCPU returns what this process has taken of the cores.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
