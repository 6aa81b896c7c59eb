package route

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"
)

// Where net/http.ServeMux sends a request, or sends it after a redirect, is among
// the hits. CONNECT is left out: ServeMux does not clean its paths.
func TestMatchAgreesWithServeMux(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	routed := 0
	for range 1000 {
		mux := http.NewServeMux()
		var patterns []string
		for range 20 {
			if text := randomPattern(r); registers(mux, text) {
				patterns = append(patterns, text)
			}
		}
		tr := tree(t, patterns...)
		for range 20 {
			q := randomRequest(r)
			u := &url.URL{Path: q.path, RawPath: q.raw}
			_, want := mux.Handler(&http.Request{Method: q.method, Host: q.host, URL: u})
			if want == "" {
				continue
			}
			routed++
			found := false
			for _, h := range matchAll(tr, q.method, q.host, u.Path, u.EscapedPath()) {
				found = found || patterns[h.ID] == want
			}
			if !found {
				t.Fatalf("%+v goes to %q, which is no hit", q, want)
			}
		}
	}
	if routed < 2500 {
		t.Errorf("only %d requests went anywhere", routed)
	}
}

// registers reports whether the pattern conflicts with none before.
func registers(mux *http.ServeMux, pattern string) (ok bool) {
	defer func() { ok = recover() == nil }()
	mux.Handle(pattern, http.NotFoundHandler())
	return
}
