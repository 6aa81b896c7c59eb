package rls

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// guard bounds what clients can make a server hold: streams that are open, and messages that
// are not complete. gRPC bounds both for a stream and for a connection, and neither for all
// connections together, nor in time.
type guard struct {
	mu    sync.Mutex
	conns map[*guardedConn]struct{}

	most  held
	open  atomic.Int64 // streams of all connections
	bytes atomic.Int64 // of messages that are not complete
	stop  chan struct{}
}

// held is what all connections together may hold, and for how long a message may be incomplete.
type held struct {
	streams, bytes int64
	incomplete     time.Duration
}

// mostHeld is far above what clients of good will need.
var mostHeld = held{streams: 32 << 10, bytes: 64 << 20, incomplete: 10 * time.Second}

// What every connection may hold, however many there are.
const (
	minShareStreams = 32
	minShareBytes   = MaxMessage
)

func newGuard(most held) *guard {
	g := &guard{conns: map[*guardedConn]struct{}{}, most: most, stop: make(chan struct{})}
	go g.watch()
	return g
}

// close ends the watch.
func (g *guard) close() { close(g.stop) }

// watch closes connections whose messages do not arrive.
func (g *guard) watch() {
	tick := time.NewTicker(g.most.incomplete / 10)
	defer tick.Stop()
	for {
		select {
		case <-g.stop:
			return
		case now := <-tick.C:
			for _, c := range g.all() {
				if c.stalled(now) {
					_ = c.Close()
				}
			}
		}
	}
}

func (g *guard) all() []*guardedConn {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]*guardedConn, 0, len(g.conns))
	for c := range g.conns {
		all = append(all, c)
	}
	return all
}

// shares returns what one connection may hold while all together hold too much.
func (g *guard) shares() (streams, bytes int64) {
	g.mu.Lock()
	n := int64(max(len(g.conns), 1))
	g.mu.Unlock()
	return max(g.most.streams/n, minShareStreams), max(g.most.bytes/n, minShareBytes)
}

// guardedListener guards the connections of another.
type guardedListener struct {
	net.Listener
	guard *guard
}

// Accept implements net.Listener.
func (l guardedListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &guardedConn{Conn: inner, guard: l.guard}
	c.in.skip = clientPreface
	l.guard.mu.Lock()
	l.guard.conns[c] = struct{}{}
	l.guard.mu.Unlock()
	return c, nil
}

// guardedConn is a connection whose streams are followed in both directions.
type guardedConn struct {
	net.Conn
	guard *guard
	in    frames
	out   frames // under mu
	once  sync.Once

	mu      sync.Mutex
	streams []openStream // under mu: those that the server has not ended
	bytes   int64        // under mu: of messages that are not complete
	closed  bool         // under mu
}

// openStream is one that the server has not ended.
type openStream struct {
	id       uint32
	complete bool // the client has sent everything
	begun    bool // there was data
	messages messages
	bytes    int64     // of a message that is not complete
	since    time.Time // when that message began, or the stream if there was no data
}

// Read implements net.Conn. It closes the connection if all together hold too much, and this one
// more than its share.
func (c *guardedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.received(p[:n]) {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn.
func (c *guardedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	c.out.observe(p[:n], func(f frame) {
		if f.ends() {
			c.endLocked(f.stream)
		}
	}, nil)
	c.mu.Unlock()
	return n, err
}

// Close implements net.Conn.
func (c *guardedConn) Close() error {
	c.once.Do(func() {
		c.guard.mu.Lock()
		delete(c.guard.conns, c)
		c.guard.mu.Unlock()
		c.mu.Lock()
		c.closed = true
		c.guard.open.Add(-int64(len(c.streams)))
		c.guard.bytes.Add(-c.bytes)
		c.streams, c.bytes = nil, 0
		c.mu.Unlock()
	})
	return c.Conn.Close()
}

// received follows what the client sent, and reports whether it is too much.
func (c *guardedConn) received(p []byte) bool {
	c.mu.Lock()
	var at time.Time
	now := func() time.Time {
		if at.IsZero() {
			at = time.Now()
		}
		return at
	}
	c.in.observe(p, func(f frame) {
		if f.stream == 0 || c.closed {
			return
		}
		if f.kind == frameHeaders && c.find(f.stream) < 0 {
			c.streams = append(c.streams, openStream{id: f.stream, since: now()})
			c.guard.open.Add(1)
		}
		i := c.find(f.stream)
		if i < 0 {
			return
		}
		s := &c.streams[i]
		switch {
		case f.kind == frameReset:
			c.endLocked(f.stream)
		case f.ends():
			c.holdLocked(s, -s.bytes)
			s.complete = true
		case f.kind == frameData && f.flags&flagPadded != 0: // where messages end is not known
			s.messages.lost = true
		}
	}, func(f frame, part []byte) {
		if i := c.find(f.stream); i >= 0 && !c.closed && !c.streams[i].complete {
			c.dataLocked(&c.streams[i], part, now)
		}
	})
	streams, bytes := int64(len(c.streams)), c.bytes
	c.mu.Unlock()
	g := c.guard
	manyStreams, manyBytes := g.open.Load() > g.most.streams, g.bytes.Load() > g.most.bytes
	if !manyStreams && !manyBytes {
		return false
	}
	shareStreams, shareBytes := g.shares()
	return manyStreams && streams > shareStreams || manyBytes && bytes > shareBytes
}

// dataLocked follows the data of a stream. Messages that are complete do not count any more.
func (c *guardedConn) dataLocked(s *openStream, part []byte, now func() time.Time) {
	begun := s.messages.got == 0
	if s.messages.follow(part) || begun {
		s.since, s.begun = now(), true
	}
	c.holdLocked(s, s.messages.got-s.bytes)
}

func (c *guardedConn) holdLocked(s *openStream, more int64) {
	s.bytes += more
	c.bytes += more
	if more != 0 {
		c.guard.bytes.Add(more)
	}
}

// find returns the index of a stream; -1 means that there is none. It is one of the last, mostly.
func (c *guardedConn) find(id uint32) int {
	for i := len(c.streams) - 1; i >= 0; i-- {
		if c.streams[i].id == id {
			return i
		}
	}
	return -1
}

func (c *guardedConn) endLocked(id uint32) {
	i := c.find(id)
	if i < 0 {
		return
	}
	c.holdLocked(&c.streams[i], -c.streams[i].bytes)
	last := len(c.streams) - 1
	c.streams[i] = c.streams[last]
	c.streams = c.streams[:last]
	c.guard.open.Add(-1)
}

// stalled reports whether the client has long ago begun a message, or a stream without data, that is
// still not complete.
func (c *guardedConn) stalled(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.streams {
		if s := &c.streams[i]; !s.complete && (s.bytes > 0 || !s.begun) && now.Sub(s.since) > c.guard.most.incomplete {
			return true
		}
	}
	return false
}
