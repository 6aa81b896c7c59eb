package httplimit

import (
	"crypto/tls"
	"encoding/asn1"
	"net/http"
	"strconv"
	"strings"
)

// values looks up the attributes of a request by name, for a Gate.
type values struct {
	request *http.Request
	client  *ClientIP
}

// Value implements [tidegate.Values].
func (v *values) Value(name string) (string, bool) {
	value := v.find(name)
	return value, value != ""
}

func (v *values) find(name string) string {
	r := v.request
	if name == "ip" { // by far the most common
		return v.client.key(r)
	}
	if path, ok := strings.CutPrefix(name, "body."); ok {
		return bodyValue(r, path)
	}
	source, arg, _ := strings.Cut(name, " ")
	switch source {
	case "ip":
		return v.ip(arg)
	case "addr":
		return v.addr()
	case "header": // what a trusted proxy says, while "client header" is what anybody says
		if !v.client.trustsPeer(r, parseHop(r.RemoteAddr)) {
			return ""
		}
		return header(r, arg)
	case "client":
		if arg, ok := strings.CutPrefix(arg, "header "); ok {
			return header(r, arg)
		}
	case "cookie":
		return cookie(r, arg)
	case "query":
		return query(r.URL.RawQuery, arg)
	case "path":
		return r.PathValue(strings.TrimSuffix(strings.TrimPrefix(arg, "{"), "}"))
	case "route":
		return r.Pattern
	case "basic.user":
		return basicUser(r)
	case "tls.client_cn":
		return clientName(r.TLS)
	}
	return ""
}

// basicUser returns the user name of basic authentication; "" without an Authorization header, or
// with several. The password is not checked.
func basicUser(r *http.Request) string {
	auth := header(r, "Authorization")
	if auth == "" {
		return ""
	}
	only := http.Request{Header: http.Header{"Authorization": {auth}}}
	user, _, _ := only.BasicAuth()
	return user
}

// clientName returns the common name of the client certificate; "" if it has none or several, or if
// the server has not verified the certificate, which anybody could have made.
func clientName(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	subject := &state.VerifiedChains[0][0].Subject
	s := singleValue{value: subject.CommonName, seen: true}
	for _, attribute := range subject.Names {
		if name, ok := attribute.Value.(string); ok && attribute.Type.Equal(commonName) {
			s.add(name)
		}
	}
	return s.text()
}

// commonName is the object identifier of common names in X.520.
var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// ip returns the key of the client's network. bits has the prefix lengths of IPv4 and IPv6, as in
// "/24 /48"; if it is empty, those of ClientIP are used.
func (v *values) ip(bits string) string {
	if bits == "" {
		return v.client.key(v.request)
	}
	four, six, _ := strings.Cut(bits, " ")
	bits4, err4 := strconv.Atoi(strings.TrimPrefix(four, "/"))
	bits6, err6 := strconv.Atoi(strings.TrimPrefix(six, "/"))
	if err4 != nil || err6 != nil || bits4 < 0 || bits4 > 32 || bits6 < 0 || bits6 > 128 {
		return ""
	}
	return v.client.find(v.request).key(bits4, bits6)
}

// addr returns the client's whole address; "" if it has none, as over a Unix socket without a
// trusted proxy.
func (v *values) addr() string {
	h := v.client.find(v.request)
	if h.text != "" || !h.addr.IsValid() {
		return h.text
	}
	return h.addr.String()
}
