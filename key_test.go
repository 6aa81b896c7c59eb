package tidegate_test

import (
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

func TestKey(t *testing.T) {
	f := func(want string, parts ...string) {
		t.Helper()
		if got := tidegate.Key(parts...); got != want {
			t.Errorf("Key(%q) = %q, want %q", parts, got, want)
		}
	}
	f("")
	f("=", "")
	f("=alice", "alice")
	f("1:a2:bc", "a", "bc")
	f("2:ab1:c", "ab", "c")
	f("0:0:", "", "")
	f("="+strings.Repeat("x", 63), strings.Repeat("x", 63))
	f("59:"+strings.Repeat("x", 59)+"0:", strings.Repeat("x", 59), "")
	long := tidegate.Key(strings.Repeat("x", 64))
	if len(long) != 65 || long[0] != '#' {
		t.Errorf("a key of 64 bytes became %q", long)
	}
}

// FuzzKey: different parts never make the same key, however they are cut, and no
// key is longer than the hash of a long one.
func FuzzKey(f *testing.F) {
	f.Add("a\x00bc", "ab\x00c", "\x00")
	f.Add("a=b_X", "a_b=X", "_")
	f.Add("1:a", "a", "|")
	f.Add("=a", "a", "|")
	f.Add("1:a2:bc", "a|bc", "|")
	f.Add("", "|", "|")
	f.Add("#"+strings.Repeat("0", 64), strings.Repeat("0", 64), "|")
	f.Fuzz(func(t *testing.T, a, b, cut string) {
		// Parts of one string, of the other, and of both joined either way.
		all := [][]string{nil, {a}, {b}, {a, b}, {b, a}, {a + b}, {a, "", b}, strings.Split(a, cut), strings.Split(b, cut)}
		for i, one := range all {
			k := tidegate.Key(one...)
			if len(k) > 65 || len(k) == 65 && k[0] != '#' {
				t.Errorf("Key(%q) has %d bytes: %q", one, len(k), k)
			}
			for _, two := range all[:i] {
				if (k == tidegate.Key(two...)) != slices.Equal(one, two) {
					t.Errorf("Key(%q) = %q, Key(%q) = %q", one, k, two, tidegate.Key(two...))
				}
			}
		}
	})
}
