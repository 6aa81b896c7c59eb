package rules

import "strings"

// plainHost returns the host in lower case, without port and trailing dot, so that its spelling
// does not lead to a new counter.
func plainHost(host string) string {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(inside, "]")
	} else if colon := strings.IndexByte(host, ':'); colon >= 0 && strings.IndexByte(host[colon+1:], ':') < 0 {
		host = host[:colon]
	}
	return strings.ToLower(strings.TrimRight(host, "."))
}

// spelledHost is plainHost for what a host is compared with. A glob keeps what it has after a colon:
// without that it could fit every host.
func spelledHost(text string) string {
	if strings.Contains(text, "*") {
		return strings.ToLower(text)
	}
	return plainHost(text)
}
