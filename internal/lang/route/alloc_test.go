package route

import (
	"strings"
	"testing"
)

func TestMatchAllocatesNothing(t *testing.T) {
	tr := tree(t, "/", "/api/", "GET /api/{user}/posts/{id}", "/api/{user}/{rest...}", "HEAD /api/1/", "api.example.com/api/", "[2001:db8::1]/")
	hits, variants := make([]Hit, 0, 16), make([]Reading, 0, 4)
	f := func(method, host, path, raw string, want int) {
		t.Helper()
		n := testing.AllocsPerRun(100, func() {
			variants = tr.Readings(path, raw, variants[:0])
			hits = hits[:0]
			for _, way := range variants {
				hits = tr.Match(method, host, way, hits)
			}
			for i := range hits {
				hits[i].Value("id")
				hits[i].Value("rest")
			}
		})
		if n != 0 || len(hits) != want {
			t.Errorf("%s %s %.30s: %v allocations, want 0; %d hits, want %d", method, host, path, n, len(hits), want)
		}
	}
	f("GET", "", "/", "", 1)
	f("GET", "", "", "", 1)
	f("GET", "", "*", "", 1)
	f("GET", "", "/api/1/posts/2", "", 4)
	f("GET", "", "/api/1/posts/2/", "", 4)
	f("HEAD", "", "/api/1/posts/2", "", 5)
	f("GET", "", "/.well-known/a", "", 1)
	f("GET", "", "/api/a b/posts/2", "/api/a%20b/posts/2", 4)
	f("GET", "api.example.com", "/api", "", 3)
	f("GET", "API.Example.Com.:8080", "/api", "", 3)
	f("GET", strings.Repeat("x", 1000), "/api", "", 2)
	f("GET", "[2001:DB8:0:0:0:0:0:1]:8080", "/api", "", 3)
	f("GET", "", strings.Repeat("/api", 1<<14), "", 3)
}
