package gateway

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// writer is the one to the client: it sees everything that is answered, by
// whomever.
type writer struct {
	http.ResponseWriter
	exchange *exchange
	status   int // that the client got; 0: not answered yet
	hijacked bool
	gone     bool         // the client, before it was answered
	sent     atomic.Int64 // bytes; a tunnel is written to by another goroutine
	stall    stall
}

// buffered is how much the system takes off our hands, whether the client reads
// or not.
const buffered = 16 << 10

// hold has the client keep reading, unless there is a limit for the whole answer.
func (w *writer) hold(set func(time.Time) error) {
	if l := &w.exchange.gateway.o.Limits; l.Write == 0 {
		w.stall.after, w.stall.set = l.Stall, set
	}
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		w.exchange.informed.Store(true)
		w.ResponseWriter.WriteHeader(status)
		return
	}
	if w.status == 0 {
		if w.gone = w.exchange.Err() != nil && w.exchange.body.err() == nil; !w.gone {
			w.status = status
		} else {
			w.status = clientLeft
		}
		w.exchange.answering(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.sent.Load()+int64(len(b)) > buffered {
		if w.stall.set == nil {
			w.hold(http.NewResponseController(w.ResponseWriter).SetWriteDeadline)
		}
		w.stall.moving()
	}
	n, err := w.ResponseWriter.Write(b)
	w.sent.Add(int64(n))
	return n, err
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is what http.ResponseController calls.
func (w *writer) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker. What is hijacked here becomes a tunnel.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return conn, buf, err
	}
	if seen, ok := conn.(interface{ unwatch() }); ok {
		seen.unwatch()
	}
	w.hijacked, w.status = true, http.StatusSwitchingProtocols
	w.hold(conn.SetWriteDeadline)
	return tunnel{conn, &w.sent, &w.stall}, buf, nil
}

// tunnel counts what is sent to the client.
type tunnel struct {
	net.Conn
	sent  *atomic.Int64
	stall *stall
}

func (t tunnel) Write(b []byte) (int, error) {
	t.stall.moving()
	n, err := t.Conn.Write(b)
	t.sent.Add(int64(n))
	return n, err
}

// CloseWrite passes on that the upstream has said all. The client gets a moment to
// end its side, too: nobody listens to it any more.
func (t tunnel) CloseWrite() error {
	_ = t.SetReadDeadline(time.Now().Add(lingering)) // or it is closed already
	return closeWrite(t.Conn)
}

// closeWrite closes one direction, where a connection can do that.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// answering is called before the head of the answer is sent.
func (x *exchange) answering(h http.Header) {
	if x.gateway.draining.Load() {
		h["Connection"] = []string{"close"}
	}
	if !x.http1 || !x.body.pending() {
		return
	}
	// net/http wants the whole body before it sends an answer. One of ours waits
	// a little for that. An upstream's may be one half of a conversation: where
	// the connection is not used again, it is sent at once and the body goes on.
	if x.upstream == nil {
		x.linger()
	} else {
		h["Connection"] = []string{"close"}
		x.body.stall.cease()
	}
}
