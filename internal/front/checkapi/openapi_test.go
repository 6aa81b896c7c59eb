package checkapi

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate/internal/dev/openapi"
)

var document = sync.OnceValue(func() *openapi.Document { return openapi.Parse(description) })

// breaks says where an answer is not as the file describes it; "" if it is.
func breaks(method, target string, w *httptest.ResponseRecorder) string {
	path, _, _ := strings.Cut(target, "?")
	if path == forwardAuth || strings.HasPrefix(path, forwardAuth+"/") {
		path, method = forwardAuth, "GET"
	}
	return document().Breaks(method, path, w)
}

// The test of the tests: what is not described is found.
func TestDescriptionCanBeBroken(t *testing.T) {
	f := func(target string, status int, kind, body string, fine bool) {
		t.Helper()
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Tidegate-Decision", "allowed")
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		if why := breaks("POST", target, w); (why == "") != fine {
			t.Errorf("%s %d %s %s: %q", target, status, kind, body, why)
		}
	}
	f("/v1/check", 200, "application/json", `{"decision":"allowed","limit":5,"remaining":1,"reset_after":0.5}`, true)
	f("/v1/check", 200, "application/json", `{"answers":[{"decision":"denied"}]}`, true)
	f("/v1/check", 200, "application/json", `{"answers":[]}`, false)
	f("/v1/check", 200, "application/json", `{"decision":"perhaps"}`, false)
	f("/v1/check", 200, "application/json", `{"decision":"allowed","limit":-5}`, false)
	f("/v1/check", 200, "application/json", `{"decision":"allowed","remaining":1.5}`, false)
	f("/v1/check", 200, "application/json", `{"decision":"allowed","surprise":1}`, false)
	f("/v1/check", 200, "application/json", `{}`, false)
	f("/v1/check", 200, "text/plain", `{"decision":"allowed"}`, false)
	f("/v1/check", 201, "application/json", `{"decision":"allowed"}`, false)
	f("/v1/settle", 200, "application/json", `{"done":false}`, false)
	f("/v1/settle", 409, "application/problem+json", `{"type":"about:blank","title":"Conflict","status":409,"detail":"x"}`, true)
	f("/v1/settle", 409, "application/problem+json", `{"type":"about:blank","title":"Conflict","status":9}`, false)
	f("/v1/nothing", 200, "application/json", `{}`, false)
	f("/v1/forward-auth", 204, "", "", true)
	f("/v1/forward-auth", 200, "", "", false)
}

// Every path that is described is served, and the file itself.
func TestDescriptionIsComplete(t *testing.T) {
	described := document().At("paths")
	for name := range verbs {
		if described["/v1/"+name] == nil {
			t.Errorf("/v1/%s is not described", name)
		}
	}
	for path := range described {
		name := strings.TrimPrefix(path, "/v1/")
		if verbs[name] == nil && path != forwardAuth && name != "openapi.yaml" {
			t.Errorf("%s is described, and not served", path)
		}
	}
	if got := ask(t, newServer(t, "", nil), "GET", "/v1/openapi.yaml", ""); got.Code != 200 || got.Body.String() != string(description) {
		t.Errorf("%d", got.Code)
	}
}
