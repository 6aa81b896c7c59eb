package checkapi

import (
	"net/http"
	"strings"
)

// forwarded is the request line and host in the headers of a proxy; "" means that no header has it.
type forwarded struct{ method, host, target string }

// read adds what the headers name.
func (f *forwarded) read(h http.Header) *problem {
	if p := f.readURL(h); p != nil {
		return p
	}
	for _, field := range [...]struct {
		name  string
		value *string
	}{
		{"X-Original-Uri", &f.target},
		{"X-Forwarded-Uri", &f.target},
		{"X-Original-Method", &f.method},
		{"X-Forwarded-Method", &f.method},
		{"X-Forwarded-Host", &f.host},
	} {
		value, ok := sole(h[field.name])
		switch {
		case !ok:
			return contradiction(field.name)
		case value == "":
		case *field.value == "":
			*field.value = value
		case field.value == &f.host && !sameHost(f.host, value), field.value != &f.host && *field.value != value:
			return contradiction(field.name)
		}
	}
	switch {
	case f.target == "":
		return problemf(http.StatusBadRequest, "The proxy does not say which request it asks about: let it send X-Original-URL, X-Original-URI or X-Forwarded-Uri.")
	case f.method == "": // some proxies always ask with GET, so the method of the question does not count
		return problemf(http.StatusBadRequest, "The proxy does not say the method of the request: let it send X-Original-Method or X-Forwarded-Method.")
	}
	return nil
}

// readURL splits a whole URL; its path must stay as it was sent.
func (f *forwarded) readURL(h http.Header) *problem {
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
		if f.host != "" && host != "" && !sameHost(f.host, host) {
			return contradiction(name)
		}
		f.host = host
	}
	if f.target != "" && f.target != target {
		return contradiction(name)
	}
	f.target = target
	return nil
}

// sole returns the only distinct value of lines; false if they differ.
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

// sameHost compares hosts without ports, which rules ignore, too.
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
