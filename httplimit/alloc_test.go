package httplimit

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

type nothing struct{}

func (nothing) ServeHTTP(http.ResponseWriter, *http.Request) {}

// bare is a ResponseWriter that is used again and again.
type bare struct{ header http.Header }

func (w bare) Header() http.Header       { return w.header }
func (bare) Write(b []byte) (int, error) { return len(b), nil }
func (bare) WriteHeader(int)             {}

func benchmarkHandler(b *testing.B, h http.Handler) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	w := bare{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

// What an admitted request may allocate: the slice for RateLimit and
// RateLimit-Policy, and what the former says if it was not said lately; the key
// of an IPv4 client nothing.
func TestAdmittedRequestsAllocateOnlyTheirHeaders(t *testing.T) {
	limit := tidegate.PerMinute(100)
	lim := tidegate.New(free{limit}, limit)
	gate := tidegate.NewGate(everyone{limit}, free{limit})
	f := func(name string, h http.Handler, remote string, want float64) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "/?user=bob", nil)
		r.RemoteAddr = remote
		r.Header.Set("X-User", "alice")
		w := bare{http.Header{}}
		got := testing.AllocsPerRun(200, func() {
			clear(w.header)
			h.ServeHTTP(w, r)
		})
		if got > want {
			t.Errorf("%s: %v allocations, want %v", name, got, want)
		}
	}
	silent := Options{Headers: NoHeaders}
	const v4, v6 = "192.0.2.1:1234", "[2001:db8::1]:1234"
	f("ip", Limit(lim, IP())(nothing{}), v4, 1)
	f("ip, not in the cache", Limit(tidegate.New(&countdown{limit: limit}, limit), IP())(nothing{}), v4, 2)
	both := Options{Headers: Draft11 | X}
	f("ip in two dialects", both.Limit(lim, IP())(nothing{}), v4, 1)
	f("ip in two dialects, not in the cache", both.Limit(tidegate.New(&countdown{limit: limit}, limit), IP())(nothing{}), v4, 3)
	f("ip in all dialects", Options{Headers: Draft11 | Draft6 | X}.Limit(lim, IP())(nothing{}), v4, 1)
	f("ip without headers", silent.Limit(lim, IP())(nothing{}), v4, 0)
	f("ip version 6", silent.Limit(lim, IP())(nothing{}), v6, 1)
	f("header", Limit(lim, Header("X-User"))(nothing{}), v4, 1)
	if !testdep.RaceEnabled {
		f("gate", Gate(gate)(nothing{}), v4, 1)
		f("gate without headers", silent.Gate(gate)(nothing{}), v4, 0)
		proxy := silent
		proxy.Fate = func(*http.Request) Fate { return Served }
		f("gate before a proxy", proxy.Gate(gate)(nothing{}), v4, 0)
		keyed := tidegate.NewGate(matchFunc(func(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
			ip, _ := r.Value("ip")
			return append(dst, tidegate.Check{Key: r.Key(ip, r.Path), Limit: limit, Cost: 1})
		}), free{limit})
		f("gate with keys of two parts", silent.Gate(keyed)(nothing{}), v4, 0)
	}
}

// everyone holds all requests to one limit, after a look at what they say.
type everyone struct{ limit *tidegate.Limit }

func (m everyone) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	key, _ := r.Value("client header X-User")
	if user, ok := r.Value("query user"); ok {
		key = user
	}
	if ip, ok := r.Value("ip"); ok {
		key = ip
	}
	return append(dst, tidegate.Check{Key: key, Limit: m.limit, Cost: 1})
}
