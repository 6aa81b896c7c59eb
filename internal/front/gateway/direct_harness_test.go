package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
)

// RoundTrip sends a request as it is, and tells the httptrace of its context of 1xx responses.
func (t *directTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	out := &outgoing{x: &exchange{Context: r.Context()}, in: r, head: head{client: r.Header, asIs: true}}
	out.answer.open(make(http.Header))
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		out.w = &tracedWriter{out.answer.header, trace}
	}
	res, err := t.send(out, r.URL.RequestURI(), r.Host)
	if err == nil && res.Header == nil {
		res.Header = out.answer.header
		res.Status = fmt.Sprint(res.StatusCode, " ", http.StatusText(res.StatusCode))
	}
	return res, err
}

// tracedWriter is a client that gets nothing but 1xx responses.
type tracedWriter struct {
	header http.Header
	trace  *httptrace.ClientTrace
}

func (w *tracedWriter) Header() http.Header         { return w.header }
func (w *tracedWriter) Write(b []byte) (int, error) { return len(b), nil }

func (w *tracedWriter) WriteHeader(status int) {
	_ = w.trace.Got1xxResponse(status, textproto.MIMEHeader(w.header))
}
