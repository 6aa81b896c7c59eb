package rules

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// Whoever is banned is answered 403 and learns neither why nor by whom; only a message that
// was written for them is told. There are no numbers, and no time to come back.
func TestAnswerToTheBanned(t *testing.T) {
	f := func(respond, message, rule, want string) {
		t.Helper()
		m := ban("b-secret", "user=42", rule)
		m.Reason, m.By, m.Message = "chargeback 4711", "ann", message
		live := measured(t, "identify: { user: client header X-User }\n"+respond+"\nrules: [{ name: api, per: user, limits: 5/minute, respond: { status: 503, message: too fast } }]\n", m)
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-User", "42")
		httplimit.Gate(tidegate.NewGate(live, memory.New()))(http.NotFoundHandler()).ServeHTTP(w, r)
		body := w.Body.String()
		if w.Code != http.StatusForbidden || !strings.Contains(body, want) {
			t.Errorf("%q %q: %d %s, want %q", respond, message, w.Code, body, want)
		}
		whole := body
		for name, values := range w.Header() {
			whole += name + strings.Join(values, " ")
		}
		for _, leak := range []string{"chargeback", "ann", "b-secret", "42", "Retry-After", "RateLimit", "too fast"} {
			if strings.Contains(whole, leak) {
				t.Errorf("%q %q: %q is told:\n%s", respond, message, leak, whole)
			}
		}
	}
	for _, rule := range []string{"", "api"} {
		f("", "", rule, `"status":403`)
		f("", "Please write to support.", rule, "Please write to support.")
		f("respond: { status: 418, body: \"no, {rule}\" }", "", rule, "no, ")
		f("respond: { status: 418, body: \"no, {rule}\" }", "Please call.", rule, "Please call.")
	}
}

// Under measures matching makes no garbage either.
func TestAllocMatchUnderMeasures(t *testing.T) {
	live := NewLive(parse(t, wideRules, Config{}))
	problems := live.SetMeasures([]Measure{
		override("o-1", "user=user-123456789", "api", "9000/minute"), override("o-2", "ip=203.0.113.0/24", "site", "9/second"),
		override("o-3", "plan=premium user=user-123456789", "parts", "9/second"), override("o-4", "user=other", "rpm", "unlimited"),
		override("o-5", "order=4711", "order", "9/second"), ban("b-1", "user=somebody", ""), ban("b-2", "ip=198.51.100.0/24", ""), ban("b-3", "method=DELETE", "api"),
	})
	if problems != nil {
		t.Fatal(problems)
	}
	r := new(tidegate.Request)
	v := few{}
	dst := make([]tidegate.Check, 0, 32)
	match := func() {
		r.Reset()
		r.Method, r.Host, r.Path, r.Values = "POST", "shop.example.com", "/api/orders/4711", v
		dst = live.Match(r, dst[:0])
	}
	match()
	for _, want := range []string{"site: 9/1s token_bucket", "api: 9000/1m0s", "parts: 9/1s", "order: 9/1s"} {
		if !strings.Contains(show(dst), want) {
			t.Errorf("held to\n%swant %s", show(dst), want)
		}
	}
	testdep.SkipUnderRace(t)
	if n := testing.AllocsPerRun(1000, match); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
