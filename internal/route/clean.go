package route

import (
	"path"
	"strings"
)

// reading is a path as the segments that one way to read it gives: "" is none,
// "/a/b" two. shape is as long as text and shows where they part: a slash that
// belongs to a segment is something else there.
type reading struct{ text, shape string }

// end is where the segment that begins with the slash at i ends.
func (r *reading) end(i int) int {
	if n := strings.IndexByte(r.shape[i+1:], '/'); n >= 0 {
		return i + 1 + n
	}
	return len(r.shape)
}

// plain reads a decoded path.
func plain(p string) reading {
	p = clean(p)
	return reading{p, p}
}

// clean is path.Clean of a path below the root, without a slash at the end. It
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

// escaped reports whether a path as sent has a slash or a dot in escaped form.
func escaped(raw string) (slash, dot bool) {
	for {
		i := strings.IndexByte(raw, '%')
		if i < 0 || i+2 >= len(raw) {
			return slash, dot
		}
		if raw[i+1] == '2' {
			switch raw[i+2] {
			case 'F', 'f':
				slash = true
			case 'E', 'e':
				dot = true
			}
		}
		raw = raw[i+1:]
	}
}

var dots = strings.NewReplacer("%2e", ".", "%2E", ".")

// segmentwise reads a path as sent: first it is divided and cleaned, then each
// segment is decoded by itself. It reports whether the escapes are valid.
func segmentwise(raw string) (reading, bool) {
	raw = clean(raw)
	var b strings.Builder
	b.Grow(2 * len(raw))
	if !unescape(&b, raw, '/') {
		return reading{}, false
	}
	n := b.Len()
	unescape(&b, raw, 0)
	return reading{b.String()[:n], b.String()[n:]}, true
}

// unescape decodes raw, an escaped slash as the given byte.
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

// unhex is above 15 for what is no digit.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return (c | 0x20) - 'a' + 10
	}
	return 16
}
