package route

import (
	"net/http"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	f := func(text, method, host, path string) {
		t.Helper()
		got, err := Split(text)
		if want := (Pattern{method, host, path}); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	f("/", "", "", "/")
	f("/healthz", "", "", "/healthz")
	f("GET /posts/", "GET", "", "/posts/")
	f("GET \t /posts", "GET", "", "/posts")
	f("VERSION-CONTROL /a", "VERSION-CONTROL", "", "/a")
	f("example.com/", "", "example.com", "/")
	f("POST Example.COM./a/{id}", "POST", "example.com", "/a/{id}")
	f("get./a", "", "get", "/a")
	f("PUT localhost/a/{rest...}", "PUT", "localhost", "/a/{rest...}")
	f("[2001:DB8:0::1]/a/{$}", "", "[2001:db8::1]", "/a/{$}")
	f("/reports/{id}/render", "", "", "/reports/{id}/render")
	f("/{_}/{größe2}", "", "", "/{_}/{größe2}")
	f("/.well-known/...", "", "", "/.well-known/...")
	f("/café/a%2Fb/100%25/%2A/v1:run", "", "", "/café/a%2Fb/100%25/%2A/v1:run")
	f(strings.Repeat("/a", maxSegments), "", "", strings.Repeat("/a", maxSegments))
}

func TestSplitRefuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if p, err := Split(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v, want an error with %q", text, p, err, want)
		}
	}
	f("", "the pattern is empty")
	f(" /a", "a space before or after")
	f("/a ", "a space before or after")
	f("/a b", "a space in the path; write it as `%20`")
	f("GET /a b", "a space in the path")
	f("/a\u00a0b", "a space in the path")
	f("/a\nb", "a control character")
	f("GET POST /a", "`POST` stands between the method and the path")

	f("get /a", "not in capitals; write `GET`")
	f("Get /a", "not in capitals; write `GET`")
	f("get a", "not in capitals; write `GET`")
	f("GET,POST /a", "more than one method")
	f("GET|POST /a", "more than one method")
	f("* /a", "`*` is not a method")
	f("GET: /a", "`GET:` is not a method")
	f("GET/api", "no space after the method; write `GET /api`")
	f("get/api", "no space after the method; write `GET /api`")

	f("api", "no leading slash; write `/api`")
	f("GET api", "no leading slash; write `GET /api`")
	f("{id}", "no leading slash; write `/{id}`")
	f("GET", "no path after the method; `GET /` matches every path")
	f("GET *", "`GET /` matches every path")
	f("*", "`/` matches every path")
	f("GET example.com", "no path after the host; write `GET example.com/`")
	f("https://example.com/a", "leave out `https://`")
	f("GET http://example.com/", "leave out `http://`")

	f("example.com:8080/", "write `example.com` without `:8080`")
	f("example.com:/", "write `example.com` without `:`")
	f("::1/", "written in brackets")
	f("[::1]:80/", "leave out `:80`")
	f("[::1/", "not an IPv6 address in brackets")
	f("[1.2.3.4]/", "not an IPv6 address in brackets")
	f("[fe80::1%eth0]/", "not an IPv6 address in brackets")
	f("*.example.com/", "a host has no wildcards")
	f("{sub}.example.com/", "a host has no wildcards")
	f("{id}/a", "write a slash before it")
	f("me@example.com/", "'@' is not allowed in a host")
	f("exämple.com/", "write it in ASCII")
	f("./a", "`.` is not a host")
	f("../a", "`..` is not a host")
	f(".example.com/a", "`.example.com` is not a host")
	f("a..b/", "`a..b` is not a host")
	f(strings.Repeat("a", maxHost+1)+"/", "is not a host")

	f("//", "`//` never matches")
	f("/a//b", "`//` never matches")
	f("/a//", "`//` never matches")
	f("/./a", "the segment `.` never matches")
	f("/a/../b", "the segment `..` never matches")
	f("/a/..", "the segment `..` never matches")
	f("/a/%2E%2e/b", "the segment `%2E%2e` never matches")
	f("/a?b=c", "the query is not part of a pattern")
	f("/a#b", "a fragment is never sent")
	f("/a%", "the `%` in `a%` begins no escape")
	f("/a%zz/b", "the `%` in `a%zz` begins no escape")
	f("/a/*", "`*` is not a wildcard; write `{name}`")
	f("/a/**/b", "`*` is not a wildcard")
	f("/a/:id", "`:id` is not a wildcard; write `{id}`")
	f(strings.Repeat("/a", maxSegments+1), "129 segments; 128 are the most")

	f("/{}", "`{}` has no name")
	f("/{...}", "`{...}` has no name")
	f("/{id", "`{id` is malformed")
	f("/id}", "`id}` is malformed")
	f("/a{id}", "`a{id}` is malformed")
	f("/{id}a", "`{id}a` is malformed")
	f("/{{id}}", "`{{id}}` is malformed")
	f("/{a}{b}", "`{a}{b}` is malformed")
	f("/{a/b}", "`{a` is malformed")
	f("/{a-b}", "`a-b` is not the name of a wildcard")
	f("/{1a}", "`1a` is not the name of a wildcard")
	f("/{id:[0-9]+}", "`id:[0-9]+` is not the name of a wildcard")
	f("/{id}/{id}", "two wildcards are named `id`")
	f("/{id}/{id...}", "two wildcards are named `id`")
	f("/{id...}/a", "`{id...}` takes the rest of the path and must be last")
	f("/{id...}/", "`{id...}` takes the rest of the path and must be last")
	f("/{$}/a", "`{$}` ends the path and must be last")
	f("/{$}/", "`{$}` ends the path and must be last")
}

func TestAddPanicsOnWhatSplitRefuses(t *testing.T) {
	f := func(p Pattern) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%+v was added", p)
			}
		}()
		New().Add(p, 1)
	}
	f(Pattern{})
	f(Pattern{Path: "a"})
	f(Pattern{Path: "/{"})
	f(Pattern{Path: "/", Host: "::1"})
	f(Pattern{Path: "/", Method: "get"})
}

// What Split lets through is a pattern of ServeMux, too, and splits no further.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{
		"/", "GET /a/{id}/", "POST Example.com./a%2Fb/{rest...}", "[::1]/{$}", "GET/api", "https://a/b",
		"/a/../b", "/a//b", "/{a}{b}", "/{id...}/x", "a:80/", "/a?b#c", "/%zz", "get \t /x", "/:id/*", "é/é",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Split(text)
		if err != nil {
			if s := err.Error(); s == "" || strings.HasSuffix(s, ".") {
				t.Errorf("%q: the error %q is not a phrase", text, s)
			}
			return
		}
		again := p.Host + p.Path
		if p.Method != "" {
			again = p.Method + " " + again
		}
		if q, err := Split(again); q != p || err != nil {
			t.Errorf("%q split to %+v and again to %+v, %v", text, p, q, err)
		}
		New().Add(p, 1)
		http.NewServeMux().Handle(text, http.NotFoundHandler()) // panics if it does not like it
	})
}
