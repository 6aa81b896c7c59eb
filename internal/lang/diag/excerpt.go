package diag

import (
	"strings"
	"unicode"
)

const (
	widest = 100 // terminal columns of an excerpt
	before = 30  // characters kept in front of the caret when the line is too long
)

// excerpt returns the source line without its indentation, cut to widest columns around the
// problem, with the number of carets below it and of spaces before them. It returns no carets if
// there is no line to show.
func (p Problem) excerpt() (line string, spaces, carets int) {
	if strings.TrimSpace(p.Source) == "" || p.Line == 0 || p.Col == 0 {
		return "", 0, 0
	}
	text := []rune(p.Source)
	at := min(p.Col-1, len(text)) // the end of the line if something is missing there
	from := 0
	for from < at && unicode.IsSpace(text[from]) {
		from++ // the indentation
	}
	to := from + fitting(text[from:])
	if to < len(text) && at-from > before {
		from = at - before
		text[from] = '…'
		to = from + fitting(text[from:])
	}
	if to < len(text) {
		text = append(text[:to], '…')
	}
	end := min(at+max(p.Len, 1), len(text))
	return show(text[from:]), width(text[from:at]), max(width(text[at:end]), 1)
}

// fitting returns how many characters of text an excerpt has room for.
func fitting(text []rune) int {
	used := 0
	for i, r := range text {
		if used += columns(r); used > widest {
			return i
		}
	}
	return len(text)
}

// show returns text ready to print, with each tab as two spaces so that the carets line
// up whatever the tab width of the terminal.
func show(text []rune) string {
	return printable(strings.ReplaceAll(string(text), "\t", "  "))
}

// width returns how many columns of a terminal text takes, as show writes it.
func width(text []rune) int {
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}

// columns returns how many columns of a terminal r takes, as show writes it.
func columns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r == '\t' || unicode.In(r, wide):
		return 2
	}
	return 1
}

// wide are the characters that take two columns of a terminal: those of East
// Asia, and emoji. Rare ones are missing; then the caret is off by a column.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, // Hangul Jamo
		{0x2e80, 0x303e, 1}, // CJK radicals and punctuation
		{0x3041, 0xa4cf, 1}, // kana, ideographs, Yi
		{0xac00, 0xd7a3, 1}, // Hangul
		{0xf900, 0xfaff, 1}, // compatibility ideographs
		{0xfe30, 0xfe6f, 1}, // compatibility forms
		{0xff00, 0xff60, 1}, // full width
		{0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x1f300, 0x1f64f, 1}, // pictures, faces
		{0x1f680, 0x1f6ff, 1},
		{0x1f900, 0x1f9ff, 1},
		{0x20000, 0x3fffd, 1}, // ideographs
	},
}

// printable replaces characters that would control the terminal or reorder its text: the
// file may come from an attacker.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
