package gateway

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// body is that of a request: it knows how far it was read, and why not further.
// The zero value is one that is not there.
type body struct {
	inner   io.ReadCloser
	length  int64       // announced; -1: not
	trailer http.Header // filled at its end
	// trailers are the names that may be in it: net/http adds what was not announced.
	trailers []string
	read     atomic.Int64
	whole    atomic.Bool
	failed   atomic.Pointer[error] // why it cannot be read further
	stall    stall
}

// past is a deadline that ends a wait at once.
var past = time.Unix(1, 0)

func (b *body) open(w http.ResponseWriter, r *http.Request, l *Limits) {
	b.inner, b.length, b.trailer = r.Body, r.ContentLength, r.Trailer
	if l.Body > 0 {
		b.inner = http.MaxBytesReader(w, r.Body, l.Body)
	}
	if r.ProtoMajor > 1 && l.Stall > 0 {
		b.stall.limit = l.Stall
		b.stall.expire = func() { _ = http.NewResponseController(w).SetReadDeadline(past) } // or the stream has ended
	}
}

func (b *body) Read(p []byte) (int, error) {
	b.stall.begin()
	n, err := b.inner.Read(p)
	b.stall.done()
	read := b.read.Add(int64(n))
	switch {
	case err == io.EOF:
		b.whole.Store(true)
		maps.DeleteFunc(b.trailer, func(name string, _ []string) bool { return !slices.Contains(b.trailers, name) })
	case err == nil && read == b.length:
		b.whole.Store(true)
	case err != nil:
		b.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

func (b *body) Close() error { return b.inner.Close() }

// pending reports whether the client may have more of it to send.
func (b *body) pending() bool { return b.inner != nil && !b.whole.Load() }

// openEnded reports whether the client did not announce a length: it may have a
// conversation with the upstream.
func (b *body) openEnded() bool { return b.length < 0 }

func (b *body) received() int64 { return b.read.Load() }

// err is why the client's body could not be read to its end; nil: it was, or
// nobody wanted to.
func (b *body) err() error {
	if e := b.failed.Load(); e != nil && !errors.Is(*e, http.ErrBodyReadAfterClose) {
		return *e
	}
	return nil
}

func tooLarge(limit int64) *problem {
	p := newProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is longer than %d bytes.", limit))
	p.hurt = true
	return p
}

// bodyProblem answers a request whose own body was its end.
func (g *Gateway) bodyProblem(err error) *problem {
	var long *http.MaxBytesError
	var slow interface{ Timeout() bool }
	var p *problem
	switch {
	case errors.As(err, &long):
		return tooLarge(g.o.Limits.Body)
	case errors.As(err, &slow) && slow.Timeout():
		p = newProblem(http.StatusRequestTimeout, "The body did not come in time.")
	default:
		p = badRequest("The body is broken off or wrongly encoded.")
	}
	p.hurt = true
	return p
}
