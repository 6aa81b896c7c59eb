package admin

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
)

// everyEndpoint has the least role that may use each endpoint, by method and path.
var everyEndpoint = []struct {
	method, path, body string
	least              Role
}{
	{"GET", "/metrics", "", Scrape},
	{"GET", "/rules", "", View},
	{"POST", "/rules/validate", `{"source":"version: 1\nrules: []\n"}`, View},
	{"POST", "/rules/plan", `{"main":"a","files":{"a":"version: 1\nrules: []\n"}}`, View},
	{"POST", "/rules/explain", `{"url":"/api/"}`, View},
	{"POST", "/rules/reload", `{}`, Rule},
	{"GET", "/rules/bundle", "", View},
	{"GET", "/rules/status", "", View},
	{"GET", "/rules/history", "", View},
	{"GET", "/rules/history/files?hash=0123456789", "", View},
	{"GET", "/fleet", "", View},
	{"GET", "/keys?as=ip=192.0.2.1", "", View},
	{"POST", "/keys/reset", `{"as":{"ip":"192.0.2.1"}}`, Operate},
	{"POST", "/keys/reset", `{"as":{"ip":"192.0.2.1"},"preview":true}`, Operate},
	{"POST", "/keys/refund", `{"as":{"ip":"192.0.2.1"},"events":1}`, Operate},
	{"GET", "/measures", "", View},
	{"POST", "/measures", `{"kind":"ban","as":{"ip":"192.0.2.1"},"reason":"a test"}`, Operate},
	{"POST", "/measures", `{"kind":"ban","as":{"ip":"192.0.2.2"},"reason":"a test","preview":true}`, Operate},
	{"POST", "/measures", `{"kind":"override","as":{"ip":"192.0.2.1"},"rule":"api","limits":["9/minute"],"reason":"a test"}`, Operate},
	{"POST", "/measures/end", `{"kind":"ban","as":{"ip":"192.0.2.1"}}`, Operate},
	{"GET", "/deferred", "", View},
	{"GET", "/deferred?state=dead&n=5", "", View},
	{"POST", "/deferred/retry", `{"id":"x"}`, Operate},
	{"POST", "/deferred/drop", `{"rule":"api","reason":"a test"}`, Operate},
	{"POST", "/deferred/drain", `{}`, Operate},
	{"GET", "/offenders", "", View},
	{"GET", "/series", "", View},
	{"GET", "/audit", "", View},
	{"POST", "/why", `{"slip":"rs1_abc"}`, View},
	{"GET", "/overview", "", View},
	{"GET", "/live", "", View},
	{"GET", "/session", "", Scrape},
	{"GET", "/rules/rule?rule=api", "", View},
	{"GET", "/rules/files", "", View},
	{"POST", "/rules/apply", `{"hash":"","files":{"rules.yaml":""},"reason":"a test"}`, Rule},
	{"POST", "/load", `{"value":0.5}`, Operate},
	{"GET", "/debug/pprof/cmdline", "", Operate},
	{"GET", "/debug/pprof/", "", Operate},
	{"GET", "/openapi.yaml", "", View},
	{"GET", "/no/such/thing", "", View},
	{"DELETE", "/keys", "", View},
}

// credentials are every way to say who one is, as an operator of a role.
var credentials = map[string]func(Role) func(*http.Request){
	"token": func(role Role) func(*http.Request) { return header("Authorization", "Bearer "+tokenOf(role)) },
	"certificate": func(role Role) func(*http.Request) {
		return func(r *http.Request) { r.TLS = verified("cert-" + role.String()) }
	},
	"sso": func(role Role) func(*http.Request) {
		return func(r *http.Request) {
			r.RemoteAddr = "10.0.0.7:4711"
			r.Header.Set("X-User", "sso-"+role.String())
		}
	},
}

func tokenOf(role Role) string { return "the-token-of-" + role.String() }

func verified(name string) *tls.ConnectionState {
	return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name}}}}}
}

var allRoles = []Role{Scrape, View, Operate, Rule}

