package gateway

import (
	"net/http"
	"sync"
)

// ownHeaders are those that the answer has before the upstream has answered: the
// request id, and what the limits say. They are in an array, as they are few and
// every request has them, and pooled: they are of no use once it is answered.
type ownHeaders struct {
	names  [8]string
	values [8][]string
	n      int
}

var ownPool = sync.Pool{New: func() any { return new(ownHeaders) }}

// release gives o back.
func (o *ownHeaders) release() {
	clear(o.values[:o.n])
	ownPool.Put(o)
}

// keep remembers what h has now.
func (o *ownHeaders) keep(h http.Header) {
	o.n = 0
	for name, values := range h {
		if o.n == len(o.names) {
			return
		}
		o.names[o.n], o.values[o.n] = name, values
		o.n++
	}
}

// restore puts them back: a proxy that passes a 1xx on empties the headers.
func (o *ownHeaders) restore(h http.Header) {
	for i := range o.n {
		h[o.names[i]] = o.values[i]
	}
}

// lists are fields to which the upstream may add.
var lists = map[string]bool{"Ratelimit": true, "Ratelimit-Policy": true}

// override takes out of the upstream's answer what would be said twice, and
// differently.
func (o *ownHeaders) override(upstream http.Header) {
	for _, name := range o.names[:o.n] {
		if !lists[name] {
			delete(upstream, name)
		}
	}
}
