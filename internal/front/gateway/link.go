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

// mostHead is how long the head of an upstream's answer may be.
const mostHead = 1 << 20

var (
	errLongHead = errors.New("the head of the answer is too long")
	errSwitched = errors.New("the upstream switched protocols unasked")
)

// link is a connection to an upstream, used by one request at a time.
type link struct {
	net.Conn
	in    *bufio.Reader
	out   *bufio.Writer
	look  *look
	until time.Time // when reading and writing ends; zero: never
	since time.Time // when it became idle
	head  int64     // how much of a head may still come; below 0: anything
	asked bool      // something of the request was sent
	heard bool      // something of the answer
}

func newLink(conn net.Conn) *link {
	l := &link{Conn: conn, look: newLook(conn)}
	l.in, l.out = bufio.NewReader(l), bufio.NewWriter(l)
	return l
}

// Read implements io.Reader for in.
func (l *link) Read(p []byte) (int, error) {
	if l.head == 0 {
		return 0, errLongHead
	}
	if l.head > 0 && int64(len(p)) > l.head {
		p = p[:l.head]
	}
	n, err := l.Conn.Read(p)
	if l.heard = l.heard || n > 0; l.head > 0 {
		l.head -= int64(n)
	}
	return n, err
}

// Write implements io.Writer for out.
func (l *link) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	l.asked = l.asked || n > 0
	return n, err
}

// silent reports whether nothing has come since the last answer, not even the end.
func (l *link) silent() bool { return l.in.Buffered() == 0 && l.look.silent() }

// arm bounds what comes next. To set a deadline takes as long as to write a line of
// a head: one that is a little late is left as it is.
func (l *link) arm(wait time.Duration) {
	switch now := time.Now(); {
	case wait <= 0:
		l.disarm()
	case l.until.Sub(now) < wait:
		l.until = now.Add(wait + wait/8)
		_ = l.SetDeadline(l.until) // or it is closed, which reading will tell
	}
}

func (l *link) disarm() {
	if !l.until.IsZero() {
		l.until = time.Time{}
		_ = l.SetDeadline(l.until)
	}
}

// roundTrip sends r and reads the head of its answer; inform is told of answers
// before that.
func (l *link) roundTrip(r *http.Request, inform func(int, textproto.MIMEHeader) error) (*http.Response, error) {
	l.asked, l.heard = false, false
	unsent := r.Write(l.out)
	if unsent == nil {
		unsent = l.out.Flush()
	}
	// Who had enough of a request may have said so before it closed.
	if unsent != nil && !(l.asked && wasReset(unsent)) {
		return nil, unsent
	}
	l.head = mostHead
	defer func() { l.head = -1 }()
	for {
		res, err := http.ReadResponse(l.in, r)
		switch {
		case unsent != nil && (err != nil || res.ContentLength < 0 && len(res.TransferEncoding) == 0): // or nobody could tell where it was cut off
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

// straightBody is the body of an answer. Its connection is free for another request
// as soon as it has been read to the end.
type straightBody struct {
	from    io.Reader
	link    *link // nil: it has ended
	owner   *straight
	unwatch func() bool
	ctx     context.Context
	last    bool  // nothing may come after it
	err     error // that it has ended with
}

func (b *straightBody) Read(p []byte) (int, error) {
	if b.link == nil {
		return 0, b.err
	}
	n, err := b.from.Read(p)
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

// Close implements io.Closer. A body that nobody wants to the end takes its
// connection with it: there is no telling how much is still to come.
func (b *straightBody) Close() error {
	b.end(http.ErrBodyReadAfterClose)
	return nil
}

// end is called with io.EOF if the body is whole.
func (b *straightBody) end(err error) {
	l := b.link
	if l == nil {
		return
	}
	b.link, b.err = nil, err
	if b.unwatch() && err == io.EOF && !b.last {
		b.owner.put(l)
	} else {
		_ = l.Close()
	}
}
