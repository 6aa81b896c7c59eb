package admin

import (
	"net/http"
	"strings"
	"testing"
)

const few = "rules: [{ name: api, match: /api/, per: ip, limits: 5/minute }]\n"

// guarded are the paths that not everybody may ask.
var guarded = []string{"/rules", "/keys?rule=api", "/metrics", "/load", "/keys/reset", "/debug/pprof/", "/debug/pprof/cmdline", "/", "/no/such/thing"}

func TestWithoutTokenOnlyThisMachine(t *testing.T) {
	d := newDesk(t, few, func(o *Options) { o.Load = func(float64) error { return nil } })
	f := func(want int, peer, host string, headers ...string) {
		t.Helper()
		for _, path := range guarded {
			w := d.ask("GET", path, "", func(r *http.Request) {
				r.RemoteAddr, r.Host = peer, host
				for i := 0; i < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
			})
			if (w.Code == 403) != (want == 403) {
				t.Errorf("%s from %s for %s %v: %d, want %d", path, peer, host, headers, w.Code, want)
			}
			if w.Code == 403 {
				problem(t, w, 403, "token")
			}
		}
	}
	f(200, "127.0.0.1:1", "127.0.0.1:9090")
	f(200, "127.8.9.1:1", "localhost:9090")
	f(200, "[::1]:1", "[::1]:9090")
	f(200, "[::1]:1", "[::1]")
	f(200, "[::ffff:127.0.0.1]:1", "LOCALHOST")
	f(200, "@", "anything") // a Unix socket
	f(200, "", "")
	f(403, "192.0.2.1:1", "127.0.0.1:9090")
	f(403, "[2001:db8::1]:1", "localhost")
	f(403, "10.0.0.1:1", "10.0.0.1")
	f(403, "nonsense", "localhost")
	// A page of another site whose name leads to this machine.
	f(403, "127.0.0.1:1", "attacker.example:9090")
	f(403, "127.0.0.1:1", "localhost.attacker.example")
	f(403, "127.0.0.1:1", "")
	f(403, "127.0.0.1:1", "192.0.2.1:9090")
	f(403, "127.0.0.1:1", "localhost", "Sec-Fetch-Site", "cross-site")
	f(403, "127.0.0.1:1", "localhost", "Sec-Fetch-Site", "same-site")
	f(200, "127.0.0.1:1", "localhost", "Sec-Fetch-Site", "same-origin")
	// A proxy on this machine.
	f(403, "127.0.0.1:1", "127.0.0.1", "X-Forwarded-For", "203.0.113.7")
	f(403, "127.0.0.1:1", "127.0.0.1", "Forwarded", "for=203.0.113.7")
	f(403, "@", "localhost", "X-Forwarded-For", "203.0.113.7")
}

func TestToken(t *testing.T) {
	const token = "correct-horse"
	d := newDesk(t, few, func(o *Options) { o.Token, o.Load = func() string { return token }, func(float64) error { return nil } })
	f := func(lets bool, authorization, peer string) {
		t.Helper()
		for _, path := range guarded {
			w := d.ask("GET", path, "", func(r *http.Request) {
				r.RemoteAddr, r.Host = peer, "tidegate.example"
				if authorization != "" {
					r.Header.Set("Authorization", authorization)
				}
			})
			if (w.Code != 401) != lets {
				t.Errorf("%s by %q: %d", path, authorization, w.Code)
			}
			if w.Code == 401 {
				problem(t, w, 401, "token")
				if w.Header().Get("WWW-Authenticate") != "Bearer" {
					t.Error("it does not say how")
				}
			}
		}
	}
	f(true, "Bearer "+token, "192.0.2.1:1")
	f(true, "bearer "+token, "192.0.2.1:1")
	f(false, "", "127.0.0.1:1") // being here is not enough then
	f(false, "Bearer", "127.0.0.1:1")
	f(false, "Bearer ", "127.0.0.1:1")
	f(false, "Bearer "+token+"x", "127.0.0.1:1")
	f(false, "Bearer "+token[:5], "127.0.0.1:1")
	f(false, "Basic "+token, "127.0.0.1:1")
	f(false, token, "127.0.0.1:1")
	if strings.Contains(d.log.String(), token[:5]) {
		t.Errorf("the log has the token: %s", d.log)
	}
}

// Health is for everybody: whoever asks it has no token.
func TestHealthIsOpen(t *testing.T) {
	for _, token := range []string{"", "secret"} {
		d := newDesk(t, few, func(o *Options) {
			if token != "" {
				o.Token = func() string { return token }
			}
		})
		for _, path := range []string{"/healthz", "/readyz"} {
			for _, method := range []string{"GET", "HEAD"} {
				w := d.ask(method, path, "", func(r *http.Request) { r.RemoteAddr, r.Host = "192.0.2.1:1", "10.1.2.3" })
				if w.Code != 200 {
					t.Errorf("%s %s: %d", method, path, w.Code)
				}
			}
			problem(t, d.ask("POST", path, "{}"), 405, "takes GET")
		}
	}
}

// A form of another site can send none of these types.
func TestWritesNeedJSON(t *testing.T) {
	pushed := false
	d := newDesk(t, few, func(o *Options) { o.Load = func(float64) error { pushed = true; return nil } })
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "text/json, application/json"} {
		problem(t, d.ask("POST", "/load", `{"value":1}`, header("Content-Type", kind)), 415, "application/json")
	}
	if pushed {
		t.Error("it was done")
	}
	if w := d.ask("POST", "/load", `{"value":1}`, header("Content-Type", "application/json; charset=utf-8")); w.Code != 200 || !pushed {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	problem(t, d.ask("GET", "/load", ""), 405, "POST")
	problem(t, d.ask("DELETE", "/keys", ""), 405, "GET")
}

func TestAudit(t *testing.T) {
	d := newDesk(t, few, func(o *Options) { o.Load = func(float64) error { return nil } })
	f := func(want ...string) {
		t.Helper()
		line := d.log.String()
		d.log.Reset()
		if strings.Count(line, "\n") != 1 {
			t.Errorf("%d lines: %s", strings.Count(line, "\n"), line)
		}
		for _, part := range want {
			if !strings.Contains(line, part) {
				t.Errorf("no %q in %s", part, line)
			}
		}
	}
	d.ask("POST", "/load", `{"value":0.7}`)
	f(`msg="admin: write"`, "who=local", "peer=127.0.0.1:40000", "path=/load", "value=0.7")
	d.ask("POST", "/keys/reset", `{"as":{"ip":"203.0.113.9"},"rule":"api"}`)
	f(`msg="admin: write"`, "path=/keys/reset", "rule=api", "as=map[ip:203.0.113.9]", "counters=1")
	d.ask("POST", "/keys/reset", `{"as":{"ip":"203.0.113.9"},"rule":"apo"}`)
	f(`msg="admin: write failed"`, "rule=apo", "There is no rule apo; did you mean api?")
	d.ask("POST", "/keys/reset", `{}`, func(r *http.Request) { r.RemoteAddr = "192.0.2.1:1" })
	f(`msg="admin: write refused"`, "peer=192.0.2.1:1", "path=/keys/reset", "only this machine")
	d.ask("GET", "/keys?rule=api&as=ip=1.2.3.4", "")
	if d.log.Len() > 0 {
		t.Errorf("reading is logged: %s", d.log)
	}
}
