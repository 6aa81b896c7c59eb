package httplimit

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func refusing(o Options, name string, d tidegate.Decision) http.Handler {
	lim := tidegate.New(&script{decisions: []tidegate.Decision{d}},
		tidegate.MustLimit(tidegate.Spec{Name: name, Events: 5, Period: time.Minute}))
	return o.Limit(lim, IP())(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic("a refused request reached the handler")
	}))
}

func TestProblemNamesTheViolatedPolicy(t *testing.T) {
	w := get(refusing(Options{}, "burst", tidegate.Decision{RetryAfter: 14500 * time.Millisecond}))
	if w.Code != 429 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("status %d, type %s", w.Code, w.Header().Get("Content-Type"))
	}
	want := `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
		`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,` +
		`"detail":"The quota of the policy burst is used up; try again in 15 s.","violated-policies":["burst"]}`
	if got := w.Body.String(); got != want {
		t.Errorf("body:\n%s\nwant:\n%s", got, want)
	}
}

// The body is what json.Marshal makes of it.
func FuzzProblemJSON(f *testing.F) {
	f.Add("about:blank", "Too Many Requests", 429, "The quota is used up.", "burst", "day", "rs1_abc")
	f.Add("", "", -1, "", "", "", "")
	f.Add("a\"b", `a\b`, 0, "</script>&", "caf\u00e9\u2028", "a\nb\x7f", "\xff")
	f.Fuzz(func(t *testing.T, kind, title string, status int, detail, one, two, slip string) {
		why := problem{Type: kind, Title: title, Status: status, Detail: detail, Slip: slip}
		for _, name := range []string{"", one, two} {
			if name != "" {
				why.Violated = append(why.Violated, name)
			}
			want, err := json.Marshal(why)
			if err != nil {
				t.Fatal(err)
			}
			if got := why.appendJSON(nil); string(got) != string(want) {
				t.Errorf("%s\nwant %s", got, want)
			}
		}
	})
}

func TestProblemIsValidJSONWhateverTheName(t *testing.T) {
	for _, name := range []string{`a"b`, `a\b`, "</script>", "caf\u00e9", "a\nb", "\xff", `","x":"`} {
		w := get(refusing(Options{}, name, tidegate.Decision{RetryAfter: time.Second}))
		var p problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatalf("%q: %v in %s", name, err, w.Body)
		}
		if p.Status != 429 || len(p.Violated) != 1 || p.Violated[0] != printable(name) {
			t.Errorf("%q: %+v", name, p)
		}
	}
}

