package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
)

// relay sends the answer of an upstream to the client. If the rest of it does not come, the
// client's connection is closed, or its stream reset: what it has got must not look complete.
func (o *outgoing) relay(res *http.Response) {
	o.takeHeader(res)
	o.answer.complete(res.StatusCode)
	o.answer.announce(res.Trailer)
	if o.x.costFinder != nil {
		res.Body = o.x.costFinder.Wrap(res)
	}
	o.w.WriteHeader(res.StatusCode)
	if res.Body != http.NoBody {
		err := o.copyBody(res.Body, isStream(res))
		_ = res.Body.Close() // it fills in the trailers
		if err != nil {
			o.breakOff()
		}
	}
	if len(res.Trailer) > 0 {
		_ = http.NewResponseController(o.w).Flush() // or net/http may send a length, and no trailers
		o.answer.takeTrailers(res.Trailer)
	}
}

// takeHeader sets the header of res to the one that the client gets. If the head was plain, that one
// is complete since the head was read.
func (o *outgoing) takeHeader(res *http.Response) {
	if res.Header != nil {
		o.answer.takeAll(res.Header)
	}
	res.Header = o.answer.header
}

// breakOff ends an answer that is not complete.
func (o *outgoing) breakOff() {
	if !o.in.ProtoAtLeast(1, 1) {
		o.x.client.Reset() // there, the end of the connection may be that of the answer
	}
	abort()
}

// copyBody copies the body of the answer. A stream is flushed as it comes; a body of known
// length is flushed when it is complete or a buffer is full.
func (o *outgoing) copyBody(body io.Reader, streams bool) error {
	buf := responseBuffers.Get()
	controller := http.NewResponseController(o.w)
	if streams && !o.directBody.begun() {
		_ = controller.Flush() // the body may take a while; if this fails, so does writing it
	}
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if wrote, failed := o.w.Write(buf[:n]); failed != nil || wrote < n {
				// Over HTTP/2, net/http may still read the buffer, so nobody else gets it.
				return cmp.Or(failed, io.ErrShortWrite)
			}
			if streams && err == nil {
				_ = controller.Flush()
			}
		}
		if err != nil {
			responseBuffers.Put(buf)
			return o.endOfBody(err)
		}
	}
}

// endOfBody returns why a body is not complete; nil if it is. err is of its last read.
func (o *outgoing) endOfBody(err error) error {
	if err == io.EOF {
		return nil
	}
	if !errors.Is(err, context.Canceled) {
		o.x.gateway.o.Log.LogAttrs(context.Background(), slog.LevelDebug, "an answer breaks off", slog.String("id", o.x.record.ID), slog.String("error", err.Error()))
	}
	return err
}

// isStream reports whether the client may wait for every part of a body: if its length is unknown,
// or it is a stream of events.
func isStream(res *http.Response) bool {
	if res.ContentLength < 0 {
		return true
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}
