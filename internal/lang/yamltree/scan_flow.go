package yamltree

import "fmt"

// level is a { or [ that is open.
type level struct {
	place
	list bool
	has  progress
}

// progress is how much of an entry there is since the last comma.
type progress uint8

const (
	nothing  progress = iota
	entry             // a list item, or the key of a map
	keyColon          // `key:`
	pair              // `key: value`
)

func (l level) String() string {
	if l.list {
		return "["
	}
	return "{"
}

func (l level) closing() string {
	if l.list {
		return "]"
	}
	return "}"
}

// collection reads from { or [ to where it is closed, over lines. It reports
// whether it gave up, at the beginning of a line.
func (s *scanner) collection() (lineBegins bool) {
	s.open()
	for len(s.flow) > 0 {
		s.skipBlanks()
		if !s.atEnd() {
			if s.flowToken() {
				s.flow = nil
				return true
			}
			continue
		}
		if s.peek(0) == '#' && s.col > 0 && !blank(s.text[s.line][s.col-1]) {
			s.fail(s.here(1), "a comment without a space before it", "write a space before `#`; if it belongs to a value, quote that")
		}
		if !s.nextFlowLine() {
			l := s.flow[len(s.flow)-1]
			s.fail(l.place, fmt.Sprintf("`%s` is not closed", l), fmt.Sprintf("write `%s` after its last entry; lines inside are indented deeper than what they belong to", l.closing()))
			s.flow = nil
			return true
		}
	}
	return false
}

// nextFlowLine goes to the next line that has something on it, and reports
// whether that can still be inside of the { or [ that is open, or close it. If not, it
// stops at the beginning of that line.
func (s *scanner) nextFlowLine() bool {
	for s.nextLine(); s.line < len(s.text); s.nextLine() {
		indent, content := s.indentation(s.line)
		if !content {
			continue
		}
		if s.isMarker(s.line, "---") || s.isMarker(s.line, "...") {
			return false
		}
		s.col = indent
		s.noTab()
		s.skipBlanks()
		if c := s.peek(0); s.col > s.parent || c == '}' || c == ']' {
			return true
		}
		s.col = 0
		return false
	}
	return false
}

func (s *scanner) open() {
	list, k := s.peek(0) == '[', openMap
	if list {
		k = openList
	}
	s.flow = append(s.flow, level{place: s.here(1), list: list})
	s.take(k, 1)
}

// flowToken reads what comes next inside of { } or [ ]. It reports whether it
// gave up, at the beginning of a line.
func (s *scanner) flowToken() (lineBegins bool) {
	l := &s.flow[len(s.flow)-1]
	switch c := s.peek(0); {
	case c == '}' || c == ']':
		s.close(c)
	case c == ',':
		s.comma(l)
	case c == ':' && s.isFlowColon():
		s.flowColon(l)
	case c == '-' && ends(s.peek(1)):
		s.fail(s.here(1), fmt.Sprintf("a list item with `- ` inside of `%s`", l), "write the entries with commas between them, or the whole without braces and brackets")
		s.col++
	case (c == '{' || c == '[') && !s.hostPort():
		s.separate(l)
		s.open()
	case c == '"' || c == '\'':
		s.separate(l)
		return s.quoted(c)
	case c == '&' || c == '!':
		s.properties()
	default:
		s.separate(l)
		s.plain(true)
	}
	return false
}

// separate updates l for a key or value that comes next. If the comma before it is
// missing, separate reports that and inserts the token.
func (s *scanner) separate(l *level) {
	switch {
	case l.has == nothing:
		l.has = entry
	case l.has == keyColon:
		l.has = pair
	case l.has == entry && !l.list:
		s.fail(s.here(1), "neither a colon nor a comma before this", "write `key: value`, with commas between the entries")
		l.has = pair
	default:
		s.refuse(s.here(1), fmt.Sprintf("no comma before this entry of `%s`", l), "put a comma between the entries; if it is all one text, quote it")
		s.tokens = append(s.tokens, token{kind: comma, flow: true, place: s.here(1)})
		l.has = entry
	}
}

// isFlowColon reports whether the colon here follows a key. After a quoted key
// it needs no space behind it, as in JSON.
func (s *scanner) isFlowColon() bool {
	next, last := s.peek(1), s.last()
	json := last.kind == word && last.quoted && last.endLine == s.line+1 && s.col > 0 && (s.text[s.line][s.col-1] == '"' || s.text[s.line][s.col-1] == '\'')
	return ends(next) || flowSign(next) || json
}

// flowColon takes the colon of an entry of l, and fails if it does not belong there.
func (s *scanner) flowColon(l *level) {
	switch key := s.last(); {
	case l.list:
		s.fail(s.here(1), "`key: value` as an item of [ ]", "put braces around it: [{ key: value }]; or quote the text if the colon belongs to it")
	case l.has == keyColon || l.has == pair:
		s.fail(s.here(1), "a second colon in one entry of { }", "put a comma between the entries; if the colon belongs to the value, quote that")
	case l.has == nothing:
		s.fail(s.here(1), "a colon without a key before it", "write `key: value`, or quote the text")
	case key.kind != word:
		s.fail(s.here(1), "a key that is a map or list", "write a key as text: `key: value`")
	case key.endLine != key.line || key.line != s.line+1:
		s.fail(key.place, "a key of several lines", "write the key and its colon on one line")
	case key.text == "<<" && !key.quoted:
		s.fail(key.place, "`<<` merges maps, which is not done here", "write the fields out")
	}
	l.has = keyColon
	s.take(colon, 1)
}

func (s *scanner) comma(l *level) {
	if l.has == nothing {
		s.refuse(s.here(1), "a comma with nothing before it", "delete it")
		s.col++
		return
	}
	s.endEntry(l)
	l.has = nothing
	s.take(comma, 1)
}

func (s *scanner) close(c rune) {
	l := s.flow[len(s.flow)-1]
	s.endEntry(&l)
	if l.list != (c == ']') {
		s.fail(s.here(1), fmt.Sprintf("`%c` where `%s` closes the `%s` of line %d", c, l.closing(), l, l.line), "each closes the one that was opened last")
	}
	k := closeMap
	if c == ']' {
		k = closeList
	}
	s.take(k, 1)
	s.flow = s.flow[:len(s.flow)-1]
}

// endEntry fails if the entry of l that ends here is in a map and has no colon.
func (s *scanner) endEntry(l *level) {
	if l.list || l.has != entry {
		return
	}
	if t := s.last(); t.kind == word {
		s.fail(t.place, fmt.Sprintf("`%s` has no value", shorten(t.text)), colonHint(t.text, "write `key: value`; a list is in [ ]"))
		return
	}
	s.fail(s.here(1), "a value without a key inside of { }", "write `key: value`; a list is in [ ]")
}
