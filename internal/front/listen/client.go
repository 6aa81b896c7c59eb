package listen

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Client is the client of one request to a Server. It bounds how long the client may stall:
// over HTTP/1 the connection does most of that, but a stream of HTTP/2 shares its connection
// with others, so only the code that waits can tell.
//
// Open it first, read the body by ReadBody, write the response by Write and Flush, and End
// it when the handler is done. Handlers of a Server without OwnClients need not know it.
type Client struct {
	limits    *HTTPLimits
	w         http.ResponseWriter
	conn      *connInfo // nil if the connection did not come through a Server
	malformed string
	http1     bool
	start     time.Time
	written   int64       // bytes of the response body
	in, out   stallTimer  // of HTTP/2
	duplex    atomic.Bool // of HTTP/2: the request is answered while its body is sent
	timedOut  atomic.Bool // the body
}

// past is a deadline that ends a wait at once.
var past = time.Unix(1, 0)

// Open is called once, when a request begins.
func (c *Client) Open(s *Server, w http.ResponseWriter, r *http.Request, now time.Time) {
	c.limits, c.w, c.http1, c.start = &s.o.Limits, w, r.ProtoMajor == 1, now
	c.conn, _ = r.Context().Value(connInfoKey{}).(*connInfo)
	c.malformed = c.conn.beginRequest()
	if !c.http1 && c.limits.Stall > 0 && r.Body != nil && r.Body != http.NoBody {
		c.in.limit = c.limits.Stall
		c.in.expire = func() { _ = http.NewResponseController(w).SetReadDeadline(past) } // the stream may have ended
	}
}

// Malformed returns the answer to a request that two servers may read in two ways; nil for
// any other.
func (c *Client) Malformed() *Problem {
	if c.malformed == "" {
		return nil
	}
	p := NewProblem(http.StatusBadRequest, c.malformed)
	p.CloseConn = true
	return p
}

// Surplus returns the answer to a request on a connection above the limit; nil for any other.
func (c *Client) Surplus() *Problem {
	if c.conn == nil || !c.conn.surplus {
		return nil
	}
	p := NewProblem(http.StatusServiceUnavailable, "Too many connections are open.")
	p.RetryAfter, p.CloseConn = time.Second, true
	return p
}

// ReadBody reads from the body of the request, which may be wrapped.
func (c *Client) ReadBody(body io.Reader, p []byte) (int, error) {
	c.in.begin()
	n, err := body.Read(p)
	c.in.end()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.timedOut.Store(true)
	}
	return n, err
}

const (
	// streamBuffer is how much of a response net/http buffers in HTTP/2, whether the
	// client reads it or not.
	streamBuffer = 4 << 10
	// A stream of HTTP/2 is written in pieces, so that a client that reads slowly is not
	// mistaken for one that does not read.
	pieceSize      = 16 << 10
	smallPieceSize = 1 << 10 // for a client that was slow to take the last one
)

// Write writes to the response.
func (c *Client) Write(b []byte) (int, error) {
	if !c.http1 && c.limits.Stall > 0 && c.written+int64(len(b)) > streamBuffer {
		return c.writeStream(b)
	}
	n, err := c.w.Write(b)
	c.written += int64(n)
	return n, err
}

// writeStream is Write for a stream of HTTP/2: it writes b in pieces, each of which may take Stall.
func (c *Client) writeStream(b []byte) (n int, err error) {
	c.watchWrites()
	size := pieceSize
	for n < len(b) && err == nil {
		start := time.Now()
		m := 0
		c.out.begin()
		m, err = c.w.Write(b[n:min(n+size, len(b))])
		c.out.end()
		n += m
		c.written += int64(m)
		if size = pieceSize; time.Since(start) > c.limits.Stall/8 {
			size = smallPieceSize
		}
	}
	c.wrote()
	return n, err
}

// watchWrites starts to hold the client of a stream to reading what is written.
func (c *Client) watchWrites() {
	if !c.http1 && c.limits.Stall > 0 && c.out.expire == nil {
		c.out.limit = c.limits.Stall
		c.out.expire = func() { _ = http.NewResponseController(c.w).SetWriteDeadline(past) } // the stream may have ended
	}
}

// Flush sends what was written.
func (c *Client) Flush() error {
	c.watchWrites()
	c.out.begin()
	err := http.NewResponseController(c.w).Flush()
	c.out.end()
	c.wrote()
	return err
}

// wrote is called after something was written: where the request is answered while its body
// is sent, the client may be silent from then on.
func (c *Client) wrote() {
	if c.duplex.Load() {
		c.in.setLimit(c.limits.Tunnel)
	}
}

// AllowSilence lets the client be silent, between two parts of a body without a length, for
// as long as a tunnel may be: the request is answered while its body is sent, and only the
// two sides know whose turn it is.
func (c *Client) AllowSilence() {
	if c.conn != nil && c.conn.http1 != nil {
		c.conn.http1.duplex.Store(true)
		return
	}
	c.duplex.Store(true)
	c.in.setLimit(c.limits.Tunnel)
}

// SilenceLimit returns for how long both sides of a tunnel may be silent; 0 means any time.
func (c *Client) SilenceLimit() time.Duration { return c.limits.Tunnel }

// Reset closes a connection of HTTP/1 so that its client gets an error. Ending an answer without
// a length in any other way would make it look complete. An aborted stream of HTTP/2 is reset
// anyway.
func (c *Client) Reset() {
	if c.conn == nil || c.conn.http1 == nil || c.conn.http1.counted == nil {
		return
	}
	conn := c.conn.http1.counted
	if tcp, ok := conn.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed already
	}
	_ = conn.Close() // below TLS, so that it is not told either that this is the end
}

// Linger is how long a client may take to send the rest of a body that is no longer wanted,
// before its connection is closed.
const Linger = 2 * time.Second

// DropBody bounds how long net/http reads the rest of a body over HTTP/1 in order to reuse
// the connection. A client whose body has timed out gets no more time.
func (c *Client) DropBody() {
	limit := Linger
	if c.timedOut.Load() {
		limit = 0
	}
	if c.conn != nil && c.conn.http1 != nil {
		c.conn.http1.finishBodyWithin(limit)
		return
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(limit)) // there may be no connection to wait for
}

// End is called when the handler is done, unless the connection was hijacked; pending says
// that the client may still have some of the body to send.
func (c *Client) End(pending bool) {
	switch {
	case !c.http1:
		c.endStream()
	case pending:
		c.DropBody()
	}
}

// endStream bounds how long net/http waits for the client to read the rest of the response:
// the stream stays open for that after the handler has returned.
func (c *Client) endStream() {
	c.in.stop()
	c.out.stop()
	if c.written == 0 || c.limits.Stall <= 0 {
		return
	}
	latest := time.Now().Add(c.limits.Stall)
	if c.limits.Write > 0 {
		latest = earlier(latest, c.start.Add(c.limits.Write))
	}
	_ = http.NewResponseController(c.w).SetWriteDeadline(latest) // the stream may have ended
}
