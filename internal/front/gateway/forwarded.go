package gateway

import (
	"net/http"
	"strings"
)

// addForwarded adds the headers that describe the client and its path to the upstream. Those
// of trusted proxies are kept and extended; those of anybody else are dropped, however they
// are spelled.
func (h *head) addForwarded(in *http.Request, x *exchange) {
	host, proto := in.Host, "http"
	if in.TLS != nil {
		proto = "https"
	}
	if h.trusted {
		host = singleValue(in.Header, "X-Forwarded-Host", host)
		proto = singleValue(in.Header, "X-Forwarded-Proto", proto)
	}
	h.add("X-Forwarded-Host", host)
	h.add("X-Forwarded-Proto", proto)
	peer := peerAddress(in.RemoteAddr)
	if hops := appendEntry(in.Header["X-Forwarded-For"], peer, h.trusted); hops != "" {
		h.add("X-Forwarded-For", hops)
	}
	h.add("Forwarded", appendEntry(in.Header["Forwarded"], forwardedElement(peer, in), h.trusted))
	h.add("X-Request-Id", x.record.ID)
}

// isForwardingAlias reports whether a header is a forwarding header, or becomes one for CGI and the
// like, where a dash becomes an underscore.
func isForwardingAlias(name string) bool {
	if strings.IndexByte(name, '_') >= 0 {
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	return isForwardingHeader(name)
}

// isForwardingHeader reports whether a header describes the client or its request as a proxy saw
// them.
func isForwardingHeader(name string) bool {
	switch name {
	case "Forwarded", "X-Real-Ip", "X-Request-Id":
		return true
	case "X-Original-Url", "X-Original-Uri", "X-Rewrite-Url": // some servers route by these instead of the path
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-")
}

// appendEntry returns the list with one more entry, or only that entry if the list does not come
// from a trusted proxy.
func appendEntry(list []string, entry string, trusted bool) string {
	if !trusted || len(list) == 0 {
		return entry
	}
	before := strings.Join(list, ", ")
	if entry == "" {
		return before
	}
	return before + ", " + entry
}

// singleValue returns the value of a header that has exactly one, and other otherwise.
func singleValue(h http.Header, name, other string) string {
	if values := h[name]; len(values) == 1 && values[0] != "" {
		return values[0]
	}
	return other
}

// forwardedElement returns our element of Forwarded (RFC 7239): peer, host and protocol.
func forwardedElement(peer string, in *http.Request) string {
	switch {
	case peer == "":
		peer = "unknown"
	case strings.Contains(peer, ":"):
		peer = `"[` + peer + `]"`
	}
	host := in.Host
	if strings.ContainsAny(host, ":[") { // which are not allowed in a token
		host = `"` + host + `"`
	}
	proto := ";proto=http"
	if in.TLS != nil {
		proto = ";proto=https"
	}
	return "for=" + peer + ";host=" + host + proto
}

// peerAddress returns the address without port, brackets and zone; "" on a Unix socket.
func peerAddress(remote string) string {
	colon := strings.LastIndexByte(remote, ':')
	if colon < 0 {
		return ""
	}
	host := strings.TrimSuffix(strings.TrimPrefix(remote[:colon], "["), "]")
	host, _, _ = strings.Cut(host, "%")
	return host
}
