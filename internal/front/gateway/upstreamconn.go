package gateway

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
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

// roundTrip sends a request without a body, and reads the head of the response.
func (c *upstreamConn) roundTrip(out *outgoing, target, host string) (*http.Response, error) {
	c.sent, c.received = false, false
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

// newlines are replaced as http.Transport does: no value ends its line.
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
