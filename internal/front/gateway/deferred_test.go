package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// shelf keeps the headers of what it is offered.
type shelf struct {
	keeps  bool
	header http.Header
}

func (s *shelf) Keep(w http.ResponseWriter, _ *http.Request, header http.Header, _ *tidegate.Decision) bool {
	s.header = header
	if s.keeps {
		w.WriteHeader(http.StatusAccepted)
	}
	return s.keeps
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "how "+r.URL.Path+" is")
}

// A refused request is offered with the headers that its upstream would have got; what is kept
// goes out as a live request does.
func TestDeferred(t *testing.T) {
	var got *http.Request
	status := http.StatusCreated
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(t.Context())
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "made")
	}))
	defer upstream.Close()
	at, _ := url.Parse(upstream.URL)
	set, err := rules.Parse("rules.yaml", []byte("version: 1\nrules:\n  - { name: orders, match: POST /orders, per: everyone, limits: 1/hour, defer: { keep: 1h, places: 5 } }\n  - { name: other, match: /other, per: everyone, limits: 1/hour }\n"), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{keeps: true}
	inflight := 0
	g, err := New(Options{
		Gate: tidegate.NewGate(rules.NewLive(set), memory.New()), Upstreams: []*url.URL{at}, Deferrer: s, DeferPath: "/deferred/",
		Inflight: func(delta int) { inflight += delta },
		Slip:     func([]tidegate.Check, *tidegate.Decision) string { return "slip" },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ask := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader("x"))
		r.Header.Set("Connection", "X-Hop, close")
		r.Header.Set("X-Hop", "1")
		r.Header.Set("X-Forwarded-For", "10.9.9.9")
		r.Header.Set("X-Own", "1")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w
	}
	if w := ask("POST", "/orders"); w.Code != 201 || s.header != nil {
		t.Errorf("the first: %d, %v", w.Code, s.header)
	}
	if w := ask("POST", "/orders"); w.Code != 202 || w.Header()["Refusal-Slip"] != nil { // it is not refused
		t.Errorf("the second: %d, %v", w.Code, w.Header())
	}
	h := s.header
	if h.Get("X-Own") != "1" || h.Get("X-Hop") != "" || h.Get("Connection") != "" || h.Get("X-Forwarded-For") != "192.0.2.1" || h.Get("X-Request-Id") == "" {
		t.Errorf("%v", h)
	}
	s.keeps = false
	if w := ask("POST", "/orders"); w.Code != 429 || w.Header().Get("Retry-After") == "" || w.Header().Get("Refusal-Slip") != "slip" || !strings.Contains(w.Body.String(), `"slip":"slip"`) {
		t.Errorf("what is not kept: %d, %v %s", w.Code, w.Header(), w.Body)
	}
	s.header = nil
	ask("GET", "/other")
	if w := ask("GET", "/other"); w.Code != 429 || s.header != nil {
		t.Errorf("a rule without defer: %d, offered %v", w.Code, s.header)
	}
	if w := ask("GET", "/deferred/abc"); w.Body.String() != "how /deferred/abc is" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest("POST", "/orders?a=b", strings.NewReader("later"))
	r.Header = h
	res, sent, err := g.Replay(r)
	if err != nil || !sent || res.StatusCode != 201 || got.URL.RawQuery != "a=b" || got.Header.Get("X-Forwarded-For") != "192.0.2.1" || inflight != 1 {
		t.Fatalf("%+v %v %v, %d in flight", res, sent, err, inflight)
	}
	res.Body.Close()
	res.Body.Close()
	if inflight != 0 {
		t.Errorf("%d are in flight after the end", inflight)
	}
	upstream.Close()
	if _, sent, err := g.Replay(httptest.NewRequest("POST", "/orders", strings.NewReader("x"))); err == nil || sent {
		t.Errorf("without an upstream: sent %v, %v", sent, err)
	}
}

// An answer that is none does not end a request that was kept.
func TestReplayWithoutAnAnswer(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"HTTP/1.1 042 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 103 Early Hints\r\n\r\n", "",
	} {
		var inflight atomic.Int64
		g, err := New(Options{
			Upstreams: []*url.URL{parseURL(t, "http://"+newParrot(t, answer).Addr().String())},
			Inflight:  func(delta int) { inflight.Add(int64(delta)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		for method, body := range map[string]io.Reader{"GET": nil, "POST": strings.NewReader("x")} {
			if res, sent, err := g.Replay(httptest.NewRequest(method, "/", body)); err == nil || !sent || inflight.Load() != 0 {
				t.Errorf("%s, %q: %v, sent %t, %v, %d in flight", method, answer, res, sent, err, inflight.Load())
			}
		}
		g.Close()
	}
}
