//go:build unix

package testdep

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// portsFile has a byte for each port, which the process that has the port locks. The kernel unlocks
// what a process had that ends.
var portsFile = sync.OnceValue(func() *os.File {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprint("tidegate-test-ports-", os.Getuid())), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil // then ports are apart in this process only
	}
	return f
})

// lockPort locks a port, or unlocks it, and reports whether no other process has it.
func lockPort(port int, lock bool) bool {
	f := portsFile()
	if f == nil {
		return true
	}
	l := syscall.Flock_t{Type: syscall.F_UNLCK, Whence: 0, Start: int64(port), Len: 1}
	if lock {
		l.Type = syscall.F_WRLCK
	}
	err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &l)
	return err != syscall.EAGAIN && err != syscall.EACCES
}
