package redis

import (
	"net"
	"sync"
	"time"
)

// exchanges is when servers were last asked and heard, by their addresses.
type exchanges struct {
	mu     sync.Mutex
	byAddr map[string]*exchange
	all    exchange // of all servers together
}

// exchange is when the connections to a server were written and read. The time at which a caller asked
// would not show whether the server is gone: the command may not have been written yet, or the answer
// may not have been read.
type exchange struct {
	mu     sync.Mutex
	asked  time.Time // when the first thing since heard was written
	heard  time.Time // when something was last read
	looked time.Time // when unread was last called
	conns  map[*watchedConn]struct{}
}

// watchedConn is a connection that notes when something is written and read.
type watchedConn struct {
	net.Conn
	peek *peek
	of   [2]*exchange // of its server, and of all
}

// watch returns a connection that notes what happens on conn to the server at addr.
func (e *exchanges) watch(addr string, conn net.Conn) net.Conn {
	e.mu.Lock()
	own := e.byAddr[addr]
	if own == nil {
		if e.byAddr == nil {
			e.byAddr = make(map[string]*exchange)
		}
		own = new(exchange)
		e.byAddr[addr] = own
	}
	e.mu.Unlock()
	c := &watchedConn{Conn: conn, peek: newPeek(conn), of: [2]*exchange{own, &e.all}}
	for _, x := range c.of {
		x.mu.Lock()
		if x.conns == nil {
			x.conns = make(map[*watchedConn]struct{})
		}
		x.conns[c] = struct{}{}
		x.mu.Unlock()
	}
	return c
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		for _, x := range c.of {
			x.read()
		}
	}
	return n, err
}

func (c *watchedConn) Write(b []byte) (int, error) {
	var first [2]bool
	for i, x := range c.of {
		first[i] = x.write()
	}
	n, err := c.Conn.Write(b)
	for i, x := range c.of {
		if first[i] {
			x.written()
		}
	}
	return n, err
}

func (c *watchedConn) Close() error {
	for _, x := range c.of {
		x.mu.Lock()
		delete(x.conns, c)
		x.mu.Unlock()
	}
	return c.Conn.Close()
}

// read notes that the server has said something.
func (x *exchange) read() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.heard = time.Now()
}

// write notes that the server is about to be asked something, and reports whether that is
// the first since it was heard.
func (x *exchange) write() (first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if first = !x.asked.After(x.heard); first {
		x.asked = time.Now()
	}
	return first
}

// written notes that the first thing has left this process.
func (x *exchange) written() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asked.After(x.heard) { // else it is answered
		x.asked = time.Now()
	}
}

// peekEvery is the shortest pause between two looks at whether connections have unread data.
const peekEvery = time.Millisecond

// last returns heard and asked. Data that has arrived, and that this process has not read yet, counts
// as heard now.
func (x *exchange) last() (heard, asked time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if now := time.Now(); now.Sub(x.heard) > peekEvery && now.Sub(x.looked) > peekEvery {
		x.looked = now
		for c := range x.conns {
			if c.peek.unread() {
				x.heard = now
				break
			}
		}
	}
	return x.heard, x.asked
}

// Heard is for package fleet: when a server last said anything, whatever it was about, and
// when it was first asked something after that.
func (s fleetStore) Heard(server int) (heard, asked time.Time) {
	if t := s.topology.current.Load(); s.sharded() {
		return t.masters[server%len(t.masters)].endpoint.dialer.exchanges.all.last()
	}
	e := &s.endpoints[0].dialer.exchanges
	if names := s.Servers(); len(names) > 1 && server < len(names) {
		e.mu.Lock()
		own := e.byAddr[names[server]]
		e.mu.Unlock()
		if own == nil {
			return time.Time{}, time.Time{}
		}
		return own.last()
	}
	return e.all.last()
}
