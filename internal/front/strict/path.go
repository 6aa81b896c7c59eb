package strict

import (
	"net/http"
	"net/url"
	"strings"
)

// Paths says what to do with paths that two servers may read in two ways. The zero value
// refuses them, so that no spelling of a path escapes a rule.
type Paths struct {
	EncodedSlash bool // pass %2F and backslashes on as they are
	CleanDots    bool // resolve . and .. before rules and upstream see the path
	MergeSlashes bool // merge slashes before rules and upstream see the path
}

// Inspect returns why a path is refused that rules and upstream may read differently; nil if it is
// not. As p says, it normalizes the path instead.
// Where parameters (;) and backslashes pass, the rules of every reading apply; see
// route.Tree.Readings.
func (p Paths) Inspect(r *http.Request) *Problem {
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
		case c == '%': // a percent sign that was escaped itself
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

// looksLikeHost reports whether a server that decodes the path before parsing the URL
// would find a host at its beginning.
func looksLikeHost(path string) bool {
	return len(path) > 1 && (path[1] == '/' || path[1] == '\\')
}

// mergeSlashes replaces runs of slashes by one.
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

// hasEncodedSlash reports whether a path, as sent, has an encoded slash. URLs with one
// always have a RawPath.
func hasEncodedSlash(raw string) bool {
	return raw != "" && (strings.Contains(raw, "%2F") || strings.Contains(raw, "%2f"))
}

// maxDecodings is how often an upstream might decode a path.
const maxDecodings = 3

// hasDots reports whether a decoded path has dot segments, as it is or for a server that
// decodes it again, takes backslashes for slashes, or removes parameters.
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

// decodeAgain decodes valid escapes and leaves the others.
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

// cleanDots resolves dot segments as RFC 3986 does, including those with escaped dots.
// The rest of the path stays as it is.
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
				kept = append(kept, "") // so that the path ends in a slash
			}
		default:
			kept = append(kept, segment)
		}
	}
	return withPath(u, "/"+strings.Join(kept, "/"))
}

// withPath returns a copy of u whose escaped path is escaped, which is made of parts of u's.
func withPath(u *url.URL, escaped string) *url.URL {
	made := *u
	made.Path, _ = url.PathUnescape(escaped) // the parts are valid, so this cannot fail
	made.RawPath = ""
	if made.EscapedPath() != escaped {
		made.RawPath = escaped
	}
	return &made
}
