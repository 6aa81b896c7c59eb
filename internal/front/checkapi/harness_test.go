package checkapi

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

const secret = "a token that is long enough"

// newServer answers by rules, which are one limit by address if "", on counters in memory
// unless edit says otherwise. Proxies are on 127.0.0.1.
func newServer(t testing.TB, src string, edit func(*Options)) *Server {
	t.Helper()
	if src == "" {
		src = "rules: [{ name: site, per: ip, limits: 100/hour }]"
	}
	return serverOn(t, queue.New(chain.Adapt(memory.New())), src, edit)
}

func serverOn(t testing.TB, store tidegate.Store, src string, edit func(*Options)) *Server {
	t.Helper()
	set := parseRules(t, src)
	o := Options{
		Desk:  desk.New(tidegate.NewGate(set, store)),
		HTTP:  httplimit.Options{ClientIP: httplimit.ClientIP{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}},
		Known: func(name string) bool { return slices.Contains(set.Identities(), name) },
		Samples: func() (all []Sample) {
			for _, s := range set.Samples() {
				all = append(all, Sample(s))
			}
			return all
		},
	}
	if edit != nil {
		edit(&o)
	}
	return New(o)
}

func parseRules(t testing.TB, src string) *rules.Set {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte("version: 1\n"+src), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// ask puts a question as a caller on this machine does, and holds the answer against the
// OpenAPI file.
func ask(t testing.TB, s http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:40000"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		if name == "Peer" {
			r.RemoteAddr = value
			continue
		}
		r.Header.Add(name, value)
	}
	return serve(t, s, r)
}

func serve(t testing.TB, s http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	method, target := r.Method, r.RequestURI
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if why := breaks(method, target, w); why != "" {
		t.Errorf("the answer is not as described: %s", why)
	}
	return w
}

// overUnix makes r one that came by a Unix socket.
func overUnix(r *http.Request) *http.Request {
	r.RemoteAddr = "@"
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Name: "s", Net: "unix"})))
}

// answer is an answer in the fields that tests look at.
type answer struct {
	Decision   string   `json:"decision"`
	Rule       string   `json:"rule"`
	Limit      int64    `json:"limit"`
	Remaining  int64    `json:"remaining"`
	RetryAfter float64  `json:"retry_after"`
	ResetAfter float64  `json:"reset_after"`
	Ticket     string   `json:"ticket"`
	Soft       bool     `json:"soft"`
	Never      bool     `json:"never"`
	Reason     string   `json:"reason"`
	Unknown    []string `json:"unknown"`
}

// post asks by JSON and expects an answer.
func post(t testing.TB, s http.Handler, verb, body string) (a answer) {
	t.Helper()
	w := ask(t, s, "POST", "/v1/"+verb, body)
	if w.Code != http.StatusOK {
		t.Fatalf("POST /v1/%s %s: %d %s", verb, body, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	if a.Decision != "" && w.Header().Get(decisionHeader) != a.Decision {
		t.Errorf("the header says %q, the body %q", w.Header().Get(decisionHeader), a.Decision)
	}
	return a
}
