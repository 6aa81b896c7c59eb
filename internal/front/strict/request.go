// Package strict refuses requests that a rule and a server may understand differently: a
// path with two readings, a method in lower case, a host that is not one. Every front end
// that is told of a request by its sender asks here before it asks the rules.
//
// It knows HTTP and nothing of limits. Start with [Paths.Inspect].
package strict

import (
	"net/http"
	"net/netip"
	"strings"
)

// Problem is why a request is refused before the rules are asked.
type Problem struct {
	Status int
	Detail string // a sentence for the client
	Allow  string // methods, for a 405
}

// Refused is a request that was refused before the rules were asked, for a log.
type Refused struct {
	Client             netip.Addr // not valid if unknown
	Method, Host, Path string     // as they were sent, without a query
	Reason             string
}

func badRequest(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Detail: detail}
}

// allowedMethods is the Allow header of a 405. CONNECT would turn the gateway into a tunnel, TRACE
// would show scripts the headers that browsers hide from them.
const allowedMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

// Method returns why a method is refused; nil if it is not. Lower case is refused: a rule for
// POST would not match "post", which some servers take for the same.
func Method(method string) *Problem {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return nil
	case http.MethodConnect, http.MethodTrace:
		return &Problem{Status: http.StatusMethodNotAllowed, Detail: "The method " + method + " is not passed on.", Allow: allowedMethods}
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

// Target returns why the target or the host of a request is refused; nil if neither is. It accepts
// origin-form, absolute-form, whose host takes precedence, and for OPTIONS the asterisk. HTTP/2
// clients can send spaces in the target, which would end it in the request line to an upstream. A
// fragment is refused because some servers cut it off, of a query too, and others do not.
func Target(r *http.Request) *Problem {
	u := r.URL
	for i := range len(r.RequestURI) {
		switch c := r.RequestURI[i]; {
		case c <= ' ' || c == 0x7f:
			return badRequest("The request target contains a space or a control character.")
		case c == '#':
			return badRequest("The request target contains a fragment.")
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
	if !ValidHost(r.Host) {
		return badRequest("The host is missing or is not a host.")
	}
	return nil
}

// ValidHost reports whether host is a name or an address, with or without a port. It is
// stricter than RFC 3986, which allows much that is not a host.
func ValidHost(host string) bool {
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
