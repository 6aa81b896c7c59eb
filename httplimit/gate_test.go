package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// matchFunc is a Matcher made of a function.
type matchFunc func(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check

func (f matchFunc) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return f(r, dst)
}

func TestGateTellsTheRulesAboutTheRequest(t *testing.T) {
	f := func(c ClientIP, name, want string) {
		t.Helper()
		var got, line string
		var ok bool
		gate := tidegate.NewGate(matchFunc(func(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
			line = r.Method + " " + r.Host + " " + r.Path
			got, ok = r.Value(name)
			return dst
		}), &script{})
		mux := http.NewServeMux()
		mux.Handle("/t/{tenant}/", Options{ClientIP: c}.Gate(gate)(hello))
		r := httptest.NewRequest(http.MethodPost, "http://a.example/t/acme/x?user=a%20b&empty=&user=a+b", nil)
		r.RemoteAddr = "10.0.0.1:99"
		r.Header.Set("X-Forwarded-For", "2001:db8:1:2::7")
		r.Header.Set("X-Api-Key", "k1")
		r.AddCookie(&http.Cookie{Name: "session", Value: "s1"})
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, got, ok, want)
		}
		if line != "POST a.example /t/acme/x" {
			t.Errorf("request line %q", line)
		}
		if w.Code != 200 || w.Header().Get("RateLimit") != "" {
			t.Errorf("status %d, RateLimit %q for a request nothing limits", w.Code, w.Header().Get("RateLimit"))
		}
	}
	direct, behind := ClientIP{}, ClientIP{Trusted: prefixes("10.0.0.0/8")}
	f(direct, "ip", "10.0.0.1")
	f(direct, "ip /24 /48", "10.0.0.0/24")
	f(direct, "ip /33 /48", "")
	f(direct, "ip /24", "")
	f(behind, "ip", "2001:db8:1:2::/64")
	f(behind, "ip /24 /48", "2001:db8:1::/48")
	f(behind, "ip /32 /128", "2001:db8:1:2::7")
	f(direct, "header X-Api-Key", "")
	f(behind, "header X-Api-Key", "k1")
	f(behind, "header x-api-key", "k1")
	f(behind, "header Host", "a.example")
	f(direct, "client header X-Api-Key", "k1")
	f(direct, "client cookie session", "")
	f(direct, "cookie session", "s1")
	f(direct, "cookie other", "")
	f(direct, "query user", "a b")
	f(direct, "query empty", "")
	f(direct, "path {tenant}", "acme")
	f(direct, "path {other}", "")
	f(direct, "route", "/t/{tenant}/")
	f(direct, "shoe size", "")
	f(direct, "", "")
}

func TestGateRefusesAndReports(t *testing.T) {
	limit := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 2, Period: time.Minute})
	store := &script{decisions: []tidegate.Decision{
		{OK: true, Granted: 1, Remaining: 1, ResetAfter: time.Minute}, {RetryAfter: 30 * time.Second},
	}}
	h := Gate(tidegate.NewGate(everyone{limit}, store))(hello)
	if w := get(h); w.Code != 200 || w.Header().Get("RateLimit") != `"api";r=1;t=60` {
		t.Errorf("status %d, RateLimit %s", w.Code, w.Header().Get("RateLimit"))
	}
	w := get(h)
	if w.Code != 429 || w.Header().Get("RateLimit") != `"api";r=0;t=30` || w.Header().Get("Retry-After") != "30" ||
		w.Header().Get("RateLimit-Policy") != `"api";q=2;w=60` {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
}

func TestGateLetsARequestWaitItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := tidegate.PerMinute(2)
		store := &script{decisions: []tidegate.Decision{{OK: true, Granted: 1, Wait: 5 * time.Second}}}
		served := 0
		h := Gate(tidegate.NewGate(everyone{limit}, store))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
		start := time.Now()
		get(h)
		if waited := time.Since(start); waited != 5*time.Second || served != 1 {
			t.Errorf("served %d after %s", served, waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w := get(h, func(r *http.Request) { *r = *r.WithContext(ctx) })
		if waited := time.Since(start); waited != 6*time.Second || served != 1 {
			t.Errorf("served %d after %s: the client had left", served, waited)
		}
		// The client may be there, and the deadline the server's own.
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("not served: status %d, %v", w.Code, w.Header())
		}
	})
}

// FuzzQueryValue: the rules must see the value that every handler will see, or
// none: url.ParseQuery takes the first, others the last, or part at semicolons.
func FuzzQueryValue(f *testing.F) {
	f.Add("user=a&user=b", "user")
	f.Add("us%65r=a+b", "user")
	f.Add("user=%zz&user=b;c&user=d", "user")
	f.Add("&&=x&user", "")
	f.Fuzz(func(t *testing.T, raw, name string) {
		parsed, err := url.ParseQuery(raw)
		all := parsed[name]
		got := query(raw, name)
		same := !slices.ContainsFunc(all, func(v string) bool { return v != all[0] })
		switch {
		case got != "" && (len(all) == 0 || !same || got != all[0]):
			t.Errorf("query %q, name %q: %q, a handler sees %q", raw, name, got, all)
		case err == nil && same && got != parsed.Get(name):
			t.Errorf("query %q, name %q: %q, want %q", raw, name, got, parsed.Get(name))
		}
		// However the pairs are ordered and told apart.
		parted, _ := url.ParseQuery(strings.ReplaceAll(raw, ";", "&"))
		if other := parted[name]; got != "" && slices.ContainsFunc(other, func(v string) bool { return v != got }) {
			t.Errorf("query %q, name %q: %q, and another reader sees %q", raw, name, got, other)
		}
	})
}
