package envoy

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzPattern compares patterns with regular expressions of the same meaning.
func FuzzPattern(f *testing.F) {
	for _, s := range []struct{ pattern, value string }{
		{"*", ""}, {"a*", "a"}, {"*a", "ba"}, {"a*a", "a"}, {"a*a", "aa"}, {"a**b", "ab"}, {"a*b*a", "aba"}, {"a*bc*c", "abcc"}, {"*b*", "abc"}, {"a*", "a\nb"},
	} {
		f.Add(s.pattern, s.value)
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		p := newPattern(text)
		if (p != nil) != strings.Contains(text, "*") {
			t.Fatalf("%q is taken for %q", text, p)
		}
		if p == nil || len(text) > 100 {
			return
		}
		parts := strings.Split(text, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		want, err := regexp.Compile("(?s)^" + strings.Join(parts, ".*") + "$")
		if err != nil {
			t.Skip() // not UTF-8
		}
		if got := p.matches(value); got != want.MatchString(value) {
			t.Errorf("%q matches %q: %v", text, value, got)
		}
	})
}
