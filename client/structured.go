package client

import (
	"net/http"
	"strings"
	"time"
)

// Bounds of a structured field; a longer one is ignored.
const (
	maxField = 8 << 10
	maxItems = 32
)

// structuredQuotas reads RateLimit and RateLimit-Policy of draft 11, which are lists of
// RFC 9651, and RateLimit of draft 7, which is a dictionary: limit=100, remaining=50, reset=5.
func structuredQuotas(h http.Header) []quota {
	items, ok := parseList(strings.Join(h.Values("RateLimit"), ","))
	if !ok || len(items) == 0 {
		return nil
	}
	if q, ok := draft7(items); ok {
		return []quota{q}
	}
	policies, _ := parseList(strings.Join(h.Values("RateLimit-Policy"), ","))
	var all []quota
	for _, item := range items {
		q := quota{name: item.name, left: -1, reset: -1}
		if n, ok := parseCount(item.param("r")); ok {
			q.left = n
		}
		if d, ok := parseNumber(item.param("t"), time.Second); ok {
			q.reset = d
		}
		for _, p := range policies {
			if p.name == item.name {
				q.limit, _ = parseCount(p.param("q"))
				if q.unit = p.param("qu"); q.unit == "requests" {
					q.unit = ""
				}
			}
		}
		all = append(all, q)
	}
	return all
}

// draft7 reads the dictionary of draft 7.
func draft7(items []item) (quota, bool) {
	q, found := quota{name: "draft7", left: -1, reset: -1}, false
	for _, item := range items {
		name, value, ok := strings.Cut(item.name, "=")
		if !ok {
			continue
		}
		switch name {
		case "limit":
			q.limit, _ = parseCount(value)
		case "remaining":
			if n, ok := parseCount(value); ok {
				q.left, found = n, true
			}
		case "reset":
			if d, ok := parseNumber(value, time.Second); ok {
				q.reset = d
			}
		}
	}
	return q, found
}

// item is a member of a list of RFC 9651: a string or token, and its parameters.
type item struct {
	name   string
	params []param
}

type param struct{ key, value string }

// param returns the value of a parameter; if it occurs several times, the last, as RFC 9651 says.
func (i *item) param(key string) (value string) {
	for _, p := range i.params {
		if p.key == key {
			value = p.value
		}
	}
	return value
}

// parseList parses a list. One mistake makes the whole field invalid, as RFC 9651 says.
func parseList(s string) (all []item, ok bool) {
	if len(s) > maxField {
		return nil, false
	}
	s = strings.Trim(s, " \t")
	for s != "" {
		if len(all) == maxItems {
			return nil, false
		}
		var i item
		if i.name, s, ok = bareItem(s); !ok {
			return nil, false
		}
		if s, ok = i.parseParams(s); !ok {
			return nil, false
		}
		all = append(all, i)
		s = strings.TrimLeft(s, " \t")
		if s == "" {
			break
		}
		if s[0] != ',' {
			return nil, false
		}
		if s = strings.TrimLeft(s[1:], " \t"); s == "" { // a trailing comma
			return nil, false
		}
	}
	return all, true
}

func (i *item) parseParams(s string) (rest string, ok bool) {
	for strings.HasPrefix(s, ";") {
		s = strings.TrimLeft(s[1:], " ")
		end := strings.IndexAny(s, "=;, \t")
		if end < 0 {
			end = len(s)
		}
		p := param{key: s[:end]}
		s = s[end:]
		if p.key == "" {
			return "", false
		}
		if strings.HasPrefix(s, "=") {
			if p.value, s, ok = bareItem(s[1:]); !ok {
				return "", false
			}
		}
		i.params = append(i.params, p)
	}
	return s, true
}

// bareItem parses a string in quotes, or anything else up to a separator.
func bareItem(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ";, \t\"")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], end > 0
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "", false
			}
			b.WriteByte(s[i])
		case c < 0x20 || c > 0x7e:
			return "", "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}
