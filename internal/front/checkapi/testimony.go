package checkapi

import (
	"net/http"
	"strings"
)

// testimony is what a proxy says of the request that it asks about; "" is not said.
type testimony struct{ method, host, target string }

// hear adds what the headers say.
func (t *testimony) hear(h http.Header) *problem {
	if p := t.hearURL(h); p != nil {
		return p
	}
	for _, said := range [...]struct {
		name string
		is   *string
	}{
		{"X-Original-Uri", &t.target},
		{"X-Forwarded-Uri", &t.target},
		{"X-Original-Method", &t.method},
		{"X-Forwarded-Method", &t.method},
		{"X-Forwarded-Host", &t.host},
	} {
		value, ok := sole(h[said.name])
		switch {
		case !ok:
			return contradiction(said.name)
		case value == "":
		case *said.is == "":
			*said.is = value
		case said.is == &t.host && !sameHost(t.host, value), said.is != &t.host && *said.is != value:
			return contradiction(said.name)
		}
	}
	switch {
	case t.target == "":
		return problemf(http.StatusBadRequest, "The proxy does not say which request it asks about: let it send X-Original-URL, X-Original-URI or X-Forwarded-Uri.")
	case t.method == "": // that of the question is always GET from some proxies
		return problemf(http.StatusBadRequest, "The proxy does not say the method of the request: let it send X-Original-Method or X-Forwarded-Method.")
	}
	return nil
}

// hearURL takes a whole URL apart: its path must stay as it was sent.
func (t *testimony) hearURL(h http.Header) *problem {
	const name = "X-Original-Url"
	value, ok := sole(h[name])
	if !ok {
		return contradiction(name)
	}
	if value == "" {
		return nil
	}
	target := value
	if _, after, whole := strings.Cut(value, "://"); whole && value[0] != '/' {
		slash := strings.IndexByte(after, '/')
		if slash < 0 {
			return problemf(http.StatusBadRequest, "X-Original-URL has no path.")
		}
		host := after[:slash]
		target = after[slash:]
		if t.host != "" && host != "" && !sameHost(t.host, host) {
			return contradiction(name)
		}
		t.host = host
	}
	if t.target != "" && t.target != target {
		return contradiction(name)
	}
	t.target = target
	return nil
}

// sole is the one value of all lines; false if they differ.
func sole(lines []string) (string, bool) {
	if len(lines) == 0 {
		return "", true
	}
	for _, line := range lines[1:] {
		if line != lines[0] {
			return "", false
		}
	}
	return lines[0], true
}

// sameHost compares without ports, which rules do not look at either.
func sameHost(a, b string) bool { return strings.EqualFold(withoutPort(a), withoutPort(b)) }

func withoutPort(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i]
	}
	return host
}

func contradiction(name string) *problem {
	return problemf(http.StatusBadRequest, "%s contradicts what the proxy says elsewhere of the request; remove or overwrite it there.", name)
}
