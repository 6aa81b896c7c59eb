package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"sync/atomic"
)

// outgoing is a request on its way to upstreams, and the place for their answer.
type outgoing struct {
	x      *exchange
	in     *http.Request // from the client, or kept for later; is not changed
	head   head
	body   *onceBody // nil if there is none
	answer answerHeader
	w      http.ResponseWriter // gets 1xx responses; nil means that nobody does

	// Of a directTransport, here so that they are allocated once.
	response   http.Response
	directBody directBody
}

// newOutgoing returns the request that w answers.
func newOutgoing(x *exchange, w http.ResponseWriter, in *http.Request) *outgoing {
	out := &outgoing{x: x, in: in, w: w, head: newHead(in, x)}
	out.answer.open(w.Header())
	out.head.addHop()
	if x.costFinder != nil {
		out.head.add("Accept-Encoding", "identity") // a compressed body cannot be inspected
	}
	if x.span != nil {
		all := out.head.header()
		x.span.Forward(in.Method, all)
		out.head = head{client: all, asIs: true}
	}
	out.openBody()
	return out
}

// openBody wraps the body, unless there is none: then http.Transport must know that.
func (o *outgoing) openBody() {
	if o.in.Body != nil && o.in.Body != http.NoBody && o.in.ContentLength != 0 {
		o.body = &onceBody{inner: o.in.Body}
	}
}

// end is called when the handler returns: nobody may read the client's body after that.
func (o *outgoing) end() {
	if o.body != nil {
		o.body.ended.Store(true)
	}
}

// request returns the request to u as http.Transport sends it. It is a new one for every try,
// because the transport may still read the last.
func (o *outgoing) request(u *upstream) *http.Request {
	r := o.in.WithContext(o.in.Context()) // a copy
	r.URL = u.urlFor(o.in.URL)
	r.Header = o.head.header()
	if _, ok := r.Header["User-Agent"]; !ok {
		r.Header["User-Agent"] = []string{""} // the transport would send its own
	}
	r.Close = false // what the client wants of its own connection
	r.Body, r.GetBody = nil, nil
	if o.body != nil {
		r.Body = o.body
	}
	return r
}

// roundTrip sends the request to u through its http.Transport.
func (o *outgoing) roundTrip(u *upstream, r *http.Request) (*http.Response, error) {
	if o.w == nil {
		return u.transport.RoundTrip(r)
	}
	// The transport passes on 1xx responses on a goroutine of its own. It bounds each of them,
	// but not all together.
	var mu sync.Mutex
	answered, left := false, maxResponseHead
	trace := &httptrace.ClientTrace{Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
		mu.Lock()
		defer mu.Unlock()
		if left -= headSize(http.Header(header)); left < 0 {
			return errLongHead
		}
		if !answered {
			o.inform(status, http.Header(header))
		}
		return nil
	}}
	res, err := u.transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	mu.Lock()
	defer mu.Unlock()
	answered = true
	return res, err
}

// headSize returns about how many bytes a response with that header and no body has.
func headSize(h http.Header) int {
	size := len("HTTP/1.1 103 Early Hints\r\n\r\n")
	for name, values := range h {
		for _, value := range values {
			size += len(name) + len(": \r\n") + len(value)
		}
	}
	return size
}

// inform passes on a 1xx response, if the client can take it.
func (o *outgoing) inform(status int, header http.Header) {
	if o.w != nil && o.takes1xx(status) {
		o.answer.inform(o.w, status, header)
	}
}

// takes1xx reports whether the client is sent a 1xx response. A client of HTTP/1.0 would take
// it for the answer. A 100 comes from net/http, when somebody first reads the body. That may
// be another goroutine, so until then a client that waits for it gets nothing else.
func (o *outgoing) takes1xx(status int) bool {
	if status == http.StatusContinue || !o.in.ProtoAtLeast(1, 1) {
		return false
	}
	return len(o.in.Header["Expect"]) == 0 || o.x.body.received() > 0
}

// onceBody is the body of a request that can be sent once. If it was not read, it can be used
// for a second try.
type onceBody struct {
	inner   io.Reader
	wasRead atomic.Bool
	ended   atomic.Bool
}

var errEnded = errors.New("the request has ended")

func (b *onceBody) Read(p []byte) (int, error) {
	if b.ended.Load() {
		return 0, errEnded
	}
	b.wasRead.Store(true)
	return b.inner.Read(p)
}

// Close does nothing. http.Transport closes what it could not send, and closing the client's
// body would wait for the rest of it.
func (b *onceBody) Close() error { return nil }
