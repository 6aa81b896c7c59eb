package route

import (
	"path"
	"strings"
)

// clean returns path.Clean of a path below the root, without a slash at the end. It
// allocates only if there is something to clean.
func clean(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if strings.Contains(p, "//") || strings.Contains(p, "/.") {
		p = path.Clean(p)
	}
	return strings.TrimSuffix(p, "/")
}

// unescape decodes raw, an escaped slash as the given byte. It reports whether the
// escapes are valid.
func unescape(b *strings.Builder, raw string, slash byte) bool {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			if i+2 >= len(raw) {
				return false
			}
			high, low := unhex(raw[i+1]), unhex(raw[i+2])
			if high > 15 || low > 15 {
				return false
			}
			if c = high<<4 | low; c == '/' {
				c = slash
			}
			i += 2
		}
		b.WriteByte(c)
	}
	return true
}

// replaceEscape puts a byte in the place of every escape of another.
func replaceEscape(s string, escaped, by byte) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && unhex(s[i+1]) == escaped>>4 && unhex(s[i+2]) == escaped&15 {
			b = append(b, by)
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// turnBackslashes makes slashes of backslashes, escaped or not.
func turnBackslashes(s string) string {
	return strings.ReplaceAll(replaceEscape(s, '\\', '/'), `\`, "/")
}

// decodeAgain decodes the escapes that are valid, and leaves the others.
func decodeAgain(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			if high, low := unhex(s[i+1]), unhex(s[i+2]); high <= 15 && low <= 15 {
				c = high<<4 | low
				i += 2
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// unhex returns the value of a hex digit; above 15 for anything else.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return (c | 0x20) - 'a' + 10
	}
	return 16
}

// withoutParameters cuts off what follows a semicolon in each segment, as servlet
// containers do before they look for a route.
func withoutParameters(p string) string {
	var b strings.Builder
	b.Grow(len(p))
	for {
		semicolon := strings.IndexByte(p, ';')
		if semicolon < 0 {
			b.WriteString(p)
			return b.String()
		}
		b.WriteString(p[:semicolon])
		slash := strings.IndexByte(p[semicolon:], '/')
		if slash < 0 {
			return b.String()
		}
		p = p[semicolon+slash:]
	}
}
