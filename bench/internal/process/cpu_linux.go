package process

import (
	"syscall"
	"time"
	"unsafe"
)

// CPUTime returns how long the calling thread has been running; a caller that wants
// differences locks itself to its thread. Unlike the wall clock it stands still
// while a neighbour has the core.
func CPUTime() time.Duration {
	const clockThreadCPU = 3
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic("process: no clock of the thread's time: " + errno.Error())
	}
	return time.Duration(ts.Nano())
}
