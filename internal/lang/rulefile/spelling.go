package rulefile

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Spelling says which spellings of a value count as the same, so that an account has one
// counter however its name is written. The zero value keeps values as they are.
type Spelling uint8

const (
	// Lower writes letters in lower case, each by itself: those that Unicode's simple
	// mappings to lower, upper and title case or its simple folding connect become one.
	// ß stays apart from ss, and é from e with an accent after it.
	Lower Spelling = 1 << iota
	// Trim removes white space, control and invisible formatting characters from both ends.
	Trim
)

// spellings are the words of a source, in the order in which they are shown.
var spellings = []struct {
	word string
	is   Spelling
}{{"lower", Lower}, {"trim", Trim}}

// String returns the words of s, each with a space after it.
func (s Spelling) String() string {
	text := ""
	for _, one := range spellings {
		if s&one.is != 0 {
			text += one.word + " "
		}
	}
	return text
}

// Apply returns text normalized by s. The order of Lower and Trim does not matter.
func (s Spelling) Apply(text string) string {
	if s&Trim != 0 {
		text = strings.TrimFunc(text, blank)
	}
	if s&Lower != 0 {
		text = lower(text)
	}
	return text
}

// blank reports whether r is invisible at the end of a word, so that Trim removes it.
func blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// lower returns text in lower case, without a copy if it is ASCII and has no capitals. Bytes that
// are not UTF-8 stay.
func lower(text string) string {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return text[:i] + lowerRest(text[i:])
		}
	}
	return text
}

func lowerRest(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		if r, size = utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			b.WriteByte(text[i])
			continue
		}
		b.WriteRune(lowerRune(r))
	}
	return b.String()
}

// lowerRune returns one rune for all that some server may take for the same letter: the
// lower case of the smallest of them.
func lowerRune(r rune) rune {
	for {
		least := min(r, unicode.ToLower(r), unicode.ToUpper(r), unicode.ToTitle(r))
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		if least == r {
			return unicode.ToLower(r)
		}
		r = least
	}
}

// Place returns the text of s without the words of its spelling: where the value is found.
func (s *Source) Place() string { return strings.TrimPrefix(s.Text, s.Spelling.String()) }

// cutSpelling sets the Spelling of s from the first of words, and returns the words after it. It
// rewrites the Text of s so that the spelling is in canonical order: the text may be part of the
// name of a counter.
func (s *Source) cutSpelling(words []string) ([]string, mistake) {
	for len(words) > 0 {
		is := spellingOf(words[0])
		if is == 0 {
			break
		}
		if s.Spelling&is != 0 {
			return nil, mistake{diag.Quote(s.Text) + " says " + diag.Quote(words[0]) + " twice", "remove one of them"}
		}
		s.Spelling |= is
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, mistake{diag.Quote(s.Text) + " does not say where the value is found", "write " + diag.Quote(s.Text+" body.email")}
	}
	s.Text = s.Spelling.String() + strings.Join(words, " ")
	if last := words[len(words)-1]; len(words) > 1 && spellingOf(last) != 0 && named[strings.Join(words[:len(words)-1], " ")] == SourceNone {
		return nil, mistake{diag.Quote(last) + " stands before the place where the value is found", "write " + diag.Quote(last+" "+strings.TrimSuffix(s.Text, " "+last))}
	}
	if word, ok := otherSpellings[strings.ToLower(words[0])]; ok && len(words) > 1 {
		return nil, mistake{diag.Quote(words[0]) + " is not something that is done to a value", "write " + diag.Quote(word+" "+strings.Join(words[1:], " "))}
	}
	return words, mistake{}
}

func spellingOf(word string) Spelling {
	for _, one := range spellings {
		if one.word == word {
			return one.is
		}
	}
	return 0
}

// otherSpellings are what people write instead of the words of a spelling.
var otherSpellings = map[string]string{
	"lowercase": "lower", "lowercased": "lower", "lowered": "lower", "downcase": "lower", "tolower": "lower", "lcase": "lower", "fold": "lower",
	"trimmed": "trim", "strip": "trim", "stripped": "trim", "trimspace": "trim",
	"upper": "lower", "uppercase": "lower",
}

// unspelled reports whether s, a source of numbers, has no spelling. If it has one, that is a mistake.
func (d *decoder) unspelled(s Source) bool {
	if s.Spelling != 0 {
		d.fail(s.Pos, "a number has no other spellings: "+diag.Quote(s.Text), "write "+diag.Quote(s.Place()))
	}
	return s.Spelling == 0
}
