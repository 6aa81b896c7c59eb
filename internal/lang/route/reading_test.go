package route

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func readAll(t *Tree, path, raw string) []string {
	var all []string
	for _, way := range t.Readings(path, raw, nil) {
		all = append(all, way.Path())
	}
	return all
}

// Every way in which a server may read a path is there, and none twice.
func TestReadings(t *testing.T) {
	f := func(path, raw string, want ...string) {
		t.Helper()
		if got := readAll(New(), path, raw); !slices.Equal(got, want) {
			t.Errorf("%q sent as %q: %q, want %q", path, raw, got, want)
		}
	}
	f("/", "", "/")
	f("*", "", "*")
	f("/a/b/", "", "/a/b")
	f("/a b", "/a%20b", "/a b")
	f("/a;x/b", "", "/a;x/b", "/a/b")
	f("/;x/a", "", "/;x/a", "/a")
	f("/a/..;/b", "", "/a/..;/b", "/b")
	f("/a/..;x=1/b;y", "", "/a/..;x=1/b;y", "/b")
	f("/a;x", "/a%3bx", "/a;x", "/a")
	f("/a;x/../b", "", "/b")
	f("/a/;x/..;/b", "", "/a/;x/..;/b", "/b")
	f("/a/b;x/..;/..;/c", "", "/a/b;x/..;/..;/c", "/c")
	f("/;", "", "/;", "/")
	f(`/a\b`, "", `/a\b`, "/a/b")
	f(`/a\..\b`, "", `/a\..\b`, "/b")
	// Cut first or turned first: one drops what is behind the backslash, one does not.
	f(`/a;x\b`, "", `/a;x\b`, "/a;x/b", "/a", "/a/b")
	// Cut first or decoded first: the slash belongs to the parameter, or ends it.
	f("/a;x/b", "/a;x%2fb", "/a;x/b", "/a/b", "/a", "/a;x/b")
	f("/a/b", "/a%2fb", "/a/b", "/a/b")
	// Decoded twice.
	f("/%61", "/%2561", "/%61", "/a")
	f("/x%2f..%2fa", "/x%252f..%252fa", "/x%2f..%2fa", "/a")
	f("/a%3bx", "/a%253bx", "/a%3bx", "/a;x", "/a")
	f("/100%", "/100%25", "/100%")
}

// However odd a path is, there are few readings of it, and each request pays for all.
// The first reading is the path as path.Clean has it, whatever stands in it; a path that is nothing but plain has no other.
func TestFirstReadingIsClean(t *testing.T) {
	paths := []string{""}
	for from := 0; len(paths[from]) < 6; from++ {
		for _, c := range "/.a;%" {
			paths = append(paths, paths[from]+string(c))
		}
	}
	for _, p := range paths {
		all := readAll(New(), p, "")
		if want := path.Clean("/" + p); all[0] != want {
			t.Errorf("%q is read as %q first, want %q", p, all[0], want)
		}
		if !strings.ContainsAny(p, ";%") && len(all) > 1 {
			t.Errorf("%q has the readings %q, want one", p, all)
		}
	}
}

func TestReadingsAreFew(t *testing.T) {
	path, raw := strings.Repeat(`/a;b\c/.;d/..\;`, 500), strings.Repeat(`/a%2f;b%5cc/%2e;d%3b/..\;`, 300)
	if n := len(New().Readings(path, raw, nil)); n > 25 {
		t.Errorf("%d readings", n)
	}
}

func TestIgnoreCase(t *testing.T) {
	tr := New()
	tr.IgnoreCase = true
	for i, text := range []string{"/Users/{Name}", "/ÄRGER/", "/a%2Fb", "GET /x"} {
		p, err := Split(text)
		if err != nil {
			t.Fatal(err)
		}
		tr.Add(p, i)
	}
	f := func(path, raw string, want ...int) {
		t.Helper()
		var got []int
		for _, h := range matchAll(tr, "GET", "", path, raw) {
			got = append(got, h.ID)
			if v, ok := h.Value("Name"); ok && v != Fold(v) {
				t.Errorf("%q: {Name} is %q: its case would make a fresh counter", path, v)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
	}
	f("/users/ann", "", 0)
	f("/USERS/Ann", "", 0)
	f("/u\u017fers/ann", "", 0) // a long s is an S to some
	f("/\u00e4rger/x", "", 1)
	f("/A/B", "/A%2FB", 2)
	f("/X", "", 3)
	f("/y", "")
	f("/USERS/\xff", "", 0)
	f("/USERS/\xff/\xfe", "/USERS/\xff%2F\xfe", 0)
}
