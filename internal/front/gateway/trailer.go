package gateway

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// notTrailers are headers that say how a request is to be read, to be routed or whose it
// is. A server that makes headers of trailers must not learn that from one: nobody has
// looked at it when the request passed.
var notTrailers = map[string]bool{
	"Authorization": true, "Cookie": true, "Set-Cookie": true, "Host": true, "Expect": true, "Range": true, "Date": true, "Te": true,
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Transfer-Encoding": true, "Trailer": true, "Upgrade": true, "Http2-Settings": true,
	"Cache-Control": true, "Max-Forwards": true, "Pragma": true, "Origin": true, "Referer": true, "Via": true,
}

// mayTrail reports whether a trailer of that name is passed on; named is what the
// request's Connection header names.
func (g *Gateway) mayTrail(name string, named []string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")) // as CGI and its kin read it
	for _, prefix := range []string{"Content-", "If-", "Proxy-", "Sec-"} {
		if strings.HasPrefix(name, prefix) && name != "Content-Digest" {
			return false
		}
	}
	if notTrailers[name] || isOurs(name) || slices.Contains(named, name) {
		return false
	}
	return g.o.ReadsHeader == nil || !g.o.ReadsHeader(name)
}

// keepTrailers leaves of the trailers that r announces those that are passed on, and
// returns their names.
func (g *Gateway) keepTrailers(r *http.Request) []string {
	var named []string
	for _, line := range r.Header["Connection"] {
		for word := range strings.SplitSeq(line, ",") {
			named = append(named, http.CanonicalHeaderKey(strings.TrimSpace(word)))
		}
	}
	maps.DeleteFunc(r.Trailer, func(name string, _ []string) bool { return !g.mayTrail(name, named) })
	kept := slices.Collect(maps.Keys(r.Trailer))
	if len(kept) == 0 {
		r.Trailer = nil
	}
	return kept
}
