package redis

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// heard is when data last came from servers, by their addresses, as times since start.
type heard struct {
	start  time.Time
	byAddr sync.Map     // string → *atomic.Int64
	last   atomic.Int64 // of all
}

// listening is a connection that notes when data comes from the server.
type listening struct {
	net.Conn
	all *heard
	own *atomic.Int64
}

func (h *heard) listen(addr string, conn net.Conn) net.Conn {
	own, _ := h.byAddr.LoadOrStore(addr, new(atomic.Int64))
	return listening{conn, h, own.(*atomic.Int64)}
}

func (l listening) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		now := int64(time.Since(l.all.start))
		l.own.Store(now)
		l.all.last.Store(now)
	}
	return n, err
}

// Heard is for package fleet: when data last came from a server, whatever it was about.
func (s fleetStore) Heard(server int) time.Time {
	h := &s.dialer.heard
	at := &h.last
	if names := s.Servers(); len(names) > 1 && server < len(names) {
		own, ok := h.byAddr.Load(names[server])
		if !ok {
			return time.Time{}
		}
		at = own.(*atomic.Int64)
	}
	return h.start.Add(time.Duration(at.Load()))
}
