package lint

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// test reads a value as conditions have it.
func test(text string) rulefile.Test {
	t := rulefile.Test{Kind: rulefile.TestLiteral, Text: text}
	prefix, err := netip.ParsePrefix(text)
	switch list, isList := strings.CutPrefix(text, "in "); {
	case text == "present":
		t.Kind = rulefile.TestPresent
	case text == "absent":
		t.Kind = rulefile.TestAbsent
	case isList:
		t.Kind, t.Text = rulefile.TestIn, list
	case strings.Contains(text, "*"):
		t.Kind = rulefile.TestGlob
	case err == nil:
		t.Kind, t.Prefix = rulefile.TestPrefix, prefix
	}
	return t
}

func conditionPass() *pass {
	return newPass(&rulefile.File{Lists: []rulefile.List{
		{Name: rulefile.Word{Text: "staff"}, Tests: []rulefile.Test{test("admin"), test("sup-*")}},
		{Name: rulefile.Word{Text: "nets"}, Tests: []rulefile.Test{test("10.0.0.0/8"), test("192.0.2.0/24")}},
		{Name: rulefile.Word{Text: "file"}, File: "file.txt", Tests: []rulefile.Test{test("admin")}},
	}}, time.Time{})
}

func TestCovers(t *testing.T) {
	p := conditionPass()
	f := func(a, b string, want bool) {
		t.Helper()
		if got := p.covers(test(a), test(b)); got != want {
			t.Errorf("%s covers %s: got %t", a, b, got)
		}
	}
	f("a", "a", true)
	f("a", "b", false)
	f("present", "a", true)
	f("present", "*-bot", true)
	f("present", "absent", false)
	f("absent", "absent", true)
	f("absent", "a", false)
	f("a", "present", false)
	f("*", "a", true)
	f("a*", "ab", true)
	f("a*", "ba", false)
	f("a*", "a*", true)
	f("a*", "ab*", false) // it does, and is not looked into
	f("10.0.0.0/8", "10.1.0.0/16", true)
	f("10.0.0.0/8", "10.1.2.3", true)
	f("10.1.0.0/16", "10.0.0.0/8", false)
	f("10.0.0.0/8", "11.0.0.0/8", false)
	f("10.0.0.0/8", "name", false)
	f("in staff", "admin", true)
	f("in staff", "sup-1", true)
	f("in staff", "bob", false)
	f("in staff", "in staff", true)
	f("in file", "in file", true)
	f("in file", "admin", false) // the file may change
	f("in nets", "10.1.0.0/16", true)
	f("present", "in file", true)
}

func TestExcludes(t *testing.T) {
	p := conditionPass()
	f := func(a, b string, want bool) {
		t.Helper()
		for _, pair := range [][2]string{{a, b}, {b, a}} {
			if got := p.excludes(test(pair[0]), test(pair[1])); got != want {
				t.Errorf("%s excludes %s: got %t", pair[0], pair[1], got)
			}
		}
	}
	f("a", "b", true)
	f("a", "a", false)
	f("absent", "present", true)
	f("absent", "a", true)
	f("absent", "absent", false)
	f("present", "a", false)
	f("a*", "ba", true)
	f("a*", "ab", false)
	f("a*", "b*", false) // they do, and are not looked into
	f("10.0.0.0/8", "11.0.0.0/8", true)
	f("10.0.0.0/8", "10.1.2.3", false)
	f("10.1.2.3", "10.1.2.4", true)
	f("in staff", "bob", true)
	f("in staff", "sup-1", false)
	f("in staff", "in nets", false)
	f("in nets", "11.1.2.3", true)
	f("in file", "bob", false)
}

func TestGlobMatch(t *testing.T) {
	f := func(pattern, s string, want bool) {
		t.Helper()
		if got := globMatch(pattern, s); got != want {
			t.Errorf("%q fits %q: got %t", s, pattern, got)
		}
	}
	f("*", "", true)
	f("*", "a", true)
	f("a*", "a", true)
	f("*a", "ba", true)
	f("*a", "ab", false)
	f("a*a", "a", false)
	f("a*a", "aa", true)
	f("a*b*c", "a-b-c", true)
	f("a*b*c", "a-c", false)
	f("a*b*b*c", "abc", false)
	f("a*b*b*c", "abbc", true)
	f("**", "a", true)
	f("a", "a", true)
	f("a", "aa", false)
}
