package rulefile

import (
	"strings"
	"testing"
	"unicode"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

func TestSpelling(t *testing.T) {
	f := func(s Spelling, text, want string) {
		t.Helper()
		if got := s.Apply(text); got != want {
			t.Errorf("%s%q: %q, want %q", s, text, got, want)
		}
	}
	f(0, " Ann ", " Ann ")
	f(Lower, " Ann ", " ann ")
	f(Trim, " Ann ", "Ann")
	for _, text := range []string{"ANN", "Ann ", "ann", "\tann\r\n", "\u00a0Ann\u3000", "\ufeffann", "ann\x00", "ann\u200b"} {
		f(Lower|Trim, text, "ann")
	}
	f(Lower|Trim, " Ann Lee ", "ann lee")
	f(Lower, "ÄRGER", "ärger")
	f(Lower, "ΣΊΣΥΦΟΣ", "σίσυφοσ")
	f(Lower, "σίσυφος", "σίσυφοσ")
	f(Lower, "\u212aELVIN", "kelvin") // the sign
	f(Lower, "\u017fam", "sam")       // long s
	f(Lower, "\u0130\u0131I", "iii")  // with a dot, without one
	f(Lower, "ẞ", "ß")
	f(Lower, "A\xffB", "a\xffb")
	f(Lower|Trim, " \xff ", "\xff")
	f(Lower|Trim, "  ", "")
}

// Runes that Go, and with it most servers, takes for one in any case are one; and the order
// of the two words does not matter.
func TestSpellingOfEveryRune(t *testing.T) {
	testdep.SkipUnderRace(t)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		is := lowerRune(r)
		for _, other := range []rune{unicode.ToLower(r), unicode.ToUpper(r), unicode.ToTitle(r), unicode.SimpleFold(r)} {
			if lowerRune(other) != is {
				t.Errorf("%U is %U, and %U is %U", r, is, other, lowerRune(other))
			}
		}
		if lowerRune(is) != is {
			t.Errorf("%U is %U, which is %U", r, is, lowerRune(is))
		}
		if blank(is) != blank(r) {
			t.Errorf("%U is blank: %v, %U: %v", r, blank(r), is, blank(is))
		}
	}
}

func TestSpellingKeepsMemory(t *testing.T) {
	text := strings.Repeat("ann@example.com", 3)
	if n := testing.AllocsPerRun(100, func() { (Lower | Trim).Apply(text) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
