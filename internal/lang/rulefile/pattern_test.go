package rulefile

import (
	"net/http"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/lang/route"
)

func TestPattern(t *testing.T) {
	f := func(text, method, host, path string) {
		t.Helper()
		p, wrong := parsePattern(text)
		if wrong != (mistake{}) || p.Method != method || p.Host != host || p.Path != path {
			t.Errorf("%q: %q %q %q %v, want %q %q %q", text, p.Method, p.Host, p.Path, wrong, method, host, path)
		}
	}
	f("/", "", "", "/")
	f("/api/", "", "", "/api/")
	f("POST  /posts", "POST", "", "/posts")
	f("API.example.com/v1/", "", "api.example.com", "/v1/")
	f("GET localhost/{$}", "GET", "localhost", "/{$}")
	f("/orders/{id}/items/{rest...}", "", "", "/orders/{id}/items/{rest...}")
	f("PURGE /cache/", "PURGE", "", "/cache/")
	f("/with space/ü", "", "", "/with space/ü")
	f("/v1/foo:bar", "", "", "/v1/foo:bar")
	f("/100%", "", "", "/100%")
	f("GET [2001:DB8::1]/a", "GET", "[2001:db8::1]", "/a")

	bad := func(text, hint string) {
		t.Helper()
		_, wrong := parsePattern(text)
		if wrong.message == "" || !strings.Contains(wrong.hint, hint) {
			t.Errorf("%q: %q, hint %q, want a hint with %q", text, wrong.message, wrong.hint, hint)
		}
	}
	bad("*", "leave `match` out")
	bad("POST", "`POST /`")
	bad("example.com", "`example.com/`")
	bad("login", "`/login`")
	bad("POST login", "`POST /login`")
	bad("GET/api", "`GET /api`")
	bad("get/api", "`GET /api`")
	bad("Delete /x", "`DELETE /x`")
	bad("/api GET", "`GET /api`")
	bad("GET /a POST /b", "a list")
	bad("GET POST /a", "a list")
	bad("GET|POST /a", "a list")
	bad("ANY /a", "every method")
	bad("*.example.com/", "when: { host:")
	bad("{sub}.example.com/", "when: { host:")
	bad("http://example.com/a", "`example.com/a`")
	bad("GET https://example.com/a", "`GET example.com/a`")
	bad("[::1]:80/a", "`:80`")
	bad("[::1/a", "")
	bad("::1/a", "`\"[::1]/a\"`")
	bad("/a/./b", "`/a/b`")
	bad("/a/..", "`/`")
	bad("/a//", "`/a/`")
	bad("/{}", "`{id}`")
	bad("/{...}", "`{id}`")
	bad("/{a}b", "test the value")
	bad("/}{", "test the value")
	bad("/<id>", "`{id}`")
	bad("/a%2Fb", "the character itself")
	bad("/a\tb", "on one line")
	bad("GET a..b.example/", "hosts are like")
	bad(strings.Repeat("/a", 129), "128")
}

// ServeMux takes every pattern that is taken here, and so does who matches it.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"/", "GET /a/{b}", "a.b/{c...}", "/{$}", "/a b", "X-Y /{ü}", "/%zz", "//", "/{a}/{a}", "{", "GET x:1/", "GET \x00/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, wrong := parsePattern(text)
		if (wrong.message == "") != (wrong.hint == "") {
			t.Errorf("%q: message %q, hint %q: want both or none", text, wrong.message, wrong.hint)
		}
		if wrong != (mistake{}) {
			return
		}
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%q is taken, and who has to match it says: %v", text, r)
			}
		}()
		route.New().Add(p.Route(), 0)
		// A method, since ServeMux takes spaces in a path only after one.
		http.NewServeMux().Handle(or(p.Method, "GET")+" "+p.Host+p.Path, http.NotFoundHandler())
	})
}
