package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// errMaybeSent is the end of a request whose connection broke when it was under way.
var errMaybeSent = errors.New("the connection broke when something of the request may have been sent, and it is not sent again")

// onlyOnce makes a request that http.Transport does not send again by itself after
// something of it may have been sent: it was counted once. Over HTTP/1 the transport would
// do so with one that has no body, if its method means the same twice or a header says that
// it does. Over HTTP/2 it sends again what the upstream says it has not looked at.
func onlyOnce(r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		// The transport reads a body before it sends anything and announces none if it is
		// empty, for these methods. To send the request again it would need the body again.
		r.Body = emptyBody{}
		r.GetBody = func() (io.ReadCloser, error) { return nil, errMaybeSent }
	default:
		for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
			if values, ok := r.Header[name]; ok { // the case means nothing to the upstream
				delete(r.Header, name)
				r.Header[strings.ToLower(name)] = values
			}
		}
	}
}

// noteSent has it noted when r was sent: over HTTP/2 the transport may send it again over a
// new connection, and that this one fails does not mean that nothing was sent. connected
// reports whether r ever had a connection: before that, a TLS handshake may have failed in
// many ways, and nothing of r was sent.
func noteSent(r *http.Request) (noted *http.Request, connected *atomic.Bool) {
	connected = new(atomic.Bool)
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	if x := exchangeOf(r.Context()); x != nil {
		trace.WroteHeaders = func() { x.reached.Store(true) }
	}
	return r.WithContext(httptrace.WithClientTrace(r.Context(), trace)), connected
}

// emptyBody is unlike http.NoBody to http.Transport.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }
