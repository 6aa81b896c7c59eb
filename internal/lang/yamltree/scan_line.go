package yamltree

import "fmt"

// blockLine reads a line outside of { } and [ ], and the lines below it that its
// last value goes on to.
func (s *scanner) blockLine() {
	indent, content := s.indentation(s.line)
	s.col = indent
	if content {
		s.noTab()
	}
	s.skipBlanks()
	switch {
	case s.atEnd():
		s.nextLine()
		return
	case indent == 0 && s.marker():
		return
	}
	lone := s.enter()
	for s.dash() {
		lone = false
		if s.atEnd() {
			s.nextLine()
			return
		}
	}
	s.entry(lone)
}

// enter sets the parent for what begins on this line. It reports whether the
// line can only begin with a key or a dash, as nothing above it waits for a value.
func (s *scanner) enter() (lone bool) {
	last := s.last()
	switch {
	case last == nil:
		s.parent = -1
		return false
	case last.kind != colon && last.kind != dash:
		s.parent = s.col
		return true
	case s.col <= s.parent:
		s.parent = s.col
	}
	return false
}

// dash takes the dash of a list item and the blanks after it, and reports whether there
// was one.
func (s *scanner) dash() bool {
	if s.peek(0) != '-' || !ends(s.peek(1)) {
		return false
	}
	s.parent = s.col
	s.take(dash, 1)
	for s.peek(0) == ' ' {
		s.col++
	}
	if s.peek(0) == '\t' {
		at := s.col
		s.skipBlanks()
		if !s.atEnd() {
			s.col = at
			s.noTab()
			s.skipBlanks()
		}
	}
	return true
}

// entry reads `key: value`, `key:` or a value, and goes to the line below it. lone means
// that a value alone is a mistake there.
func (s *scanner) entry(lone bool) {
	key, first := s.col, len(s.tokens)
	lineBegins := s.value(true)
	if !lineBegins {
		s.skipBlanks()
	}
	if lineBegins || s.peek(0) != ':' || !ends(s.peek(1)) {
		if (lineBegins || s.endLine()) && lone && first < len(s.tokens) {
			s.notKey(s.tokens[first])
		}
		return
	}
	s.checkKey(first)
	s.parent = key
	s.take(colon, 1)
	s.skipBlanks()
	switch {
	case s.atEnd():
		s.nextLine()
		return
	case s.peek(0) == '-' && ends(s.peek(1)):
		s.fail(s.here(1), "a list item on the line of its key", "begin the list on the next line, or write it in [ ]")
	}
	if !s.value(false) {
		s.endLine()
	}
}

// checkKey fails if the tokens from index first on cannot be a key.
func (s *scanner) checkKey(first int) {
	switch key := s.last(); {
	case len(s.tokens) == first:
		s.fail(s.here(1), "a colon without a key before it", "write `key: value`, or quote the text")
	case len(s.tokens) > first+1:
		s.fail(s.tokens[first].place, "a key that is a map or list", "write a key as text: `key: value`")
	case key.endLine != key.line:
		s.fail(key.place, "a key of several lines", "write the key on one line")
	case key.text == "<<" && !key.quoted:
		s.fail(key.place, "`<<` merges maps, which is not done here", "write the fields out")
	}
}

// notKey fails because t is a value where only a key can be.
func (s *scanner) notKey(t token) {
	if t.kind != word {
		s.fail(t.place, "a value without a key", "write `key: value`")
		return
	}
	s.fail(t.place, fmt.Sprintf("`%s` is followed by no colon, so it is neither a key nor a value", shorten(t.text)),
		colonHint(t.text, "write `key: value`, or quote the text if it belongs to the value above"))
}

// endLine goes to the next line. It returns false, and fails, if something other than
// a comment was left on this one.
func (s *scanner) endLine() bool {
	s.skipBlanks()
	ok := s.atEnd() && (s.peek(0) == 0 || blank(s.text[s.line][s.col-1]))
	if !ok {
		rest := trimRight(s.text[s.line][s.col:])
		s.fail(s.here(len(rest)), fmt.Sprintf("`%s` after the end of the value", shorten(string(rest))), s.afterValue())
	}
	s.nextLine()
	return ok
}

// afterValue returns the hint for text that follows a value on its line.
func (s *scanner) afterValue() string {
	switch last := s.last(); {
	case s.peek(0) == ':':
		return "begin a new line for what follows, or quote the whole value"
	case last.kind == word && last.quoted && s.text[last.line-1][last.col-1] == '\'':
		return "inside of '...' write '' for a quote"
	case last.kind == word && last.quoted:
		return `inside of "..." write \" for a quote`
	}
	return "quote the whole value if it is text"
}

// marker handles a line that begins or ends a document, or has a directive, and reports
// whether this is one.
func (s *scanner) marker() bool {
	switch {
	case s.isMarker(s.line, "---"):
		if s.began || len(s.tokens) > 0 {
			s.another()
			return true
		}
		s.began = true
		s.col += 3
		s.skipBlanks()
		if !s.atEnd() {
			s.fail(s.here(1), "a value on the line of ---", "begin it on the next line")
		}
	case s.isMarker(s.line, "..."):
		for s.nextLine(); s.line < len(s.text); s.nextLine() {
			if indent, content := s.indentation(s.line); content {
				s.col = indent
				s.another()
			}
		}
		return true
	case s.peek(0) == '%' && len(s.tokens) == 0:
		s.fail(s.here(len(s.text[s.line])), "a YAML directive", "delete the line")
	default:
		return false
	}
	s.nextLine()
	return true
}

// isMarker reports whether a line begins with mark, which is --- or ...; such a line
// ends every value above it.
func (s *scanner) isMarker(line int, mark string) bool {
	text := s.text[line]
	return len(text) >= 3 && string(text[:3]) == mark && (len(text) == 3 || blank(text[3]))
}

// another reports a second document, and leaves it unread.
func (s *scanner) another() {
	s.refuse(s.here(min(3, len(s.text[s.line])-s.col)), "a second document begins here", "one file is one document: put it into a file of its own")
	s.line = len(s.text)
}
