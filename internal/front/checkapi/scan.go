package checkapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/lang/jsonvalue"
)

// scanner reads JSON of a known form from left to right, strictly, and copies only strings with
// escapes. After the first error it behaves as if the text had ended.
type scanner struct {
	text string
	at   int
	err  error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
	s.at = len(s.text)
}

func (s *scanner) expected(what string) {
	if s.at >= len(s.text) {
		s.fail("the JSON ends where %s is expected", what)
		return
	}
	s.fail("the JSON has %q at byte %d, where %s is expected", s.text[s.at], s.at, what)
}

// peek returns the next byte that is not a space; 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// open reads the bracket at the beginning of an object or an array.
func (s *scanner) open(bracket byte, what string) bool {
	if s.peek() != bracket {
		s.expected(what)
		return false
	}
	s.at++
	return true
}

// next reports whether another element follows, and reads the comma before it; n counts elements.
// At the end it reads the closing bracket.
func (s *scanner) next(closing byte, n *int) bool {
	c := s.peek()
	switch {
	case c == closing && s.err == nil:
		s.at++
		return false
	case *n > 0 && c == ',':
		s.at++
		s.peek()
	case *n > 0 || s.err != nil || c == 0:
		s.expected("a comma or " + string(rune(closing)))
		return false
	}
	*n++
	return s.err == nil
}

// name reads the name of a member and the colon.
func (s *scanner) name() string {
	name := s.str("the name of a field")
	if s.peek() != ':' {
		s.expected("a colon")
		return ""
	}
	s.at++
	return name
}

// str reads a string.
func (s *scanner) str(what string) string {
	if s.peek() != '"' {
		s.expected(what)
		return ""
	}
	ascii := true
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			value := s.text[s.at+1 : i]
			if !ascii && !utf8.ValidString(value) {
				s.fail("%s is not valid UTF-8", what)
				return ""
			}
			s.at = i + 1
			return value
		case c == '\\':
			return s.escaped(what)
		case c < ' ':
			s.fail("%s has a control character at byte %d, which JSON escapes", what, i)
			return ""
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	s.fail("the JSON ends within %s", what)
	return ""
}

// escaped reads a string that contains a backslash.
func (s *scanner) escaped(what string) string {
	end := s.at + 1
	for ; end < len(s.text) && s.text[end] != '"'; end++ {
		if s.text[end] == '\\' {
			end++
		}
	}
	if end >= len(s.text) {
		s.fail("the JSON ends within %s", what)
		return ""
	}
	quoted := s.text[s.at : end+1]
	var value string
	if !utf8.ValidString(quoted) || json.Unmarshal([]byte(quoted), &value) != nil {
		s.fail("%s is not a valid JSON string", what)
		return ""
	}
	s.at = end + 1
	return value
}

// boolean reads true or false.
func (s *scanner) boolean(what string) bool {
	s.peek()
	for _, value := range [...]bool{true, false} {
		word := strconv.FormatBool(value)
		if strings.HasPrefix(s.text[s.at:], word) {
			s.at += len(word)
			return value
		}
	}
	s.expected(what + ", true or false,")
	return false
}

// integer reads an integer from low to high.
func (s *scanner) integer(what string, low, high int64) int64 {
	s.peek()
	text := s.token()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '+' || strconv.FormatInt(n, 10) != text || n < low || n > high {
		s.fail("%s is not a whole number from %d to %d", what, low, high)
		return 0
	}
	return n
}

// token reads a literal: anything that is neither quoted nor in brackets.
func (s *scanner) token() string {
	rest := s.text[s.at:]
	if end := strings.IndexAny(rest, ",]} \t\r\n"); end >= 0 {
		rest = rest[:end]
	}
	s.at += len(rest)
	return rest
}

// scalar reads a string, or a number as its digits.
func (s *scanner) scalar(what string) string {
	c := s.peek()
	if c == '-' || '0' <= c && c <= '9' {
		token := s.token()
		if text, ok := jsonvalue.Value(token).Text(); ok && json.Valid([]byte(token)) {
			return text
		}
		s.fail("%s is not a number", what)
		return ""
	}
	return s.str(what)
}

// value reads any value, and returns it as it is written.
func (s *scanner) value(what string) string {
	s.peek()
	start := s.at
	for depth := 0; s.err == nil; {
		switch c := s.peek(); {
		case s.at == len(s.text), depth == 0 && (c == ',' || c == ':'):
			s.expected(what)
		case c == '"':
			s.str(what)
		case c == '{' || c == '[':
			depth++
			s.at++
		case c == '}' || c == ']':
			depth--
			s.at++
		case c == ',' || c == ':':
			s.at++
		default:
			s.token()
		}
		if depth <= 0 {
			break
		}
	}
	if s.err != nil {
		return ""
	}
	text := s.text[start:s.at]
	if !json.Valid([]byte(text)) {
		s.fail("%s is not valid JSON", what)
		return ""
	}
	return text
}

// end rejects trailing text.
func (s *scanner) end() error {
	if s.peek() != 0 || s.at < len(s.text) {
		s.expected("the end")
	}
	return s.err
}
