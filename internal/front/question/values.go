package question

import (
	"net/http"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
)

// Identity implements rules.Identified: an identity in As with the value "" is known to be missing, as
// is ip without an address.
func (q *Question) Identity(name string) (value string, known bool) {
	if name == "ip" { // found by Value, so that prefixes hold
		return "", !q.addr.IsValid()
	}
	return q.as(name)
}

// Value implements [tidegate.Values]. For values other than the address and identities, it makes
// the request of the description first.
func (q *Question) Value(name string) (string, bool) {
	switch source, rest, _ := strings.Cut(name, " "); source {
	case "ip":
		value := q.network(rest)
		return value, value != ""
	case "addr":
		return q.network("/32 /128"), q.addr.IsValid()
	case "header", "client", "cookie", "query", "basic.user":
		return q.made().Value(name)
	case "route", "path", "tls.client_cn", "metadata":
		return "", false
	default:
		if strings.HasPrefix(name, "body.") {
			return q.made().Value(name)
		}
		return q.as(name) // a descriptor
	}
}

// network returns the network of the address, or the address itself if the prefix has all bits; ""
// if the address is not known. bits are the prefix lengths for IPv4 and IPv6, as in "/24 /48"; ""
// means "/32 /64".
func (q *Question) network(bits string) string {
	if !q.addr.IsValid() {
		return ""
	}
	bits4, bits6 := 32, 64
	if bits != "" {
		four, six, _ := strings.Cut(bits, " ")
		bits4, _ = strconv.Atoi(strings.TrimPrefix(four, "/")) // rules have checked them
		bits6, _ = strconv.Atoi(strings.TrimPrefix(six, "/"))
	}
	n := bits6
	if q.addr.Is4() {
		n = bits4
	}
	if n == q.addr.BitLen() {
		if q.addr.Is4() && len(q.ip) <= len("255.255.255.255") && strings.IndexByte(q.ip, ':') < 0 {
			return q.ip // IPv4 has one spelling
		}
		return q.addr.String()
	}
	p, err := q.addr.Prefix(n)
	if err != nil {
		return ""
	}
	return p.String()
}

// believing reads headers as those of a trusted proxy.
var believing = httplimit.Options{ClientIP: httplimit.ClientIP{TrustPeer: func(*http.Request) bool { return true }}}

// made returns the values of the request as it would have arrived. It makes them once.
func (q *Question) made() tidegate.Values {
	if q.values != nil {
		return q.values
	}
	r := &q.http
	r.Header = make(http.Header, len(q.Headers)+1)
	for _, h := range q.Headers {
		name := textproto.CanonicalMIMEHeaderKey(h.Name)
		r.Header[name] = append(r.Header[name], h.Value)
	}
	delete(r.Header, "Host") // a server moves it out of the others
	if q.addr.IsValid() {
		r.RemoteAddr = netip.AddrPortFrom(q.addr, 1).String()
	}
	if q.Body != "" {
		if len(r.Header["Content-Type"]) == 0 {
			r.Header["Content-Type"] = []string{"application/json"}
		}
		r.ContentLength = int64(len(q.Body))
		r.Body = body{strings.NewReader(q.Body)}
	}
	q.values = believing.Request(r).Values
	return q.values
}

type body struct{ *strings.Reader }

func (body) Close() error { return nil }
