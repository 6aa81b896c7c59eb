package gateway

import (
	"net/http"
	"strings"
)

// forbiddenTrailers are headers that affect framing, routing or authentication. A server that
// merges trailers into headers must not get these from a trailer, which no rule has seen.
var forbiddenTrailers = map[string]bool{
	"Authorization": true, "Cookie": true, "Set-Cookie": true, "Host": true, "Expect": true, "Range": true, "Date": true, "Te": true,
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Transfer-Encoding": true, "Trailer": true, "Upgrade": true, "Http2-Settings": true,
	"Cache-Control": true, "Max-Forwards": true, "Pragma": true, "Origin": true, "Referer": true, "Via": true,
}

// isForbiddenTrailer reports whether a trailer of that name is not passed on, in either
// direction. The name is canonical, or not a name.
func isForbiddenTrailer(name string) bool {
	for _, prefix := range [...]string{"Content-", "If-", "Proxy-", "Sec-"} {
		if strings.HasPrefix(name, prefix) && name != "Content-Digest" {
			return true
		}
	}
	return forbiddenTrailers[name] || isForwardingAlias(name)
}

// allowsTrailer reports whether a trailer of a request is passed on; listed are the names that
// the request's Connection header lists.
func (g *Gateway) allowsTrailer(name string, listed map[string]bool) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")) // as CGI and the like read it
	if isForbiddenTrailer(name) || listed[name] {
		return false
	}
	return g.o.ReadsHeader == nil || !g.o.ReadsHeader(name)
}

// filterTrailers removes from r the announced trailers that are not passed on, and returns
// the names of the others. Both lists may be as long as a whole head.
func (g *Gateway) filterTrailers(r *http.Request) map[string]bool {
	listed := make(map[string]bool)
	for name := range connectionNames(r.Header) {
		listed[name] = true
	}
	kept := make(map[string]bool)
	for name := range r.Trailer {
		if g.allowsTrailer(name, listed) {
			kept[name] = true
		} else {
			delete(r.Trailer, name)
		}
	}
	if len(kept) == 0 {
		r.Trailer = nil
	}
	return kept
}
