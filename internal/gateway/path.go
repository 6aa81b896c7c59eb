package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// inspect refuses a path that rules and upstream may read differently, or makes
// it one that they read the same.
func (p Paths) inspect(r *http.Request) *problem {
	path := r.URL.Path
	backslash, dots := false, false
	for i := range len(path) {
		switch c := path[i]; {
		case c < ' ' || c == 0x7f:
			return badRequest("The path contains a control character.")
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
	cleaned := *u
	escaped := "/" + strings.Join(kept, "/")
	cleaned.Path, _ = url.PathUnescape(escaped) // its parts came out of a valid path
	cleaned.RawPath = ""
	if cleaned.EscapedPath() != escaped {
		cleaned.RawPath = escaped
	}
	return &cleaned
}
