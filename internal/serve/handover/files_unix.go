//go:build unix

package handover

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// UpgradeSignals ask a process to hand over to a successor.
var UpgradeSignals = []os.Signal{syscall.SIGUSR2}

// openPipe opens an inherited pipe. Child processes do not inherit it, and reads can be
// interrupted.
func openPipe(fd int) *os.File {
	syscall.CloseOnExec(fd)
	_ = syscall.SetNonblock(fd, true) // if it is not open, reading says so
	return os.NewFile(uintptr(fd), "handover")
}

// share returns a duplicate of the socket of l, to be passed on. It does not use l.File(), which
// would switch the shared socket to blocking mode when it is passed on: Accept on l could then not
// be interrupted.
func share(l net.Listener) (f *os.File, err error) {
	s, ok := l.(syscall.Conn)
	if !ok {
		return nil, errors.New("it is not a socket of the system")
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		var other int
		if other, err = syscall.Dup(int(fd)); err == nil {
			syscall.CloseOnExec(other)
			f = os.NewFile(uintptr(other), l.Addr().String())
		}
	})
	return f, errors.Join(controlErr, err)
}
