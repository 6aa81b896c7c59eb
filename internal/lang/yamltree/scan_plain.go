package yamltree

import (
	"fmt"
	"strings"
)

// plain reads a scalar that has no quotes. mayBeKey is false after the colon of a key.
func (s *scanner) plain(mayBeKey bool) {
	at := s.here(0)
	if n := s.address(); n > 0 {
		s.addWord(at, n)
		return
	}
	n, stop := s.run()
	if stop == ':' && !mayBeKey && len(s.flow) == 0 {
		n = s.secondColon(n)
	}
	s.refuseText(n)
	s.addWord(at, n)
	if stop == 0 && len(s.flow) == 0 {
		s.continuePlain(mayBeKey)
	}
}

// addWord makes a word of the next n characters, which begin at at, and goes past them.
func (s *scanner) addWord(at place, n int) {
	at.len = n
	text := string(s.text[s.line][s.col : s.col+n])
	s.tokens = append(s.tokens, token{kind: word, flow: len(s.flow) > 0, text: text, place: at, endLine: at.line})
	s.col += n
}

// run returns the length of the plain text that begins here, on this line, and
// the character that ends it: a colon, the # of a comment, a sign of the collection
// around it, or 0 for the end of the line.
func (s *scanner) run() (n int, stop rune) {
	inFlow := len(s.flow) > 0
	i := 0
	for ; ; i++ {
		c := s.peek(i)
		switch {
		case c == 0:
			return n, 0
		case blank(c):
			continue
		case c == ':' && (ends(s.peek(i+1)) || inFlow && flowSign(s.peek(i+1))):
			return n, c
		case c == '#' && i > 0 && blank(s.peek(i-1)):
			return n, c
		case inFlow && flowSign(c):
			if group := s.group(i); i > 0 && group > 0 {
				i += group - 1
				break
			}
			return n, c
		}
		n = i + 1
	}
}

// continuePlain appends the lines below to the word just read: those indented deeper
// than what the word belongs to.
func (s *scanner) continuePlain(mayBeKey bool) {
	w := len(s.tokens) - 1
	var text strings.Builder
	text.WriteString(s.tokens[w].text)
	for line := s.line + 1; line < len(s.text); line++ {
		indent, content := s.indentation(line)
		if len(trimRight(s.text[line])) == 0 {
			continue
		}
		if !content || indent <= s.parent || s.isMarker(line, "---") || s.isMarker(line, "...") {
			break
		}
		was := s.line
		s.line, s.col = line, indent
		s.noTab()
		s.skipBlanks()
		n, stop := s.run()
		if stop == ':' || s.peek(0) == '-' && ends(s.peek(1)) {
			s.misplaced(s.tokens[w], n, mayBeKey)
			s.line, s.col = was, len(s.text[was])
			break
		}
		text.WriteString(fold(line - was))
		text.WriteString(string(s.text[line][s.col : s.col+n]))
		s.col += n
		if stop != 0 {
			break
		}
	}
	s.tokens[w].text, s.tokens[w].endLine = text.String(), s.line+1
}

// fold returns what n ends of lines in a row become inside of a scalar.
func fold(n int) string {
	if n == 1 {
		return " "
	}
	return strings.Repeat("\n", n-1)
}

// misplaced fails because a key or list item is here, indented below the word above, and
// so would be more of the text of that word. n is the length of its own plain text.
func (s *scanner) misplaced(above token, n int, mayBeKey bool) {
	what := "a list item"
	if s.peek(0) != '-' {
		what = fmt.Sprintf("`%s`", shorten(string(s.text[s.line][s.col:s.col+n])))
	}
	if mayBeKey && (len(s.tokens) == 1 || s.tokens[len(s.tokens)-2].kind != dash) {
		s.notKey(above)
		return
	}
	s.fail(s.here(max(n, 1)), fmt.Sprintf("%s is indented below `%s`, which is a value already", what, shorten(above.text)),
		"indent it like the line it belongs to")
}

// secondColon refuses `key: a: b`, where n is the length of a, and returns the length of
// the value up to the end of the line.
func (s *scanner) secondColon(n int) int {
	rest := s.text[s.line][s.col:]
	for i := 1; i < len(rest); i++ {
		if rest[i] == '#' && blank(rest[i-1]) {
			rest = rest[:i]
		}
	}
	rest = trimRight(rest)
	at := place{s.line + 1, s.col + n + 1, 1}
	for s.peek(at.col-1-s.col) != ':' {
		at.col++
	}
	s.refuse(at, "a second colon on the line", "if it belongs to the value, quote that: "+quote(string(rest))+"; if not, begin a new line")
	return len(rest)
}
