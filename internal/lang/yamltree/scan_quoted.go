package yamltree

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads a scalar in ' or ", over lines. It reports whether it gave up, at
// the beginning of a line.
func (s *scanner) quoted(q rune) (lineBegins bool) {
	at := s.here(0)
	s.col++
	var text []rune
	minLen := 0 // blanks before this index are not trimmed: they were escaped, or are on a line above
	for {
		switch c := s.peek(0); {
		case c == 0:
			if !s.foldQuoted(&text, minLen) {
				s.notClosed(at, q)
				return true
			}
			minLen = len(text)
		case c == q && q == '\'' && s.peek(1) == q:
			text = append(text, q)
			s.col += 2
		case c == q:
			s.col++
			s.addQuoted(at, text)
			return false
		case c == '\\' && q == '"':
			text = s.escape(text)
			minLen = len(text)
		default:
			text = append(text, c)
			s.col++
		}
	}
}

// addQuoted adds the scalar that began at at and ends here.
func (s *scanner) addQuoted(at place, text []rune) {
	end := s.col
	if s.line+1 != at.line {
		end = len(s.text[at.line-1])
	}
	at.len = end - at.col + 1
	s.tokens = append(s.tokens, token{
		kind: word, quoted: true, flow: len(s.flow) > 0,
		text: string(text), place: at, endLine: s.line + 1,
	})
}

// foldQuoted goes over the end of a line. It trims the blanks at the end of text from
// index minLen on, and appends what the end of the line stands for. It returns false if
// the next line with text cannot belong to the scalar, or there is none.
func (s *scanner) foldQuoted(text *[]rune, minLen int) bool {
	escaped := s.col > len(s.text[s.line]) // by a backslash, see escape
	if !escaped {
		for len(*text) > minLen && blank((*text)[len(*text)-1]) {
			*text = (*text)[:len(*text)-1]
		}
	}
	from := s.line
	for s.nextLine(); s.line < len(s.text); s.nextLine() {
		if len(trimRight(s.text[s.line])) == 0 {
			continue
		}
		s.skipBlanks()
		if s.col <= s.parent || s.isMarker(s.line, "---") || s.isMarker(s.line, "...") {
			return false
		}
		if n := s.line - from; !escaped || n > 1 {
			*text = append(*text, []rune(fold(n))...)
		}
		return true
	}
	return false
}

// notClosed fails because the quote q at at is not closed, and goes back to the line
// below it.
func (s *scanner) notClosed(at place, q rune) {
	s.fail(at, fmt.Sprintf("the quote %c is not closed", q), fmt.Sprintf("write %c after the text; further lines of it are indented deeper than its key", q))
	s.line, s.col = at.line, 0 // at counts from 1: this is the next one
}

// escapes are what a backslash and one more character stand for.
var escapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', '\t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	' ': ' ', '"': '"', '/': '/', '\\': '\\', 'N': 0x85, '_': 0xa0, 'L': 0x2028, 'P': 0x2029,
}

// escape appends what the backslash here and the characters behind it stand for.
func (s *scanner) escape(text []rune) []rune {
	c := s.peek(1)
	if c == 0 {
		s.col += 2 // beyond the end of the line: foldQuoted adds nothing
		return text
	}
	if r, ok := escapes[c]; ok {
		s.col += 2
		return append(text, r)
	}
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[c]
	r, ok := s.hex(2, digits)
	if !ok {
		s.refuse(s.here(2), fmt.Sprintf("`\\%c` is not an escape of a text in double quotes", c), `write \\ for a backslash, or put the text in single quotes`)
		s.col += 2
		return append(text, '\\', c)
	}
	n := 2 + digits
	if utf16.IsSurrogate(r) && s.peek(n) == '\\' && s.peek(n+1) == 'u' {
		if low, ok := s.hex(n+2, 4); ok {
			r = utf16.DecodeRune(r, low)
			n += 6
		}
	}
	if !utf8.ValidRune(r) || r == utf8.RuneError {
		s.refuse(s.here(n), "an escape that stands for no character", "write the character itself")
	}
	s.col += n
	return append(text, r)
}

// hex reads n hexadecimal digits that begin i characters after the next one. It returns
// false if there are fewer.
func (s *scanner) hex(i, n int) (rune, bool) {
	line := s.text[s.line]
	from := s.col + i
	if n == 0 || from+n > len(line) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(line[from:from+n]), 16, 31)
	return rune(v), err == nil
}
