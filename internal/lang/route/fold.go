package route

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold returns the one spelling of all that differ by case alone, as
// [strings.EqualFold] compares. It allocates only if there is something to fold.
func Fold(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return strings.Map(foldRune, s)
		}
	}
	return s
}

// foldRune returns the lower case of the smallest letter that r may stand for.
func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}

// folded keeps text and shape as long as each other: a slash that divides nothing is
// a zero in the shape, which has no case.
func (r Reading) folded() Reading { return Reading{Fold(r.text), Fold(r.shape)} }
