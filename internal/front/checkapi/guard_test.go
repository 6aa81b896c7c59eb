package checkapi

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Whoever asks shows the token, which may change at any time.
func TestToken(t *testing.T) {
	var token atomic.Pointer[string]
	set := func(s string) { token.Store(&s) }
	set(secret)
	s := newServer(t, "", func(o *Options) { o.Token = func() string { return *token.Load() } })
	f := func(want int, headers ...string) {
		t.Helper()
		for _, target := range []string{"/v1/check", "/v1/peek", "/v1/reserve", "/v1/acquire", "/v1/usage"} {
			w := ask(t, s, "POST", target, `{"ip":"192.0.2.1"}`, headers...)
			if w.Code != want {
				t.Errorf("%s %q: %d %s, want %d", target, headers, w.Code, w.Body, want)
			}
			if want == 401 && w.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: %q", target, w.Header())
			}
		}
		if w := ask(t, s, "GET", "/v1/openapi.yaml", "", headers...); w.Code != want {
			t.Errorf("openapi.yaml %q: %d, want %d", headers, w.Code, want)
		}
	}
	f(401)
	f(401, "X-Tidegate-Token: wrong")
	f(401, "X-Tidegate-Token: ")
	f(401, "X-Tidegate-Token: "+secret+"x")
	f(401, "X-Tidegate-Token: "+secret, "X-Tidegate-Token: "+secret)
	f(401, "X-Tidegate-Token: wrong", "Authorization: Bearer "+secret)
	f(401, "Authorization: Basic "+secret)
	f(401, "Authorization: "+secret)
	f(401, "Authorization: Bearer")
	f(401, "Authorization: Bearer wrong")
	f(200, "X-Tidegate-Token: "+secret)
	f(200, "X-Tidegate-Token: "+secret, "Authorization: Bearer of the client")
	f(200, "Authorization: Bearer "+secret)
	f(200, "Authorization: bearer  "+secret, "Peer: 198.51.100.1:999")
	set("another")
	f(401, "X-Tidegate-Token: "+secret)
	f(200, "X-Tidegate-Token: another")
	set("") // then only this machine
	f(200)
	f(403, "Peer: 198.51.100.1:999")
	f(403, "Peer: 198.51.100.1:999", "X-Tidegate-Token: another")
	f(403, "Origin: https://evil.example")
	f(403, "Sec-Fetch-Site: cross-site")
	f(200, "Peer: [::1]:999")
}

// A certificate that the listener has verified will do, and so will a Unix socket, where
// the operator says so.
func TestPeers(t *testing.T) {
	verified := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}
	f := func(edit func(*Options), change func(*http.Request) *http.Request, want int) {
		t.Helper()
		s := newServer(t, "", edit)
		r := httptest.NewRequest("POST", "/v1/check", strings.NewReader(`{}`))
		r.RemoteAddr = "198.51.100.1:999"
		if change != nil {
			r = change(r)
		}
		if w := serve(t, s, r); w.Code != want {
			t.Errorf("%d %s, want %d", w.Code, w.Body, want)
		}
	}
	token := func(o *Options) { o.Token = func() string { return secret } }
	certs := func(o *Options) { o.Certificates = true }
	both := func(o *Options) { token(o); certs(o); o.Unix = true }
	with := func(state *tls.ConnectionState) func(*http.Request) *http.Request {
		return func(r *http.Request) *http.Request { r.TLS = state; return r }
	}
	f(token, with(verified), 401)
	f(token, overUnix, 401)
	f(certs, with(verified), 200)
	f(certs, with(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}), 401)
	f(certs, with(&tls.ConnectionState{}), 401)
	f(certs, nil, 401)
	f(certs, func(r *http.Request) *http.Request { r.RemoteAddr = "127.0.0.1:1"; return r }, 401)
	f(both, with(verified), 200)
	f(both, overUnix, 200)
	f(both, nil, 401)
	f(nil, overUnix, 200)
	f(nil, nil, 403)
}
