package admin

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate/internal/dev/openapi"
)

var document = sync.OnceValue(func() *openapi.Document { return openapi.Parse(description) })

// described fails if an answer is not as openapi.yaml describes it. Every answer of the tests
// of this package comes by here.
func described(t testing.TB, method, target string, w *httptest.ResponseRecorder) {
	t.Helper()
	path, _, _ := strings.Cut(target, "?")
	if strings.HasPrefix(path, "/debug/pprof/") {
		path = "/debug/pprof/"
	}
	if why := document().Breaks(method, path, w); why != "" {
		t.Errorf("%s %s is not as openapi.yaml says: %s", method, target, why)
	}
}

// The file describes every path that is served and no other, and is served itself.
func TestDescriptionIsComplete(t *testing.T) {
	d := newDesk(t, "rules: [{ name: api, per: ip, limits: 2/minute }]\n", func(o *Options) {
		o.Load = func(float64) error { return nil }
		o.Metrics = http.NotFoundHandler()
	})
	paths := document().At("paths")
	w := d.ask("GET", "/nothing", "")
	for _, path := range regexp.MustCompile(`/[a-z/.]+[a-z/]`).FindAllString(strings.TrimPrefix(w.Body.String(), "/nothing"), -1) {
		if strings.HasPrefix(path, "/nothing") {
			continue
		}
		if paths[path] == nil {
			t.Errorf("%s is served and not described", path)
		}
	}
	for path := range paths {
		if !strings.Contains(w.Body.String(), path) {
			t.Errorf("%s is described, and the answer of 404 does not name it", path)
		}
		if w := d.ask("PATCH", path, ""); path != "/metrics" && w.Code != http.StatusMethodNotAllowed {
			t.Errorf("PATCH %s: %d, so it may not be served", path, w.Code)
		}
	}
	if w := d.ask("GET", "/openapi.yaml", ""); w.Code != 200 || w.Body.String() != string(description) {
		t.Errorf("the file: %d", w.Code)
	}
}

// The test of the tests: what is not described is found.
func TestDescriptionCanBeBroken(t *testing.T) {
	f := func(path string, status int, kind, body string, fine bool) {
		t.Helper()
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		if why := document().Breaks("GET", path, w); (why == "") != fine {
			t.Errorf("%s %d %s: %q", path, status, body, why)
		}
	}
	f("/healthz", 200, "application/json", `{"alive":true,"status":"ok"}`, true)
	f("/healthz", 200, "application/json", `{"alive":true,"status":"fine"}`, false)
	f("/healthz", 200, "application/json", `{"alive":true,"status":"ok","more":1}`, false)
	f("/keys", 200, "application/json", `{"counters":[{"rule":"a"}]}`, false)
	f("/rules", 404, "application/json", `{}`, false)
	f("/nothing", 200, "application/json", `{}`, false)
}
