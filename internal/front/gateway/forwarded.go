package gateway

import (
	"net/http"
	"strings"
)

// setForwarded sets the headers that describe the client and its path to the upstream.
// Those of trusted proxies are kept and extended; those of anybody else are dropped,
// however they are spelled.
func setForwarded(out http.Header, in *http.Request, x *exchange) {
	for name := range out {
		if isForwardingAlias(name) && !(x.trusted && isForwardingHeader(name)) {
			delete(out, name)
		}
	}
	peer := peerAddress(in.RemoteAddr)
	values := &[5]string{ // one allocation for all
		in.Host, "http",
		appendEntry(in.Header["X-Forwarded-For"], peer, x.trusted),
		appendEntry(in.Header["Forwarded"], forwardedElement(peer, in), x.trusted),
		x.record.ID,
	}
	if in.TLS != nil {
		values[1] = "https"
	}
	if x.trusted {
		values[0] = singleValue(in.Header, "X-Forwarded-Host", values[0])
		values[1] = singleValue(in.Header, "X-Forwarded-Proto", values[1])
	}
	out["X-Forwarded-Host"] = values[0:1:1]
	out["X-Forwarded-Proto"] = values[1:2:2]
	if values[2] != "" {
		out["X-Forwarded-For"] = values[2:3:3]
	}
	out["Forwarded"] = values[3:4:4]
	out["X-Request-Id"] = values[4:5:5]
}

// isForwardingAlias reports whether a header is one of those, or becomes one for CGI and the like,
// where a dash becomes an underscore.
func isForwardingAlias(name string) bool {
	if strings.IndexByte(name, '_') >= 0 {
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	return isForwardingHeader(name)
}

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
