package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// errMaybeSent fails a request whose connection broke while it was sent.
var errMaybeSent = errors.New("the connection broke when something of the request may have been sent, and it is not sent again")

// preventResend prevents http.Transport from sending r again after something of it may have been
// sent: the request was counted once. Over HTTP/1 the transport resends a request without a
// body if its method, or a header, says that it is idempotent. Over HTTP/2 it resends what
// the upstream says it has not processed, which is safe.
func preventResend(r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		// For these methods the transport reads the start of a body before it sends
		// anything, and announces none if it is empty. To resend it would need GetBody.
		r.Body = emptyBody{}
		r.GetBody = func() (io.ReadCloser, error) { return nil, errMaybeSent }
	default:
		for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
			if values, ok := r.Header[name]; ok { // header names are case-insensitive for the upstream
				delete(r.Header, name)
				r.Header[strings.ToLower(name)] = values
			}
		}
	}
}

// traceSent sets maybeSent when the headers of r are written: over HTTP/2 the transport may
// send r again over a new connection, and a failure to connect then does not mean that
// nothing was sent. connected reports whether r ever had a connection; before that, a TLS
// handshake may fail in many ways, and nothing of r was sent.
func traceSent(r *http.Request) (noted *http.Request, connected *atomic.Bool) {
	connected = new(atomic.Bool)
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	if x := exchangeOf(r.Context()); x != nil {
		trace.WroteHeaders = func() { x.maybeSent.Store(true) }
	}
	return r.WithContext(httptrace.WithClientTrace(r.Context(), trace)), connected
}

// emptyBody is empty, but http.Transport does not know it, unlike http.NoBody.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }
