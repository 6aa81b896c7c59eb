package gateway

import (
	"net/http"
	"sync"
)

// ownHeaders are the response headers that are set before the upstream answers: the request
// id, and those of the limits. They are few and every request has them, so they are kept in
// a pooled array.
type ownHeaders struct {
	names  [mostOwn]string
	values [mostOwn][]string
	n      int
}

// mostOwn is the request id, all dialects of the limits together, and their mark.
const mostOwn = 12

var ownHeadersPool = sync.Pool{New: func() any { return new(ownHeaders) }}

// release returns o to the pool.
func (o *ownHeaders) release() {
	clear(o.values[:o.n])
	ownHeadersPool.Put(o)
}

// save saves what h contains now.
func (o *ownHeaders) save(h http.Header) {
	o.n = 0
	for name, values := range h {
		if o.n == len(o.names) {
			return
		}
		o.names[o.n], o.values[o.n] = name, values
		o.n++
	}
}

// restore puts them back: ReverseProxy clears the headers when it forwards a 1xx.
func (o *ownHeaders) restore(h http.Header) {
	for i := range o.n {
		h[o.names[i]] = o.values[i]
	}
}

// listFields are fields that the upstream may extend.
var listFields = map[string]bool{"Ratelimit": true, "Ratelimit-Policy": true}

// override removes from the upstream's response the headers that we set, so that none is
// sent twice with different values.
func (o *ownHeaders) override(upstream http.Header) {
	for _, name := range o.names[:o.n] {
		if !listFields[name] {
			delete(upstream, name)
		}
	}
}
