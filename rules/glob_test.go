package rules

import (
	"regexp"
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	f := func(pattern, s string, want bool) {
		t.Helper()
		if got := globMatch(pattern, s); got != want {
			t.Errorf("%q fits %q: %v, want %v", s, pattern, got, want)
		}
	}
	f("*-bot", "search-bot", true)
	f("*-bot", "-bot", true)
	f("*-bot", "bot", false)
	f("*-bot", "search-bot-2", false)
	f("acme-*", "acme-", true)
	f("a*b*c", "a-b-b-c", true)
	f("a*b*c", "a-c-b", false)
	f("*", "", true)
	f("**", "x", true)
	f("a**", "ab", true)
	f("", "", true)
	f("", "x", false)
	f("a?c", "abc", false)
	f("*.example.com", "evil-example.com", false)
}

// A client chooses the value: no pattern may take exponential time over it.
func TestGlobIsNotSlow(t *testing.T) {
	pattern := strings.Repeat("a*", 50) + "b"
	if globMatch(pattern, strings.Repeat("a", 50_000)) {
		t.Error("there is no b")
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("a*b", "aXb")
	f.Add("*a*a*", "banana")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 50 || len(s) > 50 {
			return
		}
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		want, err := regexp.Compile(`(?s)\A` + strings.Join(parts, ".*") + `\z`)
		if err != nil {
			return // not UTF-8
		}
		if got := globMatch(pattern, s); got != want.MatchString(s) {
			t.Errorf("%q fits %q: %v", s, pattern, got)
		}
	})
}
