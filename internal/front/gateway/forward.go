package gateway

import (
	"net/http"
	"strings"
)

// forwarding sets what the upstream is told of the client and of the way here.
// What our own proxies say is kept and added to; what anybody else says of
// itself is not passed on, under no spelling.
func forwarding(out http.Header, in *http.Request, x *exchange) {
	for name := range out {
		if isOurs(name) && !(x.trusted && tellsOfClient(name)) {
			delete(out, name)
		}
	}
	peer := peerAddress(in.RemoteAddr)
	values := &[5]string{ // one piece of memory for all
		in.Host, "http",
		added(in.Header["X-Forwarded-For"], peer, x.trusted),
		added(in.Header["Forwarded"], element(peer, in), x.trusted),
		x.record.ID,
	}
	if in.TLS != nil {
		values[1] = "https"
	}
	if x.trusted {
		values[0] = said(in.Header, "X-Forwarded-Host", values[0])
		values[1] = said(in.Header, "X-Forwarded-Proto", values[1])
	}
	out["X-Forwarded-Host"] = values[0:1:1]
	out["X-Forwarded-Proto"] = values[1:2:2]
	if values[2] != "" {
		out["X-Forwarded-For"] = values[2:3:3]
	}
	out["Forwarded"] = values[3:4:4]
	out["X-Request-Id"] = values[4:5:5]
}

// isOurs: the name, or one that is the same to CGI and its kin, where a dash
// becomes an underscore.
func isOurs(name string) bool {
	if strings.IndexByte(name, '_') >= 0 {
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	return tellsOfClient(name)
}

func tellsOfClient(name string) bool {
	switch name {
	case "Forwarded", "X-Real-Ip", "X-Request-Id":
		return true
	case "X-Original-Url", "X-Original-Uri", "X-Rewrite-Url": // some servers route by these instead of the path
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-")
}

// added is the list with one more entry, or only that if nobody trusted wrote
// the list.
func added(list []string, entry string, trusted bool) string {
	if !trusted || len(list) == 0 {
		return entry
	}
	before := strings.Join(list, ", ")
	if entry == "" {
		return before
	}
	return before + ", " + entry
}

// said is the header, if it has one value, or the other.
func said(h http.Header, name, other string) string {
	if values := h[name]; len(values) == 1 && values[0] != "" {
		return values[0]
	}
	return other
}

// element is ours of Forwarded (RFC 7239): who asked us, for which host, and how.
func element(peer string, in *http.Request) string {
	switch {
	case peer == "":
		peer = "unknown"
	case strings.Contains(peer, ":"):
		peer = `"[` + peer + `]"`
	}
	host := in.Host
	if strings.ContainsAny(host, ":[") { // neither is part of a token
		host = `"` + host + `"`
	}
	proto := ";proto=http"
	if in.TLS != nil {
		proto = ";proto=https"
	}
	return "for=" + peer + ";host=" + host + proto
}

// peerAddress is the address without port, brackets and zone; "" on a Unix socket.
func peerAddress(remote string) string {
	colon := strings.LastIndexByte(remote, ':')
	if colon < 0 {
		return ""
	}
	host := strings.TrimSuffix(strings.TrimPrefix(remote[:colon], "["), "]")
	host, _, _ = strings.Cut(host, "%")
	return host
}
