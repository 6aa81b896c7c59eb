package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"time"
)

// maxResponseHead is the most bytes of the status line and headers of an upstream's response.
const maxResponseHead = 1 << 20

var (
	errLongHead = errors.New("the head of the answer is too long")
	errSwitched = errors.New("the upstream switched protocols unasked")
)

// upstreamConn is a connection to an upstream, used by one request at a time.
type upstreamConn struct {
	net.Conn
	in        *bufio.Reader
	out       *bufio.Writer
	idleCheck *idleCheck
	deadline  time.Time // of reads and writes; zero means none
	idleSince time.Time
	headLeft  int64 // bytes that the headers may still have; negative in a body
	sent      bool  // some bytes of the request
	received  bool  // some bytes of the response
}

func newUpstreamConn(conn net.Conn) *upstreamConn {
	c := &upstreamConn{Conn: conn, idleCheck: newIdleCheck(conn)}
	c.in, c.out = bufio.NewReader(c), bufio.NewWriter(c)
	return c
}

// Read implements io.Reader for in.
func (c *upstreamConn) Read(p []byte) (int, error) {
	if c.headLeft == 0 {
		return 0, errLongHead
	}
	if c.headLeft > 0 && int64(len(p)) > c.headLeft {
		p = p[:c.headLeft]
	}
	n, err := c.Conn.Read(p)
	if c.received = c.received || n > 0; c.headLeft > 0 {
		c.headLeft -= int64(n)
	}
	return n, err
}

// Write implements io.Writer for out.
func (c *upstreamConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent = c.sent || n > 0
	return n, err
}

// stillIdle reports whether nothing has come since the last response, not even a close.
func (c *upstreamConn) stillIdle() bool { return c.in.Buffered() == 0 && c.idleCheck.nothingCame() }

// setTimeout sets a deadline for what comes next. Setting one is expensive, so a deadline that is
// a little late stays.
func (c *upstreamConn) setTimeout(wait time.Duration) {
	switch now := time.Now(); {
	case wait <= 0:
		c.clearTimeout()
	case c.deadline.Sub(now) < wait:
		c.deadline = now.Add(wait + wait/8)
		_ = c.SetDeadline(c.deadline) // a closed connection fails the next read
	}
}

func (c *upstreamConn) clearTimeout() {
	if !c.deadline.IsZero() {
		c.deadline = time.Time{}
		_ = c.SetDeadline(c.deadline)
	}
}

// roundTrip sends r and reads the headers of the response; inform is called with 1xx
// responses.
func (c *upstreamConn) roundTrip(r *http.Request, inform func(int, textproto.MIMEHeader) error) (*http.Response, error) {
	c.sent, c.received = false, false
	unsent := r.Write(c.out)
	if unsent == nil {
		unsent = c.out.Flush()
	}
	// An upstream may answer a part of a request and close.
	if unsent != nil && !(c.sent && wasReset(unsent)) {
		return nil, unsent
	}
	c.headLeft = maxResponseHead
	defer func() { c.headLeft = -1 }()
	for {
		res, err := http.ReadResponse(c.in, r)
		switch {
		case unsent != nil && (err != nil || res.ContentLength < 0 && len(res.TransferEncoding) == 0): // without a length, a truncated body would look complete
			return nil, unsent
		case err != nil:
			return nil, err
		case res.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitched
		case res.StatusCode < 100 || res.StatusCode >= 200:
			res.Close = res.Close || unsent != nil
			return res, nil
		}
		if inform == nil {
			continue
		}
		if err := inform(res.StatusCode, textproto.MIMEHeader(res.Header)); err != nil {
			return nil, err
		}
	}
}

// directBody is the body of a response. At its end the connection becomes idle.
type directBody struct {
	body       io.Reader
	conn       *upstreamConn // nil after the end
	transport  *directTransport
	stopCancel func() bool
	ctx        context.Context
	closeAfter bool  // the connection cannot be reused
	err        error // of reads after the end
}

func (b *directBody) Read(p []byte) (int, error) {
	if b.conn == nil {
		return 0, b.err
	}
	n, err := b.body.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.end(io.EOF)
	case err != nil:
		if b.ctx.Err() != nil {
			err = b.ctx.Err()
		}
		b.end(err)
	}
	return n, err
}

// Close implements io.Closer. A body that is not read to its end costs the connection,
// because how much is still to come is unknown.
func (b *directBody) Close() error {
	b.end(http.ErrBodyReadAfterClose)
	return nil
}

// end ends the body, the first time it is called; err is io.EOF if the body is complete.
func (b *directBody) end(err error) {
	c := b.conn
	if c == nil {
		return
	}
	b.conn, b.err = nil, err
	if b.stopCancel() && err == io.EOF && !b.closeAfter {
		b.transport.putIdle(c)
	} else {
		_ = c.Close()
	}
}
