package httplimit

import (
	"net/http"

	"tidegate.dev/tidegate"
)

// Request returns what Options.Gate asks a gate about r: for front ends of your own,
// and for asking without answering. It refers to r.
func (o Options) Request(r *http.Request) *tidegate.Request {
	o.check()
	a := new(gateRequest)
	a.fill(r, &o.ClientIP)
	return &a.request
}

// HTTPRequest returns the HTTP request that this package made q from, for observers of a
// Gate; nil if q comes from elsewhere.
func HTTPRequest(q *tidegate.Request) *http.Request {
	if v, ok := q.Values.(*values); ok {
		return v.request
	}
	return nil
}

// fill sets a to what rules can read from r.
func (a *gateRequest) fill(r *http.Request, client *ClientIP) {
	a.values = values{request: r, client: client}
	q := &a.request
	q.Method, q.Host, q.Path, q.Values = r.Method, r.Host, r.URL.Path, &a.values
	if r.URL.RawPath != "" {
		q.RawPath = r.URL.EscapedPath()
	}
}
