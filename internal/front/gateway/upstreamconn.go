package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// maxResponseHead is the most bytes of the status line and headers of an upstream's response.
const maxResponseHead = 1 << 20

// upstreamBuffer is the size of the buffers of a connection to an upstream.
const upstreamBuffer = 4 << 10

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

	ctx       context.Context // of the request; nil between requests
	latest    time.Time       // when the headers must have come; zero means any time
	stopWatch func() bool     // stops closing the connection when ctx ends; nil before watch
}

func newUpstreamConn(conn net.Conn) *upstreamConn {
	c := &upstreamConn{Conn: conn, idleCheck: newIdleCheck(conn)}
	c.in, c.out = bufio.NewReaderSize(c, upstreamBuffer), bufio.NewWriterSize(c, upstreamBuffer)
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
	if n == 0 && c.isSlow(err) {
		c.watch()
		n, err = c.Conn.Read(p)
	}
	if c.received = c.received || n > 0; c.headLeft > 0 {
		c.headLeft -= int64(n)
	}
	return n, err
}

// Write implements io.Writer for out.
func (c *upstreamConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.isSlow(err) {
		c.watch()
		var more int
		more, err = c.Conn.Write(p[n:])
		n += more
	}
	c.sent = c.sent || n > 0
	return n, err
}

// stillIdle reports whether nothing has come since the last response, not even a close.
func (c *upstreamConn) stillIdle() bool { return c.in.Buffered() == 0 && c.idleCheck.nothingCame() }

// An upstream may take this long, at least and at most, before the client is watched.
const (
	leastUnwatched = 50 * time.Millisecond
	mostUnwatched  = 250 * time.Millisecond
)

// begin is called before a request with that context, whose response headers must come within
// headTimeout; 0 means any time.
//
// To watch the client costs more than to set a deadline, and most upstreams answer at once. So
// the connection gets a short deadline, and the client is watched only after that. A deadline
// that is a little late stays, so that it is not set for every request.
func (c *upstreamConn) begin(ctx context.Context, now time.Time, headTimeout time.Duration) {
	c.sent, c.received = false, false
	c.ctx, c.latest = ctx, time.Time{}
	if headTimeout > 0 {
		c.latest = now.Add(headTimeout)
		if headTimeout < mostUnwatched {
			c.watch()
			return
		}
	}
	if left := c.deadline.Sub(now); left < leastUnwatched || left > mostUnwatched {
		c.setDeadline(now.Add(mostUnwatched))
	}
}

// isSlow reports whether err comes from the short deadline of begin.
func (c *upstreamConn) isSlow(err error) bool {
	return err != nil && c.ctx != nil && c.stopWatch == nil && errors.Is(err, os.ErrDeadlineExceeded)
}

// watch closes the connection if the request is cancelled, and gives the upstream the rest of
// its time.
func (c *upstreamConn) watch() {
	c.stopWatch = context.AfterFunc(c.ctx, func() { _ = c.Close() })
	c.setDeadline(c.latest)
}

// beginBody is called when the headers have come and the body has not: it may take any time.
func (c *upstreamConn) beginBody() {
	c.latest = time.Time{}
	if c.stopWatch == nil {
		c.watch()
	} else {
		c.setDeadline(c.latest)
	}
}

// end is called after a request. It reports whether the connection was not closed meanwhile.
func (c *upstreamConn) end() bool {
	open := c.stopWatch == nil || c.stopWatch()
	c.ctx, c.stopWatch = nil, nil
	return open
}

func (c *upstreamConn) setDeadline(t time.Time) {
	c.deadline = t
	_ = c.SetDeadline(t) // a closed connection fails the next read
}

// roundTrip sends a request without a body, and reads the head of the response.
func (c *upstreamConn) roundTrip(out *outgoing, target, host string) (*http.Response, error) {
	unsent := c.writeRequest(out.in.Method, target, host, &out.head)
	// An upstream may answer a part of a request and close.
	if unsent != nil && !(c.sent && wasReset(unsent)) {
		return nil, unsent
	}
	c.headLeft = maxResponseHead
	defer func() { c.headLeft = -1 }()
	for {
		res, err := c.readResponse(out)
		switch {
		case unsent != nil && (err != nil || res.ContentLength < 0 && len(res.TransferEncoding) == 0 && res.Body != http.NoBody): // without a length, a truncated body would look complete
			return nil, unsent
		case err != nil:
			return nil, err
		case res.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitched
		case res.StatusCode < 100 || res.StatusCode >= 200:
			res.Close = res.Close || unsent != nil
			return res, nil
		}
		out.inform(res.StatusCode, res.Header)
	}
}

// writeRequest writes a request without a body. What goes wrong with out is told by Flush.
func (c *upstreamConn) writeRequest(method, target, host string, h *head) error {
	_, _ = c.out.WriteString(method)
	_ = c.out.WriteByte(' ')
	_, _ = c.out.WriteString(target)
	_, _ = c.out.WriteString(" HTTP/1.1\r\n")
	c.writeField("Host", host)
	for name, values := range h.all() {
		switch {
		case name == "Host" || name == "Content-Length": // it is written above; there is no body
			continue
		case name == "User-Agent" && len(values) > 0: // one or none, as http.Transport sends it
			if values = values[:1]; values[0] == "" {
				continue
			}
		}
		for _, value := range values {
			c.writeField(name, value)
		}
	}
	_, _ = c.out.WriteString("\r\n")
	return c.out.Flush()
}

// newlines replaces line ends by spaces, as http.Transport does, so that no value ends its line.
var newlines = strings.NewReplacer("\n", " ", "\r", " ")

func (c *upstreamConn) writeField(name, value string) {
	if strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, '\r') >= 0 {
		value = newlines.Replace(value)
	}
	_, _ = c.out.WriteString(name)
	_, _ = c.out.WriteString(": ")
	_, _ = c.out.WriteString(value)
	_, _ = c.out.WriteString("\r\n")
}

// readResponse reads the head of a response. If it is plain, its header is in out.answer, and
// that of the result is nil.
func (c *upstreamConn) readResponse(out *outgoing) (*http.Response, error) {
	var p plainHead
	for n := 1; n <= upstreamBuffer; n = c.in.Buffered() + 1 {
		if _, err := c.in.Peek(n); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		b, _ := c.in.Peek(c.in.Buffered()) // it has that many bytes
		switch p.parse(b, out.in.Method) {
		case isPlain:
			p.addTo(&out.answer, b)
			_, _ = c.in.Discard(p.size)
			return c.plainResponse(&p, out), nil
		case notPlain:
			return http.ReadResponse(c.in, out.in)
		}
	}
	return http.ReadResponse(c.in, out.in)
}

// plainResponse returns the response with that head, whose body is next.
func (c *upstreamConn) plainResponse(p *plainHead, out *outgoing) *http.Response {
	res := &out.response
	*res = http.Response{StatusCode: p.status, ProtoMajor: 1, ProtoMinor: 1, ContentLength: p.length, Close: p.close, Body: http.NoBody}
	if p.bodiless(out.in.Method) {
		return res
	}
	if p.length > 0 {
		out.directBody.left = p.length
		res.Body = &out.directBody
	}
	return res
}
