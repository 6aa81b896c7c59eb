package main

import (
	"net"
	"sync"
	"time"
)

// mood is what a proxy does to the traffic between a gateway and Redis.
type mood uint8

const (
	passing mood = iota
	refusing
	silent  // takes connections and what is sent, and passes it on when the mood changes
	delayed // answers come late

	// One piece in garbleEvery of what Redis answers is changed.
	surplus   // an extra answer is added
	flipped   // one bit is flipped
	truncated // the end is missing
	doubled   // it is sent twice
)

// lag is by how much answers are delayed, unless proxy.late says otherwise.
const lag = 200 * time.Millisecond

// proxy stands between a gateway and Redis.
type proxy struct {
	address, target string
	late            time.Duration // by how much answers are delayed

	mu     sync.Mutex
	mood   mood
	change chan struct{} // closed when the mood changes
	in     net.Listener  // nil while refusing
	conns  map[net.Conn]bool
}

func newProxy(target string) (*proxy, error) {
	p := &proxy{target: target, late: lag, change: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p, p.listenLocked("127.0.0.1:0")
}

func (p *proxy) listenLocked(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	p.in, p.address = l, l.Addr().String()
	go p.accept(l)
	return nil
}

func (p *proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go p.serve(c)
	}
}

// set changes the mood. Connections stay, unless it is to refuse; then all are cut.
func (p *proxy) set(to mood) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mood = to
	close(p.change)
	p.change = make(chan struct{})
	switch {
	case to == refusing && p.in != nil:
		_ = p.in.Close()
		p.in = nil
		for c := range p.conns {
			_ = c.Close()
		}
	case to != refusing && p.in == nil:
		return p.listenLocked(p.address)
	}
	return nil
}

func (p *proxy) now() (mood, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mood, p.change
}

// track adds c to the connections that are closed when the mood turns to refusing. It reports
// false if it is refusing already.
func (p *proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	_ = c.Close()
}

func (p *proxy) serve(c net.Conn) {
	defer p.drop(c)
	if !p.track(c) {
		return
	}
	up, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		return
	}
	defer p.drop(up)
	if !p.track(up) {
		return
	}
	go func() {
		p.relay(up, c, false)
		p.drop(up)
	}()
	p.relay(c, up, true)
}

// relay copies from one side to the other, as the mood says. While it is silent, data is held
// back. Delayed answers arrive late, each by the same time. answers means that from is Redis.
func (p *proxy) relay(to, from net.Conn, answers bool) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1024)
	gone := make(chan struct{})
	defer close(gone)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 16<<10)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			due := time.Now()
			if is, _ := p.now(); is == delayed && answers {
				due = due.Add(p.late)
			}
			data = data[:n]
			if is, _ := p.now(); answers {
				data = garble(is, data)
			}
			select {
			case pieces <- piece{data, due}:
			case <-gone:
				return
			}
		}
	}()
	for next := range pieces {
		for is, change := p.now(); is == silent; is, change = p.now() {
			<-change
		}
		time.Sleep(time.Until(next.due))
		if _, err := to.Write(next.data); err != nil {
			return
		}
	}
}

// Close closes the listener and all connections.
func (p *proxy) Close() error { return p.set(refusing) }
