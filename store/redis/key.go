package redis

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

// What is counted for one subject under one rule is kept under the key
//
//	tg:RULE:{SCOPE=VALUE}
//
// such as tg:api:{user=42}. In a cluster, what stands in braces decides where a key
// lives, so that all the keys of a subject live together. Without a scope it is
// {VALUE}, and {=} if there is no value either. A scope of several parts with as many
// values is {user=42,route=%2Forders}. Logs and leases have keys of their own, with
// :log:PERIOD and :slots:PERIOD behind.
//
// Bytes other than letters, digits and ._@- are written %2F. A part longer than 64
// bytes is # and its SHA-256. Different subjects never have the same key.

const maxPart = 64

func escape(part string) string { return string(appendPart(nil, part)) }

// appendPart appends a part of a key to b.
func appendPart(b []byte, part string) []byte {
	if len(part) > maxPart {
		sum := sha256.Sum256([]byte(part))
		b = append(b, '#')
		return base64.RawURLEncoding.AppendEncode(b, sum[:])
	}
	for i := range len(part) {
		if c := part[i]; plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return b
}

const hexDigits = "0123456789ABCDEF"

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '.' || c == '_' || c == '@' || c == '-'
}

// appendTag appends what stands in braces.
func appendTag(b []byte, scope, value string) []byte {
	switch {
	case scope == "" && value == "":
		return append(b, '=')
	case scope == "":
		return appendPart(b, value)
	}
	if strings.Contains(scope, ",") && len(value) <= maxPart {
		if whole, ok := appendPairs(b, scope, value); ok {
			return whole
		}
	}
	b = appendPart(b, scope)
	b = append(b, '=')
	return appendPart(b, value)
}

// appendPairs appends a scope of several parts with their values, if value is as many
// parts framed by their lengths.
func appendPairs(b []byte, scope, value string) ([]byte, bool) {
	for more := true; more; {
		var name, part string
		name, scope, more = strings.Cut(scope, ",")
		var ok bool
		if part, value, ok = cutFrame(value); !ok {
			return nil, false
		}
		b = appendPart(b, name)
		b = append(b, '=')
		b = appendPart(b, part)
		if more {
			b = append(b, ',')
		}
	}
	return b, value == ""
}

// tagOf returns what stands in braces: keys of one tag live in one slot of a cluster.
func tagOf(key string) string {
	_, tag, _ := strings.Cut(key, "{")
	tag, _, _ = strings.Cut(tag, "}")
	return tag
}

// cutFrame cuts off the first of several parts that tidegate.Key joined.
func cutFrame(key string) (part, rest string, ok bool) {
	digits, rest, ok := strings.Cut(key, ":")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n > len(rest) || strconv.Itoa(n) != digits {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}

// Key is a key of a Store, as it was found in Redis.
type Key struct {
	// Name is the whole of it.
	Name string
	// Rule is the name of the limits counted under it.
	Rule string
	// Subject is who is counted, as it stands in braces: user=42.
	Subject string
	// Kind is "log" or "slots" for a key of its own, and Period the period of the limit. For
	// a tally it is "tally", and Period a hash. Both are "" for the key of all other counters.
	Kind, Period string
}

// parseKey takes a key apart. It reports false for a key that is not a counter's.
func parseKey(prefix, name string) (Key, bool) {
	k := Key{Name: name}
	rest, ok := strings.CutPrefix(name, prefix+":")
	if !ok {
		return k, false
	}
	rule, rest, ok := strings.Cut(rest, ":{")
	if !ok {
		return k, false
	}
	k.Rule, ok = unescape(rule)
	if !ok {
		return k, false
	}
	k.Subject, rest, ok = strings.Cut(rest, "}")
	if !ok || rest == "" {
		return k, ok
	}
	if rest, ok = strings.CutPrefix(rest, ":"); !ok {
		return k, false
	}
	k.Kind, k.Period, ok = strings.Cut(rest, ":")
	return k, ok
}

// unescape is the inverse of escape, except of a hash, which stays one.
func unescape(part string) (string, bool) {
	if !strings.Contains(part, "%") {
		return part, true
	}
	var b []byte
	for i := 0; i < len(part); i++ {
		if part[i] != '%' {
			b = append(b, part[i])
			continue
		}
		if i+2 >= len(part) {
			return "", false
		}
		n, err := strconv.ParseUint(part[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b = append(b, byte(n))
		i += 2
	}
	return string(b), true
}
