package admin

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	aliceToken = "alice-0123456789abcdef"
	bobToken   = "bob-0123456789abcdef"
	ourOrigin  = "http://127.0.0.1:9090"
)

// signInDesk has alice, who may operate, bob, who may look, and a token for everything.
func signInDesk(t *testing.T, written *diary) (*desk, Operators) {
	t.Helper()
	operators := Operators{
		sha256.Sum256([]byte(aliceToken)):        {"alice", Operate, "token"},
		sha256.Sum256([]byte(bobToken + "\n")):   {"bob", View, "token"},
		sha256.Sum256([]byte("scrape-01234567")): {"prometheus", Scrape, "token"},
	}
	return newDesk(t, few, func(o *Options) {
		o.Operators = func() Operators { return operators }
		o.Token = func() string { return "master-0123456789abcdef" }
		o.Audit = written
	}), operators
}

// signIn returns the cookie of a session.
func signIn(t *testing.T, d *desk, token string, change ...func(*http.Request)) *http.Cookie {
	t.Helper()
	w := d.ask("POST", "/session", `{"token":"`+token+`"}`, change...)
	cookies := w.Result().Cookies()
	if w.Code != 200 || len(cookies) != 1 {
		t.Fatalf("%d %s, %d cookies", w.Code, w.Body, len(cookies))
	}
	return cookies[0]
}

func with(c *http.Cookie) func(*http.Request) { return func(r *http.Request) { r.AddCookie(c) } }

func whoIs(t *testing.T, d *desk, change ...func(*http.Request)) Who {
	t.Helper()
	w := d.ask("GET", "/session", "", change...)
	var is Who
	if err := json.Unmarshal(w.Body.Bytes(), &is); err != nil || w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return is
}

func TestSignIn(t *testing.T) {
	written := new(diary)
	d, _ := signInDesk(t, written)
	problem(t, d.ask("GET", "/session", ""), 401, "token")
	for token, want := range map[string]Who{
		aliceToken: {Name: "alice", Role: "operate", Via: "session"}, bobToken: {Name: "bob", Role: "view", Via: "session"},
		"master-0123456789abcdef": {Name: "token", Role: "rule", Via: "session"},
	} {
		c := signIn(t, d, token)
		if c.Name != "tidegate_session" || !c.HttpOnly || c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge != 12*3600 || c.Domain != "" || len(c.Value) < 32 || strings.Contains(c.Value, token) {
			t.Errorf("%+v", c)
		}
		is := whoIs(t, d, with(c))
		if left := time.Until(is.Ends); left < 11*time.Hour || left > 12*time.Hour {
			t.Errorf("ends at %v", is.Ends)
		}
		if is.Ends = (time.Time{}); is != want {
			t.Errorf("got %+v, want %+v", is, want)
		}
	}
	problem(t, d.ask("POST", "/session", `{"token":"nobody-0123456789abcdef"}`), 401, "not the token")
	problem(t, d.ask("POST", "/session", `{"token":""}`), 401, "not the token")
	problem(t, d.ask("POST", "/session", `{"token":"scrape-01234567"}`), 403, "pages need view")
	problem(t, d.ask("POST", "/session", `token=x`), 400, "cannot be read")
	problem(t, d.ask("PUT", "/session", `{}`), 405, "takes")
	problem(t, newDesk(t, few, nil).ask("POST", "/session", `{"token":"x"}`), 400, "no tokens")
	in := 0
	for _, e := range written.entries {
		if e.Action == "sign-in" && e.Result == Done {
			in++
		}
	}
	if in != 3 || len(written.entries) != 6 {
		t.Errorf("audit log: %+v", written.entries)
	}
	for _, secret := range []string{aliceToken, bobToken, "nobody-0123456789abcdef"} {
		text, err := json.Marshal(written.entries)
		if err != nil || strings.Contains(string(text)+d.log.String(), secret) {
			t.Errorf("%q is in a log: %v", secret, err)
		}
	}
}

// Over TLS the cookie is for TLS alone, and for this host alone.
func TestSecureCookie(t *testing.T) {
	d, _ := signInDesk(t, new(diary))
	overTLS := func(r *http.Request) { r.TLS = new(tls.ConnectionState) }
	c := signIn(t, d, aliceToken, overTLS)
	if c.Name != "__Host-tidegate_session" || !c.Secure || c.Path != "/" || c.Domain != "" {
		t.Errorf("%+v", c)
	}
	whoIs(t, d, overTLS, with(c))
	problem(t, d.ask("GET", "/session", "", with(c)), 401, "token") // a cookie for TLS does not count without
}

// A session that a client brings is never taken over: whoever has planted it stays out.
func TestSessionFixation(t *testing.T) {
	d, _ := signInDesk(t, new(diary))
	planted := &http.Cookie{Name: "tidegate_session", Value: strings.Repeat("A", 52)}
	c := signIn(t, d, aliceToken, with(planted))
	if c.Value == planted.Value {
		t.Error("the planted session was taken")
	}
	problem(t, d.ask("GET", "/session", "", with(planted)), 401, "token")
	again := signIn(t, d, aliceToken, with(c)) // another sign-in ends the session before
	problem(t, d.ask("GET", "/session", "", with(c)), 401, "token")
	whoIs(t, d, with(again))
	problem(t, d.ask("GET", "/session", "", with(planted), with(again)), 401, "token") // of two, none counts
}

