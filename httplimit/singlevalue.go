package httplimit

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// singleValue collects the values that a request has under one name. Servers differ in which of
// two values they use, so two that differ count as none.
type singleValue struct {
	value             string
	seen, conflicting bool
}

func (s *singleValue) add(value string) {
	if s.seen && value != s.value {
		s.conflicting = true
	}
	s.value, s.seen = value, true
}

// addUnclear adds a value that some servers read and others do not.
func (s *singleValue) addUnclear() { s.seen, s.conflicting = true, true }

// text returns the one value, or "".
func (s *singleValue) text() string {
	if s.conflicting {
		return ""
	}
	return s.value
}

// header returns the value that all lines of that name have. For Host it looks at r.Host,
// to which the server moves that header.
func header(r *http.Request, name string) string {
	name = textproto.CanonicalMIMEHeaderKey(name)
	if name == "Host" {
		return r.Host
	}
	var s singleValue
	for _, line := range r.Header[name] {
		line = textproto.TrimString(line) // HTTP/2 lets spaces in, and what is sent on has none
		if name == "Authorization" {
			line = credentials(line)
		}
		s.add(line)
	}
	if strings.IndexByte(name, '-') >= 0 {
		s.addCGINames(r.Header, name)
	}
	return s.text()
}

// credentials returns the value of Authorization in one spelling: servers take the name of a scheme
// in any case, and any spaces after it.
func credentials(v string) string {
	end := strings.IndexAny(v, " \t")
	if end < 0 {
		return v
	}
	for _, scheme := range [...]string{"Bearer", "Basic"} {
		if strings.EqualFold(v[:end], scheme) {
			return scheme + " " + strings.TrimLeft(v[end:], " \t")
		}
	}
	return v
}

// addCGINames adds the lines of other names that are the same in CGI, where a dash becomes an
// underscore: the server behind may not tell them apart.
func (s *singleValue) addCGINames(h http.Header, name string) {
	if !s.seen {
		return
	}
	for other, lines := range h {
		if len(other) != len(name) || strings.IndexByte(other, '_') < 0 || !sameInCGI(other, name) {
			continue
		}
		for _, line := range lines {
			s.add(textproto.TrimString(line))
		}
	}
}

// sameInCGI reports whether two names of the same length are the same to CGI.
func sameInCGI(a, b string) bool {
	for i := range len(a) {
		if fold(a[i]) != fold(b[i]) {
			return false
		}
	}
	return true
}

func fold(c byte) byte {
	switch {
	case c == '_':
		return '-'
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return c
}

// cookie returns the value that all cookies of that name have, read as package http does and decoded
// as many servers do: else one session would be many. A value that http would drop counts as
// conflicting, because other servers keep it.
func cookie(r *http.Request, name string) string {
	var s singleValue
	for _, line := range r.Header["Cookie"] {
		for more := true; more; {
			var pair string
			pair, line, more = strings.Cut(line, ";")
			key, value, _ := strings.Cut(pair, "=")
			if key = textproto.TrimString(key); key != name && !decodesTo(key, name) {
				continue
			}
			if value, ok := cookieValue(textproto.TrimString(value)); ok && key == name {
				s.add(unescape(value))
			} else {
				s.addUnclear()
			}
		}
	}
	return s.text()
}

// decodesTo reports whether key is name to servers that decode the names of cookies.
func decodesTo(key, name string) bool {
	if strings.IndexByte(key, '%') < 0 && strings.IndexByte(key, '+') < 0 {
		return false
	}
	plain, err := url.QueryUnescape(key)
	return err == nil && plain == name
}

// unescape returns a value with its escapes decoded, or as it is if one of them is invalid. A plus
// stays: few servers take that of a cookie for a space, and base64 has it.
func unescape(v string) string {
	if strings.IndexByte(v, '%') < 0 {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

// cookieValue takes off the quotes, and reports whether http would take the rest.
func cookieValue(v string) (string, bool) {
	if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
		v = v[1 : len(v)-1]
	}
	for i := range len(v) {
		if c := v[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return "", false
		}
	}
	return v, true
}

// query returns the value that all parameters of that name have, without building a map. It
// must see what the handler will see, so a fuzz test compares it with url.ParseQuery. What
// that drops (a semicolon, a bad escape) counts as conflicting: other servers keep it, or
// take the semicolon for a separator.
func query(raw, name string) string {
	var s singleValue
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if pair == "" {
			continue
		}
		if strings.IndexByte(pair, ';') >= 0 {
			s.addSemicolonParts(pair, name)
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		if !isNamed(key, name) {
			continue
		}
		if value, err := url.QueryUnescape(value); err == nil {
			s.add(value)
		} else {
			s.addUnclear()
		}
	}
	return s.text()
}

// addSemicolonParts adds a pair that contains semicolons as the servers read it for which ;
// separates pairs.
func (s *singleValue) addSemicolonParts(pair, name string) {
	for more := true; more; {
		var part string
		part, pair, more = strings.Cut(pair, ";")
		key, _, _ := strings.Cut(part, "=")
		if isNamed(key, name) {
			s.addUnclear()
		}
	}
}

// isNamed reports whether a key of a query is the name, once decoded.
func isNamed(key, name string) bool {
	key, err := url.QueryUnescape(key) // allocates only if something is escaped
	return err == nil && key == name
}
