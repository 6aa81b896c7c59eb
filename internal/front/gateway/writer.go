package gateway

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"sync/atomic"
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
	n, err := w.exchange.client.Write(b)
	w.sent.Add(int64(n))
	return n, err
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError implements the method that http.ResponseController calls.
func (w *writer) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.exchange.client.Flush()
}

// Hijack implements http.Hijacker. The connection becomes a tunnel.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return conn, buf, err
	}
	w.hijacked, w.status = true, http.StatusSwitchingProtocols
	early, _ := buf.Reader.Peek(buf.Reader.Buffered()) // it has that many bytes
	return tunnelConn{conn, &w.sent, bytes.NewReader(early)}, buf, nil
}

// beforeHeader sets the Connection header and the time limits for the rest of the request
// body. It is called before the response headers are sent.
func (x *exchange) beforeHeader(h http.Header) {
	switch {
	case x.gateway.server.Draining():
		h["Connection"] = []string{"close"}
	case !x.http1 && x.client.Surplus() == nil:
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
			x.client.DropBody()
		}
		return
	case x.http1:
		h["Connection"] = []string{"close"}
	}
	if x.body.unknownLength() {
		x.client.AllowSilence() // a body of a known length is an upload, and no conversation
	}
}