// newGuarded is a desk with an operator of every role, by every way.
func newGuarded(t *testing.T, log Audit) *desk {
	t.Helper()
	var text strings.Builder
	certificates, signedIn := make(map[string]Role), make(map[string]Role)
	for _, role := range allRoles {
		hash := sha256.Sum256([]byte(tokenOf(role)))
		fmt.Fprintf(&text, "%s-op %s %s\n", role, role, hex.EncodeToString(hash[:]))
		certificates["cert-"+role.String()], signedIn["sso-"+role.String()] = role, role
	}
	operators, err := ParseOperators("operators", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	var d *desk
	d = newDesk(t, few, func(o *Options) {
		o.Operators = func() Operators { return operators }
		o.Certificates = certificates
		o.SSO = &SSO{Header: "X-User", From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, Roles: signedIn}
		o.Load = func(float64) error { return nil }
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/plain") })
		o.Series = func() Series { return Series{Step: 1, Lines: []Line{}} }
		o.Compile = func(name string, src []byte) (*rules.Set, error) {
			return rules.Parse("rules.yaml", src, rules.Config{})
		}
		o.Reload = func() { d.rules.status.Reloads++ }
		o.Audit = log
		o.Offenders = func(offenders.Query) offenders.Report { return offenders.Report{} }
	})
	return d
}

// Each role may do what the table says, and nothing else: that is 403. Without credentials,
// everything is 401; from another origin, everything is 403.
func TestEachRoleAtEachEndpoint(t *testing.T) {
	d := newGuarded(t, nil)
	for _, e := range everyEndpoint {
		for way, as := range credentials {
			for _, role := range allRoles {
				w := d.ask(e.method, e.path, e.body, as(role))
				if got, want := w.Code != 403 && w.Code != 401, role >= e.least; got != want {
					t.Errorf("%s %s as %s by %s: %d", e.method, e.path, role, way, w.Code)
				}
				if role < e.least {
					problem(t, w, 403, "needs "+e.least.String())
				}
				for _, foreign := range []func(*http.Request){
					header("Origin", "https://attacker.example"), header("Origin", "null"), header("Origin", "http://127.0.0.1:9091"),
					header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Site", "same-site"),
				} {
					problem(t, d.ask(e.method, e.path, e.body, as(role), foreign), 403, "another site")
				}
				own := "http://127.0.0.1:9090"
				if way == "certificate" { // which is shown over TLS
					own = "https://127.0.0.1:9090"
				}
				if w := d.ask(e.method, e.path, e.body, as(role), header("Origin", own), header("Sec-Fetch-Site", "same-origin")); (w.Code == 403) != (role < e.least) {
					t.Errorf("%s %s as %s by %s from its own origin: %d", e.method, e.path, role, way, w.Code)
				}
			}
		}
		problem(t, d.ask(e.method, e.path, e.body), 401, "token")
		problem(t, d.ask(e.method, e.path, e.body, header("Origin", "https://attacker.example")), 403, "another site")
	}
}

// An origin has a scheme, too: over TLS, a page without it is of another listener of this host. A
// proxy may speak TLS to browsers, or to this listener, without the other.
func TestOriginOverTLS(t *testing.T) {
	d := newGuarded(t, nil)
	f := func(want int, origin string, encrypted bool, peer string) {
		t.Helper()
		w := d.ask("GET", "/rules", "", credentials["token"](View), func(r *http.Request) {
			r.Host, r.RemoteAddr = "gateway.example", peer
			r.Header.Set("Origin", origin)
			if encrypted {
				r.TLS = new(tls.ConnectionState)
			}
		})
		if w.Code != want {
			t.Errorf("%s, encrypted %v, from %s: %d, want %d", origin, encrypted, peer, w.Code, want)
		}
	}
	const client, proxy = "192.0.2.1:1", "10.0.0.7:1"
	f(200, "https://gateway.example", true, client)
	f(200, "https://gateway.example:443", true, client)
	f(403, "http://gateway.example", true, client)
	f(403, "http://gateway.example:80", true, client)
	f(200, "http://gateway.example", false, client)
	f(200, "https://gateway.example", false, client)
	f(200, "http://gateway.example", true, proxy)
	f(200, "https://gateway.example", true, proxy)
}

// The table has every endpoint that is served.
func TestTableOfRolesIsComplete(t *testing.T) {
	for path, methods := range document().At("paths") {
		for method := range methods.(map[string]any) {
			if path == "/healthz" || path == "/readyz" { // for everybody
				continue
			}
			if path == "/session" && method != "get" { // for whoever has a token or a session: see TestSignIn
				continue
			}
			found := false
			for _, e := range everyEndpoint {
				is, _, _ := strings.Cut(e.path, "?")
				found = found || is == path && strings.EqualFold(e.method, method)
			}
			if !found {
				t.Errorf("no role was tried for %s %s", method, path)
			}
		}
	}
}

// Names that nobody gave a role have none; "*" gives all others one.
func TestRolesOfOthers(t *testing.T) {
	f := func(roles map[string]Role, name string, want int) {
		t.Helper()
		d := newDesk(t, few, func(o *Options) {
			o.Certificates = roles
			o.SSO = &SSO{Header: "X-User", From: []netip.Prefix{netip.MustParsePrefix("2001:db8::7/128")}, Roles: roles}
		})
		if w := d.ask("GET", "/rules", "", func(r *http.Request) { r.TLS = verified(name) }); w.Code != want {
			t.Errorf("a certificate of %q: %d, want %d", name, w.Code, want)
		}
		w := d.ask("GET", "/rules", "", func(r *http.Request) {
			r.RemoteAddr = "[2001:db8::7]:1"
			r.Header.Set("X-User", name)
		})
		if w.Code != want {
			t.Errorf("%q, signed in: %d, want %d", name, w.Code, want)
		}
	}
	some := map[string]Role{"alice": View}
	f(some, "alice", 200)
	f(some, "Alice", 403)
	f(some, "bob", 403)
	f(some, "*", 403)
	f(some, "", 401)
	f(some, "a\x00b", 401)
	f(some, strings.Repeat("a", maxName+1), 401)
	all := map[string]Role{"*": View, "mallory": Nobody}
	f(all, "bob", 200)
	f(all, "*", 200)
	f(all, "mallory", 403)
}

// A header is believed from the proxy alone, and only if there is one.
func TestSSOFromElsewhere(t *testing.T) {
	d := newGuarded(t, nil)
	f := func(want int, change func(*http.Request)) {
		t.Helper()
		if w := d.ask("GET", "/rules", "", change); w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
	}
	from := func(peer string, names ...string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr, r.Header["X-User"] = peer, names }
	}
	f(200, from("10.0.0.7:1", "sso-view"))
	f(200, from("[::ffff:10.0.0.7]:1", "sso-view"))
	f(401, from("10.0.1.7:1", "sso-view"))
	f(401, from("127.0.0.1:1", "sso-view"))
	f(401, from("@", "sso-view"))
	f(401, from("", "sso-view"))
	f(401, from("10.0.0.7:1", "sso-view", "sso-rule"))
	f(401, from("10.0.0.7:1"))
	// A wrong token is wrong, whoever sends it.
	f(401, func(r *http.Request) {
		from("10.0.0.7:1", "sso-view")(r)
		r.Header.Set("Authorization", "Bearer nonsense")
	})
	// The name of the page that the browser asked for, as the proxy tells it.
	page := func(host string) func(*http.Request) {
		return func(r *http.Request) {
			from("10.0.0.7:1", "sso-view")(r)
			r.Header.Set("Origin", "https://limits.example")
			r.Header.Set("X-Forwarded-Host", host)
		}
	}
	f(200, page("limits.example"))
	f(200, page("limits.example:443"))
	f(403, page("other.example"))
	f(403, func(r *http.Request) { // nobody else may tell
		r.Header.Set("Authorization", "Bearer "+tokenOf(View))
		r.Header.Set("Origin", "https://limits.example")
		r.Header.Set("X-Forwarded-Host", "limits.example")
	})
}

