package jsonvalue

import "strings"

// Members goes through the members of an object in the order they are written,
// duplicates included.
//
//	for m := v.Members(); m.Next(); {
//		use(m.Name, m.Value)
//	}
type Members struct {
	Name  string
	Value Value
	rest  string // from the quote of the next name on
}

// Members returns those of v, which has none if it is not an object.
func (v Value) Members() Members {
	if v == "" || v[0] != '{' {
		return Members{}
	}
	return Members{rest: skipSpace(string(v[1:]))}
}

// Next moves on to the next member and reports whether there is one.
func (m *Members) Next() bool {
	if m.rest == "" || m.rest[0] != '"' {
		*m = Members{}
		return false
	}
	end := stringEnd(m.rest)
	m.Name = unquote(m.rest[:end])
	rest := skipSpace(m.rest[end:])
	rest = skipSpace(strings.TrimPrefix(rest, ":"))
	end = valueEnd(rest)
	m.Value = Value(rest[:end])
	rest = skipSpace(rest[end:])
	m.rest = skipSpace(strings.TrimPrefix(rest, ","))
	return true
}

func skipSpace(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t' || s[0] == '\r' || s[0] == '\n') {
		s = s[1:]
	}
	return s
}

// valueEnd returns the length of the value that s starts with.
func valueEnd(s string) int {
	if s == "" {
		return 0
	}
	switch s[0] {
	case '"':
		return stringEnd(s)
	case '{', '[':
		return nestEnd(s)
	}
	if end := strings.IndexAny(s, ",]} \t\r\n"); end >= 0 {
		return end
	}
	return len(s)
}

// nestEnd counts brackets instead of recursing: depth costs no stack.
func nestEnd(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i += stringEnd(s[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// stringEnd returns the length of the quoted string that s starts with.
func stringEnd(s string) int {
	for i := 1; ; {
		quote := strings.IndexByte(s[i:], '"')
		if quote < 0 {
			return len(s)
		}
		end := i + quote
		escapes := 0
		for end-escapes > 1 && s[end-escapes-1] == '\\' {
			escapes++
		}
		i = end + 1
		if escapes%2 == 0 { // else the quote itself is escaped
			return i
		}
	}
}
