package serve

import (
	"net"
	"sync"
	"sync/atomic"
)

// fewConns is a listener that closes connections above a number at once.
type fewConns struct {
	net.Listener
	most int64
	open atomic.Int64
}

func (f *fewConns) Accept() (net.Conn, error) {
	for {
		c, err := f.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if f.open.Add(1) <= f.most {
			return &countedConn{Conn: c, open: &f.open}, nil
		}
		f.open.Add(-1)
		c.Close()
	}
}

// countedConn is counted until it is closed.
type countedConn struct {
	net.Conn
	open   *atomic.Int64
	closed sync.Once
}

func (c *countedConn) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
