//go:build unix

package redis

import (
	"net"
	"sync"
	"syscall"
)

// peek sees whether a connection has something to read, without reading it.
type peek struct {
	conn syscall.RawConn
	look func(fd uintptr) // made once

	mu   sync.Mutex
	one  [1]byte
	some bool
}

// newPeek returns the peek of a connection; nil if it cannot be looked at.
func newPeek(conn net.Conn) *peek {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	open, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := open.SyscallConn()
	if err != nil {
		return nil
	}
	p := &peek{conn: raw}
	p.look = func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), p.one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		p.some = err == nil && n > 0
	}
	return p
}

// unread reports whether something has come that was not read yet.
func (p *peek) unread() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn.Control(p.look) == nil && p.some
}
