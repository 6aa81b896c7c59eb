package checkapi

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// sink is a ResponseWriter that is used again, so that what is measured is ours.
type sink struct {
	header http.Header
	status int
	n      int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { s.n += len(p); return len(p), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

const benchRules = `
identify: { user: client header X-User }
rules:
  - { name: site, match: /api/, per: ip, limits: { rate: 1000000/second, algorithm: token_bucket } }
  - { name: users, match: /api/, per: user, limits: { rate: 1000000/second, algorithm: token_bucket } }
`

const benchQuestion = `{"method":"GET","host":"api.example","path":"/api/things","ip":"192.0.2.1","as":{"user":"42"}}`

// newCheck returns what asks once.
func newCheck(tb testing.TB) func() {
	s := newServer(tb, benchRules, func(o *Options) {
		o.Token, o.Known = func() string { return secret }, func(string) bool { return true }
	})
	body := strings.NewReader(benchQuestion)
	r, err := http.NewRequest("POST", "/v1/check", io.NopCloser(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.RequestURI, r.ContentLength = "/v1/check", int64(len(benchQuestion))
	r.Header[tokenHeader] = []string{secret}
	w := &sink{header: make(http.Header)}
	return func() {
		clear(w.header)
		_, _ = body.Seek(0, io.SeekStart)
		s.ServeHTTP(w, r)
		if w.n == 0 || w.header[decisionHeader][0] != "allowed" {
			tb.Fatalf("%+v", w)
		}
	}
}

func newForward(tb testing.TB) func() {
	s := newServer(tb, benchRules, nil)
	r, err := http.NewRequest("GET", forwardAuth, nil)
	if err != nil {
		tb.Fatal(err)
	}
	r.RequestURI, r.RemoteAddr = forwardAuth, "127.0.0.1:999"
	for name, value := range map[string]string{
		"X-Original-Uri": "/api/things?page=2", "X-Original-Method": "GET", "X-Forwarded-Host": "api.example", "X-Forwarded-For": "192.0.2.1", "X-User": "42",
	} {
		r.Header[name] = []string{value}
	}
	w := &sink{header: make(http.Header)}
	return func() {
		clear(w.header)
		s.ServeHTTP(w, r)
		if w.status != http.StatusNoContent {
			tb.Fatalf("%+v", w)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	check := newCheck(b)
	b.ReportAllocs()
	for b.Loop() {
		check()
	}
}

func BenchmarkForwardAuth(b *testing.B) {
	check := newForward(b)
	b.ReportAllocs()
	for b.Loop() {
		check()
	}
}

// An answer makes little garbage: the text of the question, and a deadline that the store
// may keep; for a proxy that, and the values of the RateLimit headers.
func TestAllocations(t *testing.T) {
	testdep.SkipUnderRace(t)
	for name, ask := range map[string]func(){"check": newCheck(t), "forward-auth": newForward(t)} {
		if n := testing.AllocsPerRun(200, ask); n > 2 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
