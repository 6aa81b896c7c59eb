package gateway

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"tidegate.dev/tidegate/internal/front/listen"
)

// allowedMethods is the Allow header of a 405. CONNECT would turn the gateway into a tunnel, TRACE
// would show scripts the headers that browsers hide from them.
const allowedMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

// inspect returns what is wrong with a request, before any rule is evaluated: it must mean
// the same to the rules, to the upstream and to proxies in front. net/http has refused
// some requests before.
func (g *Gateway) inspect(r *http.Request) *problem {
	if p := inspectMethod(r.Method); p != nil {
		return p
	}
	if len(r.RequestURI) > g.o.Limits.URI {
		return listen.NewProblem(http.StatusRequestURITooLong, fmt.Sprintf("The request target is longer than %d bytes.", g.o.Limits.URI))
	}
	lines := 0
	for _, values := range r.Header {
		lines += len(values)
	}
	if lines > g.o.Limits.HeaderLines {
		return listen.NewProblem(http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("The request has more than %d header lines.", g.o.Limits.HeaderLines))
	}
	if p := inspectTarget(r); p != nil {
		return p
	}
	if limit := g.o.Limits.Body; limit > 0 && r.ContentLength > limit {
		return tooLarge(limit)
	}
	return g.o.Paths.inspect(r)
}

// inspectMethod also refuses lower case: a rule for POST would not match "post", which some
// servers take for the same.
func inspectMethod(method string) *problem {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return nil
	case http.MethodConnect, http.MethodTrace:
		p := listen.NewProblem(http.StatusMethodNotAllowed, "The method "+method+" is not passed on.")
		p.Allow = allowedMethods
		return p
	}
	for _, c := range []byte(method) {
		switch {
		case 'a' <= c && c <= 'z':
			return badRequest("Methods are written in upper case.")
		case !isTokenByte(c):
			return badRequest("The method is not a token.")
		}
	}
	return nil
}

// isTokenByte reports whether c may be part of a method (RFC 9110, 5.6.2).
func isTokenByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// inspectTarget accepts origin-form, absolute-form, whose host takes precedence, and for
// OPTIONS the asterisk. HTTP/2 clients can send spaces in the target, which would end it in
// the request line to an upstream.
func inspectTarget(r *http.Request) *problem {
	u := r.URL
	for i := range len(r.RequestURI) {
		if c := r.RequestURI[i]; c <= ' ' || c == 0x7f {
			return badRequest("The request target contains a space or a control character.")
		}
	}
	switch {
	case u.Path == "*" && r.Method == http.MethodOptions:
	case u.Opaque != "" || !strings.HasPrefix(u.Path, "/") && (u.Host == "" || u.Path != ""):
		return badRequest("The request target is not a path.")
	case u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https":
		return badRequest("The request target is of another protocol than HTTP.")
	case u.Scheme != "" && r.ProtoMajor > 1:
		return badRequest("The request target is not a path.")
	case u.User != nil:
		return badRequest("The request target contains a user name.")
	}
	if !validHost(r.Host) {
		return badRequest("The host is missing or is not a host.")
	}
	return nil
}

// validHost reports whether host is a name or an address, with or without a port. It is
// stricter than RFC 3986, which allows much that is not a host.
func validHost(host string) bool {
	name, port, ported := host, "", false
	if inside, ok := strings.CutPrefix(host, "["); ok {
		inside, rest, closed := strings.Cut(inside, "]")
		addr, err := netip.ParseAddr(inside)
		if !closed || err != nil || !addr.Is6() || addr.Zone() != "" {
			return false
		}
		name = "v6"
		if port, ported = strings.CutPrefix(rest, ":"); !ported && rest != "" {
			return false
		}
	} else {
		name, port, ported = strings.Cut(host, ":")
	}
	return isName(name) && (!ported || isPort(port))
}

func isName(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return s != "" && len(s) <= 255
}

func isPort(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != "" && len(s) <= len("65535")
}

// onlyWebSocket removes every other offer to switch protocols: a client could talk h2c to an
// upstream that accepts it, bypassing all rules.
func onlyWebSocket(r *http.Request) {
	offers := r.Header["Upgrade"]
	if len(offers) == 1 && strings.EqualFold(offers[0], "websocket") && r.Method == http.MethodGet && r.ContentLength == 0 && r.Proto == "HTTP/1.1" {
		return
	}
	if len(offers) > 0 {
		delete(r.Header, "Upgrade")
	}
	delete(r.Header, "Http2-Settings")
}