func TestNeverHasNoRetryAfter(t *testing.T) {
	w := get(refusing(Options{}, "burst", tidegate.Decision{Never: true}))
	if w.Code != 429 || w.Header().Get("Retry-After") != "" || !strings.Contains(w.Body.String(), "can ever admit") {
		t.Errorf("status %d, Retry-After %q, %s", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
}

func TestHeadHasNoBody(t *testing.T) {
	for _, accept := range []string{"", "text/html"} {
		w := get(refusing(Options{}, "burst", tidegate.Decision{RetryAfter: time.Second}), func(r *http.Request) {
			r.Method = http.MethodHead
			r.Header.Set("Accept", accept)
		})
		if w.Code != 429 || w.Body.Len() != 0 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("status %d, body %q, Retry-After %q", w.Code, w.Body, w.Header().Get("Retry-After"))
		}
	}
}

func TestStoreFailureIsNotTheClientsFault(t *testing.T) {
	down := errors.New("connection refused")
	f := func(mode tidegate.FailMode, wantStatus int, wantRetry string) {
		t.Helper()
		var seen []tidegate.Decision
		o := Options{OnDecision: func(_ *http.Request, d tidegate.Decision) { seen = append(seen, d) }}
		lim := tidegate.New(&script{err: down}, tidegate.PerMinute(5)).OnStoreFailure(mode)
		slots := tidegate.New(&script{err: down}, tidegate.Slots(1, time.Minute)).OnStoreFailure(mode)
		for _, h := range []http.Handler{o.Limit(lim, IP())(hello), o.Limit(slots, IP())(hello)} {
			w := get(h)
			if w.Code != wantStatus || w.Header().Get("Retry-After") != wantRetry {
				t.Errorf("mode %d: status %d, Retry-After %q", mode, w.Code, w.Header().Get("Retry-After"))
			}
			if got := w.Header().Get("RateLimit"); got != "" {
				t.Errorf("mode %d: RateLimit: %s, though nobody knows", mode, got)
			}
			if strings.Contains(w.Body.String(), "refused") || strings.Contains(w.Body.String(), "violated") {
				t.Errorf("mode %d: the body tells clients too much: %s", mode, w.Body)
			}
		}
		if len(seen) != 2 || !errors.Is(seen[0].Err, down) || !errors.Is(seen[1].Err, down) {
			t.Errorf("mode %d: the observer saw %+v", mode, seen)
		}
	}
	f(tidegate.FailOpen, 200, "")
	f(tidegate.FailClosed, 503, "1")
}

func TestOwnRenderer(t *testing.T) {
	o := Options{Render: func(w http.ResponseWriter, r *http.Request, d tidegate.Decision) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(Status(d))
		_, _ = w.Write([]byte("<p>slow down on " + r.URL.Path + ", " + d.Limit.Name))
	}}
	w := get(refusing(o, "burst", tidegate.Decision{RetryAfter: 3 * time.Second}))
	if w.Code != 429 || w.Body.String() != "<p>slow down on /, burst" || w.Header().Get("Retry-After") != "3" ||
		w.Header().Get("RateLimit") != `"burst";r=0;t=3` || w.Header().Get("Content-Type") != "text/html" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestRefusedForWantOfAKey(t *testing.T) {
	var seen error
	o := Options{Missing: Refuse, OnDecision: func(_ *http.Request, d tidegate.Decision) { seen = d.Err }}
	w := get(o.Limit(tidegate.New(&script{}, tidegate.PerMinute(5)), Header("X-User"))(hello))
	if w.Code != 400 || w.Header().Get("Retry-After") != "" || !errors.Is(seen, ErrMissing) || !json.Valid(w.Body.Bytes()) {
		t.Errorf("%d %v %s, observed %v", w.Code, w.Header(), w.Body, seen)
	}
}

func TestObserverSeesEveryDecisionOnce(t *testing.T) {
	var seen []bool
	o := Options{OnDecision: func(_ *http.Request, d tidegate.Decision) { seen = append(seen, d.OK) }}
	store := &script{decisions: []tidegate.Decision{{OK: true}, {OK: true}, {RetryAfter: time.Second}}}
	h := o.Limit(tidegate.New(store, tidegate.PerMinute(2)), IP())(hello)
	for range 3 {
		get(h)
	}
	if len(seen) != 3 || !seen[0] || !seen[1] || seen[2] {
		t.Errorf("observed %v", seen)
	}
}

func TestTrap22FailedRequestsStayCharged(t *testing.T) {
	// A refund on failure would give unlimited tries of a request that fails.
	store := &adjusted{script: &script{}}
	lim := tidegate.New(store, tidegate.PerMinute(5))
	h := Limit(lim, IP())(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
	for range 3 {
		get(h)
	}
	if store.calls != 3 || store.n != 0 {
		t.Errorf("%d charges and %d adjustments, want 3 and none", store.calls, store.n)
	}
}

// Caches store no 429, but a 404 or a 410 without being told to, and some of them anything: what one
// client is refused with is not for others.
func TestRefusalsAreNotStored(t *testing.T) {
	f := func(status int, d tidegate.Decision, want string) {
		t.Helper()
		if status != 0 {
			d.Limit = tidegate.MustLimit(tidegate.Spec{Events: 5, Period: time.Minute, Terms: &tidegate.Terms{Answer: tidegate.Answer{Status: status}}})
		}
		w := httptest.NewRecorder()
		Options{}.Front().Answer(w, httptest.NewRequest("GET", "/", nil), &d)
		if got := w.Header().Get("Cache-Control"); got != want {
			t.Errorf("%d: Cache-Control is %q", w.Code, got)
		}
	}
	limit := tidegate.PerMinute(5)
	f(0, tidegate.Decision{Limit: limit, RetryAfter: time.Second}, "")
	f(0, tidegate.Decision{Limit: limit, Never: true}, "")
	for _, status := range []int{402, 403, 404, 410, 503} {
		f(status, tidegate.Decision{Limit: limit, RetryAfter: time.Second}, "no-store")
	}
	f(0, tidegate.Decision{Limit: tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.Deny}), Never: true}, "no-store")
	f(0, tidegate.Decision{Limit: limit, Err: errors.New("away"), RetryAfter: time.Second}, "no-store")
	f(0, tidegate.Decision{Err: ErrMissing}, "no-store")
}
