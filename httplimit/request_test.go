package httplimit

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// An observer of a gate finds the request that a decision is about.
func TestHTTPRequest(t *testing.T) {
	var found *http.Request
	gate := tidegate.NewGate(matchFunc(func(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check { return dst }), memory.New()).
		Observe(func(q *tidegate.Request, _ []tidegate.Check, _ tidegate.Decision) { found = HTTPRequest(q) })
	r := httptest.NewRequest(http.MethodGet, "/x", nil)
	Gate(gate)(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	if found != r || HTTPRequest(Options{}.Request(r)) != r {
		t.Errorf("found %v", found)
	}
	if HTTPRequest(&tidegate.Request{}) != nil {
		t.Error("a request of somebody else is taken for one of ours")
	}
}
