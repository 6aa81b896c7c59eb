//go:build unix

package gateway

import (
	"errors"
	"net"
	"syscall"
)

// look sees whether something has come on an idle connection, without waiting. What
// has come is lost: the connection is of no use then.
type look struct {
	conn    syscall.RawConn
	read    func(fd uintptr) // made once
	one     [1]byte
	nothing bool
}

// newLook is nil for a connection that cannot be looked at.
func newLook(conn net.Conn) *look {
	open, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := open.SyscallConn()
	if err != nil {
		return nil
	}
	l := &look{conn: raw}
	l.read = func(fd uintptr) {
		_, err := syscall.Read(int(fd), l.one[:])
		l.nothing = errors.Is(err, syscall.EAGAIN)
	}
	return l
}

func (l *look) silent() bool {
	return l != nil && l.conn.Control(l.read) == nil && l.nothing
}

// wasReset reports whether a write failed since the other side has closed. What it
// sent before can be read, without waiting.
func wasReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// canLook: a connection is looked at before it is used again.
const canLook = true
