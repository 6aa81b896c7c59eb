package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// tree holds patterns by their place in the list.
func tree(t testing.TB, patterns ...string) *Tree {
	t.Helper()
	tr := New()
	for i, text := range patterns {
		p, err := Split(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		tr.Add(p, i)
	}
	return tr
}

// matchAll returns the hits of all readings.
func matchAll(tr *Tree, method, host, path, rawPath string) []Hit {
	var hits []Hit
	for _, way := range tr.Readings(path, rawPath, nil) {
		hits = tr.Match(method, host, way, hits)
	}
	return hits
}

// match returns which of patterns a request matches, joined with spaces, in order.
func match(t testing.TB, patterns []string, method, host, path, rawPath string) string {
	t.Helper()
	var ids []int
	for _, h := range matchAll(tree(t, patterns...), method, host, path, rawPath) {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var hit []string
	for _, id := range ids {
		hit = append(hit, patterns[id])
	}
	return strings.Join(hit, " ")
}

func TestMatchPath(t *testing.T) {
	patterns := []string{
		"/", "/{$}", "/{any}", "/{all...}",
		"/posts", "/posts/", "/posts/{$}", "/posts/{id}", "/posts/{id}/", "/posts/{rest...}", "/posts/new", "/posts/{id}/edit", "/{any}/new",
	}
	f := func(path, want string) {
		t.Helper()
		if got := match(t, patterns, "GET", "", path, ""); got != want {
			t.Errorf("%q:\n got %s\nwant %s", path, got, want)
		}
	}
	const (
		root  = "/ /{$} /{all...}"
		posts = "/ /{any} /{all...} /posts /posts/ /posts/{$} /posts/{rest...}"
		one   = "/ /{all...} /posts/ /posts/{id} /posts/{id}/ /posts/{rest...}"
	)
	f("/", root)
	f("", root)
	f("//", root)
	f("/..", root)
	f("/posts", posts)
	f("/posts/", posts)
	f("posts", posts)
	f("//posts//", posts)
	f("/./posts/.", posts)
	f("/a/../posts", posts)
	f("/../../posts", posts)
	f("/posts/1", one)
	f("/posts/1/", one)
	f("/posts/1/2/..", one)
	f("/posts/...", one)
	f("/posts/new", one+" /posts/new /{any}/new")
	f("/posts/1/edit", "/ /{all...} /posts/ /posts/{id}/ /posts/{rest...} /posts/{id}/edit")
	f("/posts/new/edit", "/ /{all...} /posts/ /posts/{id}/ /posts/{rest...} /posts/{id}/edit")
	f("/posts/1/edit/2", "/ /{all...} /posts/ /posts/{id}/ /posts/{rest...}")
	f("/users/new", "/ /{all...} /{any}/new")
	f("/Posts", "/ /{any} /{all...}")
	f("/postsx", "/ /{any} /{all...}")
	f("*", "/ /{all...}")
	f("/*", "/ /{any} /{all...}")
}

func TestMatchMethod(t *testing.T) {
	patterns := []string{"/a", "GET /a", "HEAD /a", "POST /a", "GET /", "OPTIONS /"}
	f := func(method, path, want string) {
		t.Helper()
		if got := match(t, patterns, method, "", path, ""); got != want {
			t.Errorf("%s %s: got %s, want %s", method, path, got, want)
		}
	}
	f("GET", "/a", "/a GET /a GET /")
	f("HEAD", "/a", "/a GET /a HEAD /a GET /")
	f("POST", "/a", "/a POST /a")
	f("get", "/a", "/a")
	f("", "/a", "/a")
	f("PURGE", "/a", "/a")
	f("OPTIONS", "*", "OPTIONS /")
	f("HEAD", "*", "GET /")
}

func TestMatchHost(t *testing.T) {
	patterns := []string{"/a", "example.com/a", "example.com/", "GET [2001:db8::1]/a", "192.0.2.1/a", "localhost/a"}
	f := func(host, want string) {
		t.Helper()
		if got := match(t, patterns, "GET", host, "/a", ""); got != want {
			t.Errorf("%q: got %s, want %s", host, got, want)
		}
	}
	const name, v6 = "/a example.com/a example.com/", "/a GET [2001:db8::1]/a"
	f("example.com", name)
	f("Example.COM", name)
	f("example.com:8080", name)
	f("example.com:", name)
	f("example.com.", name)
	f("EXAMPLE.com.:80", name)
	f("[example.com]:80", name)
	f("www.example.com", "/a")
	f("example.com.evil.org", "/a")
	f("[2001:db8::1]", v6)
	f("[2001:db8::1]:443", v6)
	f("[2001:DB8:0:0::1]:443", v6)
	f("[2001:db8::1%25eth0]:443", v6)
	f("2001:db8::1", v6)
	f("[2001:db8::2]", "/a")
	f("[2001:db8::1", v6)
	f("2001:db8:::1", "/a")
	f("192.0.2.1:80", "/a 192.0.2.1/a")
	f("localhost:3000", "/a localhost/a")
	f("", "/a")
	f(":80", "/a")
	f(".", "/a")
	f(strings.Repeat("a", 70_000), "/a")
}

// No way to write a path escapes a pattern that some server would take it for.
func TestMatchSpelling(t *testing.T) {
	patterns := []string{"/files/", "/files/{name}", "/files/a/{x}", "/files/a%2Fb", "/admin/", "/{x}/{y}/admin"}
	f := func(path, raw, want string) {
		t.Helper()
		if got := match(t, patterns, "GET", "", path, raw); got != want {
			t.Errorf("%q sent as %q:\n got %s\nwant %s", path, raw, got, want)
		}
	}
	f("/files/a/b", "", "/files/ /files/a/{x}")
	f("/files/a/b", "/files/a%2Fb", "/files/ /files/{name} /files/a/{x} /files/a%2Fb")
	f("/files/a/b", "/files/a%2fb/", "/files/ /files/{name} /files/a/{x} /files/a%2Fb")
	f("/files/a/b", "//files//a%2fb", "/files/ /files/{name} /files/a/{x} /files/a%2Fb")
	f("/files/a%2Fb", "/files/a%252Fb", "/files/ /files/{name} /files/a/{x}") // decoded twice
	f("/files/a b", "/files/a%20b", "/files/ /files/{name}")
	f("/files/a.b", "/files/a%2eb", "/files/ /files/{name}")
	f("/files/a/", "/files/a%2F", "/files/ /files/{name}")
	f("/files/a/b//", "/files/a%2Fb/%2F", "/files/ /files/{name} /files/a/{x} /files/a%2Fb")
	f("/files/../admin", "/files/%2e%2E/admin", "/files/ /admin/ /{x}/{y}/admin")
	f("/files/../admin", "/files%2F..%2Fadmin", "/admin/")
	f("/x/y/../admin", "/x/y%2F..%2Fadmin", "")
	// Here the dots are dots, and the slash of the name is no slash.
	f("/files/x/../c/b", "/files/x/%2e%2e/c%2Fb", "/files/ /files/{name}")
	// Escapes that cannot be: the path alone counts.
	f("/files/a/b", "/files/a%2Fb%zz", "/files/ /files/a/{x}")
	f("/files/a/b", "/files/a%2Fb%2", "/files/ /files/a/{x}")
	f("/files/a/b", "/files/a%2Fb%", "/files/ /files/a/{x}")
}

func TestEachPatternOnce(t *testing.T) {
	tr := tree(t, "/a/", "GET /a/", "/a/", "/a/{x}")
	p, err := Split("GET /a/")
	if err != nil {
		t.Fatal(err)
	}
	tr.Add(p, 7)
	tr.Add(p, 7)
	hits := matchAll(tr, "GET", "", "/a/b", "")
	for _, way := range tr.Readings("/a/b/c", "/a/b%2Fc", nil) {
		hits = tr.Match("GET", "", way, hits) // what was there stays, and hides nothing
	}
	var ids []int
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	if got := fmt.Sprint(ids); got != "[0 2 1 7 7 3 0 2 1 7 7 0 2 1 7 7 3]" {
		t.Errorf("got %s", got)
	}
}

func TestValue(t *testing.T) {
	f := func(pattern, path, raw, name, want string) {
		t.Helper()
		hits := matchAll(tree(t, pattern), "GET", "", path, raw)
		if len(hits) == 0 {
			t.Fatalf("%s: %q: no hits", pattern, path)
		}
		for _, h := range hits { // in each reading
			if got, ok := h.Value(name); got != want || !ok {
				t.Errorf("%s: %q: {%s} is %q, %v, want %q", pattern, path, name, got, ok, want)
			}
		}
		for _, other := range []string{"", "$", "no", "/"} {
			if got, ok := hits[0].Value(other); got != "" || ok {
				t.Errorf("%s: {%s} is %q, %v", pattern, other, got, ok)
			}
		}
	}
	f("/users/{id}", "/users/42", "", "id", "42")
	f("/users/{id}", "/users/42/", "", "id", "42")
	f("/{a}/x/{b}/", "/1/x/2/3/4", "", "a", "1")
	f("/{a}/x/{b}/", "/1/x/2/3/4", "", "b", "2")
	f("/{a}/{$}", "/1", "", "a", "1")
	f("/{a}/{rest...}", "/1/2//./3/", "", "rest", "2/3")
	f("/{a}/{rest...}", "/1", "", "rest", "")
	f("/{rest...}", "/", "", "rest", "")
	f("/{rest...}", "*", "", "rest", "")
	f("/{a}", "/über uns", "/%C3%BCber%20uns", "a", "über uns")
	f("/f/{a}", "/f/x/y", "/f/x%2Fy", "a", "x/y")
	f("/f/{a}/{b}/z", "/f//x//y/z", "/f/%2Fx%2F/y/z", "b", "y")
	f("/f/{a}/{b}/q/{rest...}", "/f/x/../q/%/w", "/f/x/%2e%2e/q/%25%2Fw", "rest", "%/w")
}

// A path of any length recurses no deeper than the patterns are.
func TestMatchLongPaths(t *testing.T) {
	deep := strings.Repeat("/a", maxSegments)
	mixed := strings.Repeat("/a", maxSegments-2) + "/{x}/{y}"
	patterns := []string{deep, deep[2:] + "/", mixed, "/{x}/", "/a/{rest...}", "/{x}/a/{$}"}
	f := func(path, want string) {
		t.Helper()
		if got := match(t, patterns, "GET", "", path, ""); got != want {
			t.Errorf("path of %d bytes: got %s, want %s", len(path), got, want)
		}
	}
	f(deep, strings.Join([]string{deep, deep[2:] + "/", mixed, "/{x}/", "/a/{rest...}"}, " "))
	f(strings.Repeat("/a", 1<<15), strings.Join([]string{deep[2:] + "/", "/{x}/", "/a/{rest...}"}, " "))
	f("/"+strings.Repeat("a", 1<<16), "/{x}/")
	f(strings.Repeat("/a/..", 1<<14)+"/a/a", "/{x}/ /a/{rest...} /{x}/a/{$}")
}
