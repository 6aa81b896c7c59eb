package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// directBody is the body of a response. At its end the connection becomes idle.
type directBody struct {
	body       io.Reader // nil means the next bytes of conn, of which left are still to come
	left       int64
	conn       *upstreamConn // nil after the end
	transport  *directTransport
	ctx        context.Context
	closeAfter bool  // the connection cannot be reused
	err        error // of reads after the end
}

func (b *directBody) Read(p []byte) (int, error) {
	if b.conn == nil {
		return 0, b.err
	}
	n, err := b.read(p)
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

// read returns io.EOF with the last bytes, if it knows that they are.
func (b *directBody) read(p []byte) (int, error) {
	if b.body != nil {
		return b.body.Read(p)
	}
	n, err := b.conn.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case b.left == 0:
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// begun reports whether something of a body without a length can be read without waiting:
// more than the first line of a chunk has come.
func (b *directBody) begun() bool {
	if b.conn == nil {
		return false
	}
	came, _ := b.conn.in.Peek(b.conn.in.Buffered()) // it has that many bytes
	line := bytes.IndexByte(came, '\n')
	return line >= 0 && line+1 < len(came)
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
	if c.end() && err == io.EOF && !b.closeAfter {
		b.transport.putIdle(c)
	} else {
		_ = c.Close()
	}
}