// A certificate that was not verified is none.
func TestCertificateThatNobodyVerified(t *testing.T) {
	d := newGuarded(t, nil)
	w := d.ask("GET", "/rules", "", func(r *http.Request) {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: "cert-rule"}}}}
	})
	problem(t, w, 401, "certificate")
}

func TestParseOperators(t *testing.T) {
	const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of test
	f := func(text, want string) {
		t.Helper()
		r, err := ParseOperators("operators", []byte(text))
		switch {
		case want == "" && (err != nil || len(r) == 0):
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		case err != nil && strings.Contains(err.Error(), "s3cret"):
			t.Errorf("%q: the error has the secret: %v", text, err)
		}
	}
	f("alice view "+hash, "")
	f("# who\n\n  alice\tview  "+strings.ToUpper(hash)+"\r\nbob rule "+strings.Repeat("ab", 32)+"\n", "")
	f("", "no operators")
	f("# nobody\n", "no operators")
	f("alice view", "has 2 words")
	f("alice view s3cret s3cret", "has 4 words")
	f("alice view s3cret", "not a SHA-256")
	f("alice view "+hash[1:], "not a SHA-256")
	f("alice view "+hash+"00", "not a SHA-256")
	f("alice admin "+hash, "no such role")
	f("alice views "+hash, "did you mean `view`")
	f("alice nobody "+hash, "no such role")
	f("alice view "+hash+"\nbob view "+hash, "operators:2:1")
	f(strings.Repeat("a", 65)+" view "+hash, "longer than 64")
	f("a\x1bb view "+hash, "cannot be printed")
	f("alice view "+hex.EncodeToString(sha256.New().Sum(nil)), "of nothing")
	r, err := ParseOperators("operators", []byte("alice view "+hash))
	if err != nil {
		t.Fatal(err)
	}
	g := guard{operators: func() Operators { return r }}
	for token, want := range map[string]bool{"test": true, "Test": false, "": false, hash: false} {
		if _, _, p := g.findToken(token); (p == nil) != want {
			t.Errorf("the token %q: %v", token, p)
		}
	}
	newline := sha256.Sum256([]byte("test\n")) // as sha256sum of a file makes it
	r, err = ParseOperators("operators", []byte("alice view "+hex.EncodeToString(newline[:])))
	if _, _, p := g.findToken("test"); err != nil || p != nil {
		t.Errorf("the hash of a file: %v, %v", err, p)
	}
}

func FuzzOperators(f *testing.F) {
	f.Add([]byte("alice view 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseOperators("operators", text)
		for hash, o := range r {
			if err != nil || o.Role == Nobody || !validName(o.Name) || hash == [sha256.Size]byte{} && !strings.Contains(string(text), strings.Repeat("0", 64)) {
				t.Errorf("%+v of %q", o, text)
			}
		}
	})
}
