package rules

import (
	"path"
	"strings"
)

// cleanPath is the path as it is matched: without empty and dot segments, and
// without a slash at the end.
func cleanPath(p string) string {
	if p == "*" {
		return p
	}
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if strings.Contains(p, "//") || strings.Contains(p, "/.") {
		p = path.Clean(p)
	}
	if len(p) > 1 {
		p = strings.TrimSuffix(p, "/")
	}
	return p
}

// plainHost is the host in lower case, without port and trailing dot: its
// spelling must not make a fresh counter.
func plainHost(host string) string {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(inside, "]")
	} else if colon := strings.IndexByte(host, ':'); colon >= 0 && strings.IndexByte(host[colon+1:], ':') < 0 {
		host = host[:colon]
	}
	return strings.ToLower(strings.TrimRight(host, "."))
}