// What a session writes has to come from the page itself.
func TestSessionCSRF(t *testing.T) {
	d, _ := signInDesk(t, new(diary))
	c := signIn(t, d, aliceToken)
	const body = `{"as":{"ip":"192.0.2.1"},"reason":"a test"}`
	f := func(status int, part string, change ...func(*http.Request)) {
		t.Helper()
		w := d.ask("POST", "/keys/reset", body, append(change, with(c))...)
		if status == 200 && w.Code == 200 {
			return
		}
		problem(t, w, status, part)
	}
	f(200, "", header("Origin", ourOrigin))
	f(200, "", header("Origin", ourOrigin), header("Sec-Fetch-Site", "same-origin"))
	f(403, "by Origin")
	f(403, "another site", header("Origin", "https://evil.example"))
	f(403, "another site", header("Origin", "null"))
	f(403, "another site", header("Origin", "http://127.0.0.1:8080"))
	f(403, "another site", header("Origin", ourOrigin), header("Sec-Fetch-Site", "cross-site"))
	f(403, "another site", header("Origin", ourOrigin), header("Sec-Fetch-Site", "same-site"))
	f(415, "Send JSON", header("Origin", ourOrigin), header("Content-Type", "text/plain"))
	problem(t, d.ask("POST", "/session", `{"token":"`+aliceToken+`"}`, header("Origin", "https://evil.example")), 403, "another site")
	problem(t, d.ask("DELETE", "/session", "", with(c), header("Origin", "https://evil.example")), 403, "another site")
	whoIs(t, d, with(c)) // and nobody was signed out by it
	problem(t, d.ask("GET", "/overview", "", with(c), header("Sec-Fetch-Site", "cross-site")), 403, "another site")
}

// Sessions have the role of their operator, as it is now.
func TestSessionRoles(t *testing.T) {
	d, operators := signInDesk(t, new(diary))
	bob := signIn(t, d, bobToken)
	problem(t, d.ask("POST", "/keys/reset", `{}`, with(bob), header("Origin", ourOrigin)), 403, "needs operate")
	hash := sha256.Sum256([]byte(bobToken + "\n"))
	operators[hash] = Operator{"bob", Operate, "token"}
	problem(t, d.ask("POST", "/keys/reset", `{}`, with(bob), header("Origin", ourOrigin)), 400, "whose counters")
	delete(operators, hash)
	problem(t, d.ask("GET", "/session", "", with(bob)), 401, "token")
}

func TestSignOut(t *testing.T) {
	written := new(diary)
	d, _ := signInDesk(t, written)
	c := signIn(t, d, aliceToken)
	w := d.ask("DELETE", "/session", "", with(c), header("Origin", ourOrigin))
	if gone := w.Result().Cookies(); w.Code != http.StatusNoContent || len(gone) != 1 || gone[0].MaxAge >= 0 || gone[0].Value != "" {
		t.Errorf("%d, %+v", w.Code, gone)
	}
	problem(t, d.ask("GET", "/session", "", with(c)), 401, "token") // also for who has copied it
	if w := d.ask("DELETE", "/session", "", with(c)); w.Code != http.StatusNoContent {
		t.Errorf("once more: %d", w.Code)
	}
	if last := written.entries[len(written.entries)-1]; last.Action != "sign-out" || last.Who != "alice" || len(written.entries) != 2 {
		t.Errorf("%+v", written.entries)
	}
}

// A session ends after 12 hours, however much it is used.
func TestSessionExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := signInDesk(t, new(diary))
		c := signIn(t, d, aliceToken)
		for range 11 {
			time.Sleep(time.Hour)
			whoIs(t, d, with(c))
		}
		time.Sleep(time.Hour - time.Second)
		whoIs(t, d, with(c))
		time.Sleep(time.Second)
		problem(t, d.ask("GET", "/session", "", with(c)), 401, "token")
	})
}

// However often somebody signs in, the memory is bounded, and the newest stay.
func TestManySessions(t *testing.T) {
	var all sessions
	now := time.Now()
	var last string
	for i := range 3 * maxSessions {
		last, _ = all.begin([sha256.Size]byte{}, now.Add(time.Duration(i)*time.Millisecond))
	}
	if _, ok := all.find(last, now); !ok || len(all.all) != maxSessions {
		t.Errorf("%v, %d sessions", ok, len(all.all))
	}
}

// streamer sends a line, until the operator may not see it.
type streamer struct{ allowed bool }

func (s *streamer) Stream(w http.ResponseWriter, _ *http.Request, allowed func() bool) {
	s.allowed = allowed()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
}

// The page is for everybody, what it shows is for operators, and a stream ends with the session.
func TestPageAndLive(t *testing.T) {
	live := new(streamer)
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	d, _ := signInDesk(t, new(diary))
	o := d.options
	o.Page, o.Live = page, live
	d.Handler = New(o)
	get := func(path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		for _, f := range change {
			f(r)
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return w
	}
	if w := get("/ui/app.js"); w.Code != http.StatusTeapot {
		t.Errorf("%d", w.Code)
	}
	if w := get("/"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/ui/" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := get("/live"); w.Code != 401 {
		t.Errorf("%d", w.Code)
	}
	c := signIn(t, d, bobToken)
	if w := get("/live", with(c)); w.Code != 200 || !live.allowed {
		t.Errorf("%d, %v", w.Code, live.allowed)
	}
}
