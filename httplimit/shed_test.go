package httplimit_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// shedsAll is a Matcher that sheds every request.
type shedsAll struct{ limit *tidegate.Limit }

func (m shedsAll) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, tidegate.Check{Limit: m.limit, Cost: 1})
}

// A request that is shed is told that it is not its fault, and when to come back.
func TestShed(t *testing.T) {
	limit := tidegate.MustLimit(tidegate.Spec{
		Name: "site", Algorithm: tidegate.Deny,
		Terms: &tidegate.Terms{Rule: "site", Role: tidegate.Sheds, Answer: tidegate.Answer{RetryAfter: 15 * time.Second}},
	})
	h := httplimit.Gate(tidegate.NewGate(shedsAll{limit}, memory.New()))(http.NotFoundHandler())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "15" || w.Header().Get("RateLimit") != "" {
		t.Errorf("answered %d with %v", w.Code, w.Header())
	}
	var problem struct {
		Type, Title string
		Status      int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil {
		t.Fatal(err)
	}
	if problem.Type != "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity" || problem.Status != 503 || problem.Title == "" {
		t.Errorf("the body is %s", w.Body)
	}
	// gRPC has a code for it, and is told to retry.
	call := httptest.NewRequest("POST", "/shop.Orders/Create", nil)
	call.Header.Set("Content-Type", "application/grpc")
	call.ProtoMajor = 2
	w = httptest.NewRecorder()
	h.ServeHTTP(w, call)
	if got := w.Header(); got.Get("Grpc-Status") != "14" || got.Get("Grpc-Retry-Pushback-Ms") != "15000" {
		t.Errorf("a call of gRPC is answered with %v", got)
	}
}
