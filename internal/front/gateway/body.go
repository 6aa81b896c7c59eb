package gateway

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync/atomic"

	"tidegate.dev/tidegate/internal/front/listen"
)

// body is the body of a request. It records how much was read, and why not more.
// The zero value is a request without a body.
type body struct {
	inner   io.ReadCloser
	client  *listen.Client
	length  int64       // Content-Length; -1 if unknown
	trailer http.Header // filled at the end of the body
	// trailers are the names that are passed on: net/http adds some that were not announced.
	trailers map[string]bool
	read     atomic.Int64
	complete atomic.Bool
	readErr  atomic.Pointer[error] // the first error but io.EOF
}

func (b *body) open(r *http.Request, x *exchange) {
	b.inner, b.client, b.length, b.trailer = r.Body, &x.client, r.ContentLength, r.Trailer
	if limit := x.gateway.o.Limits.Body; limit > 0 {
		// Without a ResponseWriter: http.Transport reads the body on a goroutine of its own,
		// and at the limit MaxBytesReader would change the header of the answer.
		b.inner = http.MaxBytesReader(nil, r.Body, limit)
	}
}

// Read implements io.Reader. After the end it does not read the inner body again: http.Transport
// reads beyond the Content-Length, and net/http may have closed the body by then, since the answer
// has begun. But if there are trailers, which HTTP/2 may send after a body of known length, it reads
// on until io.EOF: only then have they come.
func (b *body) Read(p []byte) (int, error) {
	if b.complete.Load() && len(b.trailers) == 0 {
		return 0, io.EOF
	}
	n, err := b.client.ReadBody(b.inner, p)
	read := b.read.Add(int64(n))
	switch {
	case err == io.EOF:
		b.complete.Store(true)
		maps.DeleteFunc(b.trailer, func(name string, _ []string) bool { return !b.trailers[name] })
	case err == nil && read == b.length:
		b.complete.Store(true)
	case err != nil:
		b.readErr.CompareAndSwap(nil, &err)
	}
	return n, err
}

func (b *body) Close() error { return b.inner.Close() }

// pending reports whether the client may still have some of it to send.
func (b *body) pending() bool { return b.inner != nil && !b.complete.Load() }

// unknownLength reports whether the body has no Content-Length. Client and upstream may then
// be talking to each other.
func (b *body) unknownLength() bool { return b.length < 0 }

func (b *body) received() int64 { return b.read.Load() }

// err returns why the body could not be read to its end; nil if it was, or if nobody
// tried.
func (b *body) err() error {
	if e := b.readErr.Load(); e != nil && !errors.Is(*e, http.ErrBodyReadAfterClose) {
		return *e
	}
	return nil
}

func tooLarge(limit int64) *problem {
	p := listen.NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is longer than %d bytes.", limit))
	p.CloseConn = true
	return p
}

// bodyProblem returns the answer to a request whose body could not be read.
func (g *Gateway) bodyProblem(err error) *problem {
	var long *http.MaxBytesError
	var slow interface{ Timeout() bool }
	var p *problem
	switch {
	case errors.As(err, &long):
		return tooLarge(g.o.Limits.Body)
	case errors.As(err, &slow) && slow.Timeout():
		p = listen.NewProblem(http.StatusRequestTimeout, "The body did not come in time.")
	default:
		p = badRequest("The body is broken off or wrongly encoded.")
	}
	p.CloseConn = true
	return p
}
