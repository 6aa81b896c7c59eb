package gateway

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// writer is the http.ResponseWriter of a request. It sees every response: the upstream's,
// the gate's and the gateway's own.
type writer struct {
	http.ResponseWriter
	exchange   *exchange
	status     int // of the response; 0 before it
	hijacked   bool
	clientGone bool         // the client left before the response
	sent       atomic.Int64 // bytes of the body; atomic because another goroutine writes to a tunnel
	stall      stall
}

// buffered is how much of an answer net/http keeps to itself in HTTP/2, whether the
// client takes anything or not.
const buffered = 4 << 10

// A stream of HTTP/2 is written to in parts, so that a client which takes them slowly, but
// takes them, is not mistaken for one that stands still.
const (
	part      = 16 << 10
	smallPart = 1 << 10 // for a client that was slow to take the last
)

// watch holds the client of a stream to taking what is written.
func (w *writer) watch() {
	if l := &w.exchange.gateway.o.Limits; !w.exchange.http1 && l.Stall > 0 && w.stall.expire == nil {
		w.stall.limit = l.Stall
		w.stall.expire = func() { _ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(past) } // or it has ended
	}
}

// Unwrap makes the methods of the connection available to http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		w.exchange.sent1xx.Store(true)
		w.ResponseWriter.WriteHeader(status)
		return
	}
	if w.status == 0 {
		if w.clientGone = w.exchange.Err() != nil && w.exchange.body.err() == nil; !w.clientGone {
			w.status = status
		} else {
			w.status = statusClientGone
		}
		w.exchange.beforeHeader(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if stall := w.exchange.gateway.o.Limits.Stall; !w.exchange.http1 && stall > 0 && w.sent.Load()+int64(len(b)) > buffered {
		return w.writeStream(b, stall)
	}
	n, err := w.ResponseWriter.Write(b)
	w.sent.Add(int64(n))
	return n, err
}

// writeStream writes what the client of a stream may have to make room for.
func (w *writer) writeStream(b []byte, stall time.Duration) (n int, err error) {
	w.watch()
	size := part
	for n < len(b) && err == nil {
		start := time.Now()
		m := 0
		w.stall.begin()
		m, err = w.ResponseWriter.Write(b[n:min(n+size, len(b))])
		w.stall.done()
		n += m
		w.sent.Add(int64(m))
		if size = part; time.Since(start) > stall/8 {
			size = smallPart
		}
	}
	w.exchange.heard()
	return n, err
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError implements the method that http.ResponseController calls.
func (w *writer) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.watch()
	w.stall.begin()
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.stall.done()
	w.exchange.heard()
	return err
}

// Hijack implements http.Hijacker. The connection becomes a tunnel.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return conn, buf, err
	}
	if seen, ok := conn.(interface{ unwatch() }); ok {
		seen.unwatch()
	}
	w.hijacked, w.status = true, http.StatusSwitchingProtocols
	early, _ := buf.Reader.Peek(buf.Reader.Buffered()) // it has that many bytes
	return tunnel{conn, &w.sent, bytes.NewReader(early)}, buf, nil
}

// tunnel is a hijacked connection that counts what is sent to the client.
type tunnel struct {
	net.Conn
	sent  *atomic.Int64
	early *bytes.Reader // what the client sent behind its request, before it was answered
}

func (t tunnel) Read(b []byte) (int, error) {
	if t.early.Len() > 0 {
		return t.early.Read(b)
	}
	return t.Conn.Read(b)
}

func (t tunnel) Write(b []byte) (int, error) {
	n, err := t.Conn.Write(b)
	t.sent.Add(int64(n))
	return n, err
}

// CloseWrite passes on that the upstream has closed its side. The client gets a moment to
// close its own, which nobody reads any more.
func (t tunnel) CloseWrite() error {
	_ = t.SetReadDeadline(time.Now().Add(lingering)) // it may be closed already
	return closeWrite(t.Conn)
}

// closeWrite closes the write side of a connection, or all of it if it cannot do that.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// beforeHeader is called before the response headers are sent.
func (x *exchange) beforeHeader(h http.Header) {
	switch {
	case x.gateway.draining.Load():
		h["Connection"] = []string{"close"}
	case !x.http1 && !x.connInfo.isSurplus():
		delete(h, "Connection") // a bad stream ends without its connection
	}
	if !x.body.pending() {
		return
	}
	// net/http reads the rest of the body before it sends a response. For our own
	// responses it may do so for a moment. An upstream's may be one half of a
	// conversation: if the connection is not reused, it is sent at once.
	switch {
	case x.upstream == nil:
		if x.http1 {
			x.linger()
		}
		return
	case x.http1:
		h["Connection"] = []string{"close"}
	}
	if x.body.unknownLength() {
		x.converse()
	}
}

// converse lets the client be silent for as long as a tunnel may be: the upstream answers
// while it is still sending, and it is theirs to say who has the next word. A body of an
// announced length is an upload, and no conversation.
func (x *exchange) converse() {
	if c := x.connInfo.watched(); c != nil {
		c.converse()
		return
	}
	x.talks.Store(true)
	x.body.stall.relax(x.gateway.o.Limits.Tunnel)
}

// heard is called when something was written to the client of a stream: in a conversation
// it may be silent from then on.
func (x *exchange) heard() {
	if x.talks.Load() {
		x.body.stall.relax(x.gateway.o.Limits.Tunnel)
	}
}
