package strict

import (
	"net/url"
	"strings"
	"unicode"
)

// Parse reads a request target that somebody else has received, exactly as it was sent,
// into u, and returns why that fails. It takes what a server would: a path, a whole URL, or an
// asterisk. The target is not inspected yet; see [Target]. A plain path is read without allocating.
func Parse(target string, u *url.URL) *Problem {
	path, query, asked := strings.Cut(target, "?")
	if isPlain(path) && !strings.ContainsFunc(query, unicode.IsControl) {
		*u = url.URL{Path: path, RawQuery: query, ForceQuery: asked && query == ""}
	} else if parsed, err := url.ParseRequestURI(target); err == nil {
		*u = *parsed
	} else {
		return badRequest("The request target is not a path.")
	}
	return nil
}

// isPlain reports whether a path has only letters that stand for themselves, so that
// there is nothing to decode.
func isPlain(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '/', c == '-', c == '_', c == '.', c == '~', c == ':', c == '@', c == '=', c == '+', c == ',', c == '$', c == '&':
		default:
			return false
		}
	}
	return true
}
