package yamltree

import (
	"fmt"
	"strings"
)

// block reads a scalar that begins with | or >; folded means that it is >. It always
// returns true: it goes on to the beginning of the line below the scalar.
func (s *scanner) block(folded bool) (lineBegins bool) {
	at := s.here(1)
	digit, chomp := 0, rune(0)
	for s.col++; ; s.col++ {
		switch c := s.peek(0); {
		case c >= '1' && c <= '9' && digit == 0:
			digit = int(c - '0')
			continue
		case (c == '-' || c == '+') && chomp == 0:
			chomp = c
			continue
		}
		break
	}
	at.len = s.col + 1 - at.col
	s.skipBlanks()
	if !s.atEnd() || s.peek(0) == '#' && !blank(s.text[s.line][s.col-1]) {
		sign := string(s.text[at.line-1][at.col-1])
		s.fail(s.here(1), fmt.Sprintf("text on the line of `%s`", sign), fmt.Sprintf("begin it on the next line; a value that begins with `%s` is quoted", sign))
	}
	s.nextLine()
	lines := s.blockLines(digit)
	s.tokens = append(s.tokens, token{kind: word, text: blockText(lines, folded, chomp), place: at, endLine: s.line})
	return true
}

// blockLines takes the lines of a block scalar, with their ends and without
// their indentation. That is the indentation of the first line which is not empty, or,
// if digit is not 0, digit spaces more than that of the key or dash.
func (s *scanner) blockLines(digit int) []string {
	var lines []string
	depth := 0
	if digit > 0 {
		depth = max(s.parent, 0) + digit
	}
	for ; s.line < len(s.text); s.nextLine() {
		line := s.text[s.line]
		indent := 0
		for indent < len(line) && line[indent] == ' ' {
			indent++
		}
		end := "\n"
		if s.line == len(s.text)-1 {
			end = ""
		}
		if indent == len(line) && (digit == 0 || indent <= depth) {
			if end != "" {
				lines = append(lines, end)
			}
			continue
		}
		if indent < len(line) && (indent <= max(s.parent, 0) || indent < depth) {
			break
		}
		if digit == 0 {
			depth, digit = indent, 1
		}
		lines = append(lines, string(line[depth:])+end)
	}
	return lines
}

// blockText joins the lines of a block scalar, each with its end where the file
// has one. When folded, the end between two lines is a space, unless there are
// empty lines between them or one is indented deeper. chomp is '-' for no end
// after the last line, '+' for all ends and 0 for one.
func blockText(lines []string, folded bool, chomp rune) string {
	var b strings.Builder
	end := ""         // of the last line that is not empty
	empty := 0        // how many empty lines follow that
	indented := false // that line was indented deeper
	for _, line := range lines {
		text := strings.TrimSuffix(line, "\n")
		if text == "" {
			empty++
			continue
		}
		deeper := blank(rune(text[0]))
		switch {
		case !folded || indented || deeper:
			b.WriteString(end)
		case end != "" && empty == 0:
			b.WriteByte(' ')
		}
		b.WriteString(strings.Repeat("\n", empty) + text)
		end, empty, indented = line[len(text):], 0, deeper
	}
	if chomp != '-' {
		b.WriteString(end)
	}
	if chomp == '+' {
		b.WriteString(strings.Repeat("\n", empty))
	}
	return b.String()
}
