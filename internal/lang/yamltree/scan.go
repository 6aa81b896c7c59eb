package yamltree

import (
	"fmt"
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// scanner cuts a file into tokens and reports what is wrong on one line, or inside of
// { } and [ ], with what to write instead. The builder finds out from their indentation
// which lines belong together.
type scanner struct {
	file     string
	lines    diag.Lines
	text     [][]rune // the characters of lines
	line     int      // index into text
	col      int      // index into the line
	tokens   []token
	problems diag.List
	broken   bool // the shape of the document is unclear: make no tree

	// parent is the column of the key or dash that the next scalar belongs to;
	// its further lines are indented deeper. -1 at the root.
	parent  int
	flow    []level         // the { and [ that are open
	began   bool            // --- was seen
	tabs    []place         // in the indentation, one for each line
	anchors map[string]bool // names of the anchors that were refused
}

// maxProblems is how many problems are reported. If there are that many, most follow
// from others.
const maxProblems = 100

// scan returns a scanner that has read all lines of a file, or those up to the last
// problem that is reported.
func scan(file string, lines diag.Lines, text [][]rune) *scanner {
	s := &scanner{file: file, lines: lines, text: text, parent: -1, anchors: make(map[string]bool)}
	n := 0
	for _, line := range text {
		n += len(line)
	}
	s.tokens = make([]token, 0, n/4) // about as many as there are
	for s.line < len(s.text) && len(s.problems) < maxProblems {
		s.blockLine()
	}
	s.tellTabs()
	return s
}

// refuse adds a problem that leaves the shape of the document clear.
func (s *scanner) refuse(at place, message, hint string) {
	if len(s.problems) == maxProblems {
		return
	}
	s.problems.Add(s.lines.Problem(at.pos(s.file), diag.Error, message, hint))
}

// fail adds a problem after which the shape of the document is unclear.
func (s *scanner) fail(at place, message, hint string) {
	s.broken = true
	s.refuse(at, message, hint)
}

// here returns the place of the next n characters.
func (s *scanner) here(n int) place { return place{s.line + 1, s.col + 1, n} }

// peek returns the character that is i after the next one, so peek(0) is the next; 0
// means that the line has ended.
func (s *scanner) peek(i int) rune {
	if line := s.text[s.line]; s.col+i < len(line) {
		return line[s.col+i]
	}
	return 0
}

// take makes a token of kind k from the next n characters, and goes past them.
func (s *scanner) take(k kind, n int) {
	s.tokens = append(s.tokens, token{kind: k, flow: len(s.flow) > 0, place: s.here(n)})
	s.col += n
}

// last returns the newest token, nil when there is none.
func (s *scanner) last() *token {
	if len(s.tokens) == 0 {
		return nil
	}
	return &s.tokens[len(s.tokens)-1]
}

func (s *scanner) nextLine() { s.line, s.col = s.line+1, 0 }

func (s *scanner) skipLine() { s.col = len(s.text[s.line]) }

func blank(r rune) bool { return r == ' ' || r == '\t' }

// ends reports whether r, the character after a sign such as - or :, shows that the
// sign stands alone: r is a blank, or 0 for the end of the line.
func ends(r rune) bool { return r == 0 || blank(r) }

func (s *scanner) skipBlanks() {
	for blank(s.peek(0)) {
		s.col++
	}
}

// atEnd reports whether nothing is left of the line, or what may be a comment.
func (s *scanner) atEnd() bool {
	return s.peek(0) == 0 || s.peek(0) == '#'
}

// indentation returns the index of the first character of a line that is not a
// space, and whether there is more on the line than blanks and a comment.
func (s *scanner) indentation(line int) (n int, content bool) {
	text := s.text[line]
	for n < len(text) && text[n] == ' ' {
		n++
	}
	i := n
	for i < len(text) && blank(text[i]) {
		i++
	}
	return n, i < len(text) && text[i] != '#'
}

// noTab notes the next character if it is a tab, at most once per line. It is called
// where indentation says what belongs to what, so the shape is unclear then.
func (s *scanner) noTab() {
	if n := len(s.tabs); s.peek(0) == '\t' && (n == 0 || s.tabs[n-1].line != s.line+1) {
		s.tabs = append(s.tabs, s.here(1))
		s.broken = true
	}
}

// tellTabs reports all tabs that noTab noted as one problem, as most files have them on
// every line or on none. It takes back the problems from the line of the first tab on:
// most follow from the tabs.
func (s *scanner) tellTabs() {
	if len(s.tabs) == 0 {
		return
	}
	s.problems = slices.DeleteFunc(s.problems, func(p diag.Problem) bool { return p.Line >= s.tabs[0].line })
	hint := "indent with spaces, two for each level"
	if len(s.tabs) > 1 {
		hint += fmt.Sprintf("; %d lines have tabs", len(s.tabs))
	}
	s.fail(s.tabs[0], "a tab in the indentation", hint)
}
