package gateway

import (
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
	if res.Header != nil {
		o.answer.takeAll(res.Header)
	}
	res.Header = o.answer.header
	streams := isStream(res)
	if _, ok := res.Header["Content-Type"]; streams && !ok {
		res.Header["Content-Type"] = nil // or net/http guesses it, if the body begins to come soon enough
	}
	announced := len(res.Trailer)
	o.answer.announce(res.Trailer)
	if o.x.costFinder != nil {
		res.Body = o.x.costFinder.Wrap(res)
	}
	o.w.WriteHeader(res.StatusCode)
	if res.Body != http.NoBody {
		err := o.copyBody(res.Body, streams)
		_ = res.Body.Close() // it fills in the trailers
		if err != nil {
			abort()
		}
	}
	o.sendTrailers(res.Trailer, announced)
}

// copyBody copies the body of the answer. A stream is flushed as it comes; a body of known
// length is flushed when it is complete or a buffer is full.
func (o *outgoing) copyBody(body io.Reader, streams bool) error {
	buf := responseBuffers.Get()
	defer responseBuffers.Put(buf)
	controller := http.NewResponseController(o.w)
	if streams && !o.directBody.begun() {
		_ = controller.Flush() // the body may take a while; if this fails, so does writing it
	}
	for {
		n, err := body.Read(buf)
		if n > 0 {
			wrote, failed := o.w.Write(buf[:n])
			switch {
			case failed != nil:
				return failed
			case wrote < n:
				return io.ErrShortWrite
			}
			if streams && err == nil {
				_ = controller.Flush()
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				o.x.gateway.o.Log.LogAttrs(context.Background(), slog.LevelDebug, "an answer breaks off", slog.String("id", o.x.record.ID), slog.String("error", err.Error()))
			}
			return err
		}
	}
}

// isStream reports whether the client waits for every part of a body.
func isStream(res *http.Response) bool {
	if res.ContentLength < 0 {
		return true
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// sendTrailers sends the trailers of the answer, of which so many were announced.
func (o *outgoing) sendTrailers(trailer http.Header, announced int) {
	if len(trailer) == 0 {
		return
	}
	_ = http.NewResponseController(o.w).Flush() // without it, net/http may send a length, and no trailers
	prefix := http.TrailerPrefix
	if len(trailer) == announced {
		prefix = ""
	}
	header := o.w.Header()
	for name, values := range trailer {
		header[prefix+name] = append(header[prefix+name], values...)
	}
}
