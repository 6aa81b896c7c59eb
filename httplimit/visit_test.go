package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// A handler that sees the body settles what the middleware cannot.
func TestVisitOf(t *testing.T) {
	f := func(settle string, found bool, left int64) {
		t.Helper()
		store := memory.New()
		limit := tidegate.MustLimit(tidegate.Spec{Name: "chat", Events: 100, Period: time.Hour, Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Settle: settle}}})
		check := tidegate.Check{Key: "k", Limit: limit, Cost: 100, Estimate: true}
		h := Gate(tidegate.NewGate(all(check), store))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			visit := VisitOf(r.Context())
			if (visit != nil) != found {
				t.Errorf("%s: visit %v", settle, visit)
			}
			visit.Found(settle, 37)
		}))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
		if got := tidegate.New(store, limit).Peek(t.Context(), "k").Remaining; got != left {
			t.Errorf("%s: %d of 100 are left, want %d", settle, got, left)
		}
	}
	f("response.body.usage.total_tokens", true, 63)
	f("response.header.X-Cost", false, 0)
	if VisitOf(context.Background()) != nil {
		t.Error("a context without a visit has one")
	}
}
