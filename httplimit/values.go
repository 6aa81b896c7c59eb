package httplimit

import (
	"crypto/tls"
	"net/http"
	"net/url"
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
	if name == "ip" { // by far the most
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
	case "header":
		if !v.client.trustsPeer(r, parseHop(r.RemoteAddr)) {
			return ""
		}
		return header(r, arg)
	case "client":
		if arg, ok := strings.CutPrefix(arg, "header "); ok {
			return header(r, arg)
		}
	case "cookie":
		if c, err := r.Cookie(arg); err == nil {
			return c.Value
		}
	case "query":
		return queryValue(r.URL.RawQuery, arg)
	case "path":
		return r.PathValue(strings.TrimSuffix(strings.TrimPrefix(arg, "{"), "}"))
	case "route":
		return r.Pattern
	case "basic.user":
		user, _, _ := r.BasicAuth()
		return user
	case "tls.client_cn":
		return clientName(r.TLS)
	}
	return ""
}

// clientName is the common name of a client certificate that the server has
// verified; one that it only asked for could be anybody's.
func clientName(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	return state.VerifiedChains[0][0].Subject.CommonName
}

// header knows that the server moves Host out of the others. Of several lines it
// takes the first.
func header(r *http.Request, name string) string {
	if strings.EqualFold(name, "Host") {
		return r.Host
	}
	return r.Header.Get(name)
}

// ip takes prefix lengths as in "/24 /48"; without them, those of ClientIP.
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

// addr is empty for a request over a Unix socket that no proxy forwarded.
func (v *values) addr() string {
	h := v.client.find(v.request)
	if h.text != "" || !h.addr.IsValid() {
		return h.text
	}
	return h.addr.String()
}

// queryValue is url.ParseQuery(raw).Get(name) without the map: it must see what
// the handler will see, so the two are compared by a fuzz test.
func queryValue(raw, name string) string {
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if pair == "" || strings.Contains(pair, ";") {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(key)
		if err != nil || key != name {
			continue
		}
		if value, err = url.QueryUnescape(value); err == nil {
			return value
		}
	}
	return ""
}
