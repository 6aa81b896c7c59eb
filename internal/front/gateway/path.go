package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// inspect refuses a path that rules and upstream may read differently, or makes
// it one that they read the same. Where parameters (;) and backslashes pass, rules are
// held against every reading; see route.Tree.Readings.
func (p Paths) inspect(r *http.Request) *problem {
	path := r.URL.Path
	backslash, dots, empty := false, false, false
	for i := range len(path) {
		switch c := path[i]; {
		case c < ' ' || c == 0x7f:
			return badRequest("The path contains a control character.")
		case c == '/':
			empty = empty || i > 0 && path[i-1] == '/'
		case c == '\\':
			backslash = true
		case c == '%': // an escape was escaped
			dots = true
		case c == '.':
			dots = dots || i == 0 || path[i-1] == '/' || path[i-1] == '\\'
		}
	}
	if !p.EncodedSlash && (backslash || hasEncodedSlash(r.URL.RawPath)) {
		return badRequest("The path contains an encoded slash or a backslash.")
	}
	if empty && strings.Contains(r.URL.EscapedPath(), "//") {
		if !p.MergeSlashes {
			return badRequest("The path contains an empty segment.")
		}
		r.URL = mergeSlashes(r.URL)
	}
	if (empty || backslash) && looksLikeHost(r.URL.Path) {
		return badRequest("The path begins with two slashes.")
	}
	if !dots {
		return nil
	}
	if p.CleanDots {
		r.URL = cleanDots(r.URL)
	}
	if hasDots(r.URL.Path) {
		return badRequest("The path contains . or .. segments.")
	}
	return nil
}

// looksLikeHost reports whether whoever decodes a path before it is taken apart would
// find a host at its beginning.
func looksLikeHost(path string) bool {
	return len(path) > 1 && (path[1] == '/' || path[1] == '\\')
}

// mergeSlashes makes one slash of several.
func mergeSlashes(u *url.URL) *url.URL {
	var b strings.Builder
	escaped := u.EscapedPath()
	for i := range len(escaped) {
		if i == 0 || escaped[i] != '/' || escaped[i-1] != '/' {
			b.WriteByte(escaped[i])
		}
	}
	return withPath(u, b.String())
}

// hasEncodedSlash looks at a path as sent; one that has any is never without a
// RawPath.
func hasEncodedSlash(raw string) bool {
	return raw != "" && (strings.Contains(raw, "%2F") || strings.Contains(raw, "%2f"))
}

// maxDecodings is how many times over an upstream might decode a path.
const maxDecodings = 3

// hasDots looks for dot segments in a decoded path: as it is, and as it would be
// to whoever decodes it again, takes backslashes for slashes, or cuts parameters
// off.
func hasDots(path string) bool {
	for range maxDecodings {
		for rest, more := path, true; more; {
			var segment string
			if i := strings.IndexAny(rest, `/\`); i >= 0 {
				segment, rest = rest[:i], rest[i+1:]
			} else {
				segment, more = rest, false
			}
			segment, _, _ = strings.Cut(segment, ";")
			if segment == "." || segment == ".." {
				return true
			}
		}
		next := decodeAgain(path)
		if next == path {
			return false
		}
		path = next
	}
	return false
}

// decodeAgain decodes the escapes that are valid, and leaves the others.
func decodeAgain(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// cleanDots resolves the dot segments of a path as RFC 3986 does, those with
// escaped dots as well. Nothing else of the path changes.
func cleanDots(u *url.URL) *url.URL {
	var kept []string
	segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, segment := range segments {
		name := segment
		if decoded, err := url.PathUnescape(segment); err == nil {
			name = decoded
		}
		last := i == len(segments)-1
		switch name {
		case "..":
			kept = kept[:max(0, len(kept)-1)]
			fallthrough
		case ".":
			if last {
				kept = append(kept, "") // what is left is a folder
			}
		default:
			kept = append(kept, segment)
		}
	}
	return withPath(u, "/"+strings.Join(kept, "/"))
}

// withPath returns u with another path, whose parts came out of its own.
func withPath(u *url.URL, escaped string) *url.URL {
	made := *u
	made.Path, _ = url.PathUnescape(escaped) // so that it is valid
	made.RawPath = ""
	if made.EscapedPath() != escaped {
		made.RawPath = escaped
	}
	return &made
}
