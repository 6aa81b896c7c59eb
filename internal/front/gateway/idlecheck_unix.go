//go:build unix

package gateway

import (
	"errors"
	"net"
	"syscall"
)

// idleCheck finds out, without blocking, whether an idle connection was closed or has sent
// something. It reads a byte if there is one, so the connection must not be used then.
type idleCheck struct {
	conn    syscall.RawConn
	read    func(fd uintptr) // a field, so that it is allocated once
	one     [1]byte
	nothing bool // what the last read found
}

// newIdleCheck returns nil for a connection that cannot be checked.
func newIdleCheck(conn net.Conn) *idleCheck {
	open, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := open.SyscallConn()
	if err != nil {
		return nil
	}
	c := &idleCheck{conn: raw}
	c.read = func(fd uintptr) {
		_, err := syscall.Read(int(fd), c.one[:])
		c.nothing = errors.Is(err, syscall.EAGAIN)
	}
	return c
}

// nothingCame reports whether the connection is open and has nothing to read, so that it
// can be used for another request. It is false for a nil c.
func (c *idleCheck) nothingCame() bool {
	return c != nil && c.conn.Control(c.read) == nil && c.nothing
}

// wasReset reports whether a write failed because the other side has closed the connection.
// What it sent before that can still be read, without blocking.
func wasReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// canCheckIdle says that idle connections can be checked on this system.
const canCheckIdle = true
