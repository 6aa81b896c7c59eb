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

// openPipe takes an inherited pipe. It is not for those that this process starts,
// and reading it can be interrupted.
func openPipe(fd int) *os.File {
	syscall.CloseOnExec(fd)
	_ = syscall.SetNonblock(fd, true) // if it is not open, reading says so
	return os.NewFile(uintptr(fd), "handover")
}

// share returns another file for the socket of l, to be passed on. It is not
// l.File(), which would switch the socket, of which there is only one, to
// blocking when it is passed on: Accept of l could then not be ended.
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
