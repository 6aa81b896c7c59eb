package gateway

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// forbiddenTrailers are headers that affect framing, routing or authentication. A server that
// merges trailers into headers must not get these from a trailer, which no rule has seen.
var forbiddenTrailers = map[string]bool{
	"Authorization": true, "Cookie": true, "Set-Cookie": true, "Host": true, "Expect": true, "Range": true, "Date": true, "Te": true,
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Transfer-Encoding": true, "Trailer": true, "Upgrade": true, "Http2-Settings": true,
	"Cache-Control": true, "Max-Forwards": true, "Pragma": true, "Origin": true, "Referer": true, "Via": true,
}

// allowsTrailer reports whether a trailer of that name is passed on; named are the headers that
// the request's Connection header lists.
func (g *Gateway) allowsTrailer(name string, named []string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")) // as CGI and the like read it
	for _, prefix := range []string{"Content-", "If-", "Proxy-", "Sec-"} {
		if strings.HasPrefix(name, prefix) && name != "Content-Digest" {
			return false
		}
	}
	if forbiddenTrailers[name] || isForwardingAlias(name) || slices.Contains(named, name) {
		return false
	}
	return g.o.ReadsHeader == nil || !g.o.ReadsHeader(name)
}

// filterTrailers removes from r the announced trailers that are not passed on, and returns
// the names of the others.
func (g *Gateway) filterTrailers(r *http.Request) []string {
	var named []string
	for _, line := range r.Header["Connection"] {
		for word := range strings.SplitSeq(line, ",") {
			named = append(named, http.CanonicalHeaderKey(strings.TrimSpace(word)))
		}
	}
	maps.DeleteFunc(r.Trailer, func(name string, _ []string) bool { return !g.allowsTrailer(name, named) })
	kept := slices.Collect(maps.Keys(r.Trailer))
	if len(kept) == 0 {
		r.Trailer = nil
	}
	return kept
}
