package httplimit

import (
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
	source, arg, _ := strings.Cut(name, " ")
	switch source {
	case "ip":
		return v.ip(arg)
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
	}
	return ""
}

// header knows that the server moves Host out of the others.
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
