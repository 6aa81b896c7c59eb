package lint

import (
	"net/http"
	"net/http/httptest"
	"testing"

	paths "tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func shaped(t *testing.T, text string) shape {
	t.Helper()
	p, err := paths.Split(text)
	if err != nil {
		t.Fatal(err)
	}
	return shapeOf(rulefile.Pattern{Method: p.Method, Host: p.Host, Path: p.Path})
}

func TestContains(t *testing.T) {
	f := func(outer, inner string, want bool) {
		t.Helper()
		if got := shaped(t, outer).contains(shaped(t, inner)); got != want {
			t.Errorf("%s contains %s: got %t", outer, inner, got)
		}
	}
	f("/", "/", true)
	f("/", "POST example.com/a/{b}/c/", true)
	f("/api/", "/api", true)
	f("/api/", "/api/", true)
	f("/api/", "/api/{id}", true)
	f("/api/", "/api/v1/{rest...}", true)
	f("/api/", "/apis", false)
	f("/api", "/api/", false)
	f("/api", "/api/{$}", true)
	f("/api/{$}", "/api", true)
	f("/api/{rest...}", "/api/", true)
	f("/{a}/b", "/a/b", true)
	f("/a/b", "/{a}/b", false)
	f("/{a}", "/a/b", false)
	f("/{a}/", "/a/b", true)
	f("/{a}/", "/", false)
	f("/a/", "/", false)
	f("GET /a", "HEAD /a", true)
	f("HEAD /a", "GET /a", false)
	f("GET /a", "/a", false)
	f("/a", "GET /a", true)
	f("/%61", "/a", true)
	f("example.com/a", "/a", false)
	f("/a", "example.com/a", true)
	f("example.com/a", "example.org/a", false)
}

func TestOverlaps(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		s, u := shaped(t, a), shaped(t, b)
		if got := s.overlaps(u); got != want {
			t.Errorf("%s overlaps %s: got %t", a, b, got)
		}
		if u.overlaps(s) != s.overlaps(u) {
			t.Errorf("%s and %s: it depends on which is asked", a, b)
		}
	}
	f("/", "/a", true)
	f("/a", "/b", false)
	f("/a", "/a/", true)
	f("/a", "/a/b", false)
	f("/a/", "/a/b", true)
	f("/a/", "/b/", false)
	f("/a/{x}", "/{y}/b", true)
	f("/a/{x}", "/b/{y}", false)
	f("/a/{x}/", "/a", false)
	f("GET /a", "POST /a", false)
	f("GET /a", "HEAD /a", true)
	f("GET /a", "/a", true)
	f("example.com/", "example.org/", false)
	f("example.com/", "/", true)
}

// What contains and overlaps say agrees with how requests are matched.
func TestShapesAgreeWithRequests(t *testing.T) {
	patterns := []string{
		"/", "/{$}", "/a", "/a/", "/a/{$}", "/a/b", "/a/b/", "/{x}", "/{x}/", "/{x}/b", "/a/{x}", "/a/{x}/c", "/a/{rest...}",
		"GET /a", "HEAD /a", "POST /a/", "example.com/", "example.com/a", "GET example.org/a/{x}",
	}
	var requests []*http.Request
	for _, method := range []string{"GET", "HEAD", "POST"} {
		for _, host := range []string{"example.com", "example.org", "example.net"} {
			for _, path := range []string{"/", "/a", "/b", "/a/b", "/a/c", "/b/b", "/a/b/c", "/a/c/c", "/c/c/c/c"} {
				r := httptest.NewRequest(method, path, nil)
				r.Host = host
				requests = append(requests, r)
			}
		}
	}
	matched := make([]map[int]bool, len(patterns)) // by pattern, the requests
	for i, text := range patterns {
		matched[i] = make(map[int]bool)
		s := shaped(t, text)
		for n, r := range requests {
			q := shapeOf(rulefile.Pattern{Method: r.Method, Host: r.Host, Path: r.URL.Path + "/{$}"})
			if r.URL.Path == "/" {
				q = shapeOf(rulefile.Pattern{Method: r.Method, Host: r.Host, Path: "/{$}"})
			}
			if s.contains(q) {
				matched[i][n] = true
			}
			mux := http.NewServeMux()
			mux.Handle(text, http.NotFoundHandler())
			if _, pattern := mux.Handler(r); pattern == text && !matched[i][n] {
				t.Errorf("%s %s%s matches %s in ServeMux, and not here", r.Method, r.Host, r.URL.Path, text)
			}
		}
	}
	for i := range patterns {
		for j := range patterns {
			common, outside := 0, 0
			for n := range requests {
				switch {
				case matched[i][n] && matched[j][n]:
					common++
				case matched[j][n]:
					outside++
				}
			}
			a, b := shaped(t, patterns[i]), shaped(t, patterns[j])
			if a.contains(b) != (outside == 0) {
				t.Errorf("%s contains %s: got %t, and %d requests are outside", patterns[i], patterns[j], a.contains(b), outside)
			}
			if a.overlaps(b) != (common > 0) {
				t.Errorf("%s overlaps %s: got %t, and %d requests are common", patterns[i], patterns[j], a.overlaps(b), common)
			}
		}
	}
}
