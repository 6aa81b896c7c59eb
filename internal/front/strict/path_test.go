package strict

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestPaths(t *testing.T) {
	f := func(p Paths, target, want string) {
		t.Helper()
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{URL: u}
		got := "400"
		if p.Inspect(r) == nil {
			got = r.URL.EscapedPath()
		}
		if got != want {
			t.Errorf("%+v %s: %s, want %s", p, target, got, want)
		}
	}
	strict, clean, all := Paths{}, Paths{CleanDots: true}, Paths{EncodedSlash: true, CleanDots: true}
	merge := Paths{MergeSlashes: true}
	for _, fine := range []string{"/", "/a/b", "/a/b/", "/a;b/", "/;a/b", "/.a", "/a.", "/...", "/%61", "/%25", "/100%25", "/a;b=..", "/%C3%A4", "/%ff", "/a%2520b"} {
		f(strict, fine, fine)
		f(clean, fine, fine)
	}
	for _, bad := range []string{
		"/.", "/..", "/./a", "/a/.", "/a/../b", "/%2e", "/%2E%2e/", "/.%2e", "/a/%252e%252e", "/%25252e%25252e/", "/..;/a", "/.;x", "/%2e%2e;a",
		"/%00", "/a%0d%0ab", "/%7f", "/a%252f..%252fb", "/a%255c..%255cb",
	} {
		f(strict, bad, "400")
	}
	for _, slash := range []string{"/a%2fb", "/a%2Fb", "/%5c", "/a%5Cb", `/a\b`, "/%2f"} {
		f(strict, slash, "400")
		f(clean, slash, "400")
	}
	f(all, "/a%2fb", "/a%2fb")
	f(all, "/a%5cb", "/a%5cb")
	f(all, "/a%2f..%2fb", "400") // to whoever decodes it, dots
	f(all, "/a%5c..", "400")
	f(all, "/x%2fy/../b", "/b")
	f(clean, "/a/../b", "/b")
	f(clean, "/a/./b/", "/a/b/")
	f(clean, "/a/%2e%2E/b%20c/.", "/b%20c/")
	f(clean, "/../../a", "/a")
	f(clean, "/a/b/..", "/a/")
	f(clean, "/..", "/")
	for _, empty := range []string{"//", "//a", "/a//b", "/a//", "///", "//a/b", "/a/.//b", "/a//../b", "http://h//a", "//a;b/"} {
		f(strict, empty, "400")
		f(clean, empty, "400")
		f(all, empty, "400")
	}
	f(merge, "//a", "/a")
	f(merge, "///a//b%20c//", "/a/b%20c/")
	f(merge, "//", "/")
	f(merge, "//;a//b", "/;a/b")
	f(merge, "/a//../b", "400")
	f(Paths{MergeSlashes: true, CleanDots: true}, "/a//../b", "/b")
	f(Paths{MergeSlashes: true, CleanDots: true}, "/a/.//../b//", "/b/")
	f(Paths{MergeSlashes: true, EncodedSlash: true}, "//a%2F%2Fb//c", "/a%2F%2Fb/c") // an address in a segment
	for _, host := range []string{"/%2fa", "/%2F", "/%5ca/b", `/\a`} {
		f(all, host, "400")
		f(Paths{MergeSlashes: true, EncodedSlash: true}, host, "400")
	}
	f(clean, "/a/..;/b", "400")
	f(clean, "/a/%252e%252e/b", "400")
	f(clean, "/%61/../%62", "/%62")
}

// No path that passes has dots in any reading, and cleaning is done when it is
// done.
func FuzzPaths(f *testing.F) {
	for _, s := range []string{"/a/../b", "/a/%2e%2e/b", "/%252e", "/a%2Fb", `/\..\`, "/;/..;", "/a/b/c/./../../g", "//a///b", "/%2f/a", "/.//", "/a//../b"} {
		f.Add(s, true, true, true)
	}
	f.Fuzz(func(t *testing.T, target string, slash, clean, merge bool) {
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(u.Path, "/") {
			return
		}
		p := Paths{slash, clean, merge}
		r := &http.Request{URL: u}
		if p.Inspect(r) != nil {
			return
		}
		once := r.URL.EscapedPath()
		if strings.Contains(once, "//") {
			t.Fatalf("%q passes as %q, with an empty segment", target, once)
		}
		if !clean && !merge && once != u.EscapedPath() {
			t.Fatalf("%q became %q", target, once)
		}
		for path, i := r.URL.Path, 0; i < 3; i++ {
			for segment := range strings.SplitSeq(strings.ReplaceAll(path, `\`, "/"), "/") {
				if segment == "." || segment == ".." {
					t.Fatalf("%q passes as %q, which is %q", target, once, path)
				}
			}
			if path, err = url.PathUnescape(path); err != nil {
				break
			}
		}
		if p.Inspect(r) != nil || r.URL.EscapedPath() != once {
			t.Fatalf("%q became %q, then %q", target, once, r.URL.EscapedPath())
		}
	})
}
