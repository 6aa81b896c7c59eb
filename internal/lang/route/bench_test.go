package route

import (
	"fmt"
	"strings"
	"testing"
)

// The time of a match does not grow with the patterns that do not match.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10, 1000} {
		patterns := []string{"/", "/api/", "GET /api/v1/users/{id}"}
		for i := range n - len(patterns) {
			patterns = append(patterns, fmt.Sprintf("%s /api/v1/resource%d/{id}", []string{"GET", "POST"}[i%2], i))
		}
		tr := tree(b, patterns...)
		b.Run(fmt.Sprint(n, "-patterns"), func(b *testing.B) {
			run(b, tr, "", "/api/v1/users/42", "", 3)
		})
	}
}

func BenchmarkMatchOdd(b *testing.B) {
	tr := tree(b, "/", "/api/", "api.example.com/api/", "GET /api/v1/users/{id}")
	f := func(name, host, path, raw string, want int) {
		b.Run(name, func(b *testing.B) { run(b, tr, host, path, raw, want) })
	}
	f("host", "API.example.com:443", "/api/v1/users/42", "", 4)
	f("unclean", "", "/api//v1/./users/42", "", 3)
	f("escaped", "", "/api/v1/users/a/b", "/api/v1/users/a%2Fb", 5) // in two readings
	f("parameter", "", "/api/v1/users/a;b", "", 6)
	f("64KiB", "", strings.Repeat("/api", 1<<14), "", 2)
}

func run(b *testing.B, tr *Tree, host, path, raw string, want int) {
	hits, variants := make([]Hit, 0, 16), make([]Reading, 0, 4)
	b.ReportAllocs()
	for b.Loop() {
		variants = tr.Readings(path, raw, variants[:0])
		hits = hits[:0]
		for _, way := range variants {
			hits = tr.Match("GET", host, way, hits)
		}
	}
	if len(hits) != want {
		b.Fatalf("%d hits, want %d", len(hits), want)
	}
}

// BenchmarkTable compares the two halves of a table, for the choice of fewest.
func BenchmarkTable(b *testing.B) {
	words := strings.Fields("api users v1 posts orders login search feed reports chat events accounts rewards beta premium healthz")
	for _, n := range []int{1, 2, 4, 6, 8, 12, 16} {
		var few, many table[*node]
		many.many = make(map[string]*node)
		for _, w := range words[:n] {
			few.few = append(few.few, pair[*node]{w, new(node)})
			many.put(w, new(node))
		}
		asked := strings.Fields(strings.Join(words[:n], " ") + " other")
		for name, t := range map[string]*table[*node]{"few": &few, "many": &many} {
			b.Run(fmt.Sprint(name, "-", n), func(b *testing.B) {
				i := 0
				for b.Loop() {
					if i++; i == len(asked) {
						i = 0
					}
					t.get(asked[i])
				}
			})
		}
	}
}
