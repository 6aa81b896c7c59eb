package jwt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestKeysOfURL(t *testing.T) {
	p := publish(t, "a")
	v := remoteVerifier(t, Config{URL: p.server.URL})
	for range 10 {
		if got := subject(v, signed(t, "a")); got != "alice" {
			t.Fatalf("%q", got)
		}
	}
	if n := p.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if s, ok := v.Status(); !ok || s.Keys != 1 || s.Err != nil || s.OK != 1 || s.FetchedAt.IsZero() || s.Never {
		t.Errorf("%+v", s)
	}
}

// The first token of a new key is accepted at once, and those of the old key while it is there.
func TestRotation(t *testing.T) {
	p := publish(t, "a")
	v := remoteVerifier(t, Config{URL: p.server.URL})
	f := func(id string, want bool) {
		t.Helper()
		// A busy machine may take longer than a request waits.
		eventually(t, fmt.Sprintf("%s: %v", id, want), func() bool {
			_, ok := v.Claims(signed(t, id))
			return ok == want
		})
	}
	f("a", true)
	p.publish("a", "b")
	f("b", true)
	f("a", true)
	p.publish("b")
	v.remote.makeDue()
	f("a", false) // and not because a verdict is remembered
	f("b", true)
}

// Anybody can invent key ids: they cause few fetches, and delay nobody but their senders.
func TestInventedKeyIDs(t *testing.T) {
	p := publish(t, "a")
	v := remoteVerifier(t, Config{URL: p.server.URL})
	start := time.Now()
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 50 {
				if _, reason := v.Verify(signed(t, fmt.Sprintf("x%d-%d", w, i))); reason != UnknownKey {
					t.Errorf("reason %s", reason)
				}
			}
		})
	}
	all.Wait()
	earned := int64(time.Since(start)/unknownEvery) + 1 // by a slow run
	if n := p.asked.Load(); n < 2 || n > 1+unknownBurst+earned {
		t.Errorf("asked %d times", n)
	}
	// Later some more are allowed.
	v.remote.mu.Lock()
	v.remote.unknown, v.remote.refilled = 0, time.Now().Add(-unknownEvery)
	v.remote.mu.Unlock()
	p.publish("a", "new")
	eventually(t, "the new key", func() bool { _, ok := v.Claims(signed(t, "new")); return ok })
}

// While the URL fails in any way, the last keys stay in use, and it is asked ever more seldom.
func TestOutage(t *testing.T) {
	closed := func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close()
		}
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = w.Write([]byte(body)) }
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"closed":         {closed, "EOF"},
		"500":            {status(500, setOf("b")), "answered 500"},
		"404":            {status(404, "not here"), "answered 404"},
		"204":            {status(204, ""), "answered 204"},
		"304 unasked":    {status(304, ""), "answered 304"},
		"html":           {status(200, "<html>sign in</html>"), "not a JSON Web Key Set"},
		"empty":          {status(200, ""), "not a JSON Web Key Set"},
		"no keys":        {status(200, `{"keys":[]}`), "no keys"},
		"null":           {status(200, `null`), "no keys"},
		"other keys":     {status(200, `{"keys":[{"kty":"RSA","use":"enc","n":"AQAB","e":"AQAB"}]}`), "none of its keys"},
		"secrets":        {status(200, `{"keys":[{"kty":"oct","kid":"s","k":"`+base64.RawURLEncoding.EncodeToString(newIssuer().secret)+`"}]}`), "none of its keys"},
		"broken key":     {status(200, `{"keys":[{"kty":"EC","crv":"P-256","x":"AQAB","y":"AQAB"}]}`), "none of its keys"},
		"too many":       {status(200, `{"keys":[`+strings.Repeat(`{"kty":"oct"},`, 100)+`{}]}`), "101 keys"},
		"too long":       {status(200, strings.Repeat(" ", maxFile)+setOf("b")), "larger than"},
		"half":           {status(200, setOf("b")[:50]), "not a JSON Web Key Set"},
		"http elsewhere": {redirect("http://keys.example.com/"), "not https"},
		"file":           {redirect("file:///etc/passwd"), "not https"},
		"in a circle":    {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, "redirected more than"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9999")
			_, _ = w.Write([]byte(setOf("b")))
		}, "EOF"},
		"endless headers": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "headers"},
	} {
		t.Run(name, func(t *testing.T) {
			p := publish(t, "a")
			v := remoteVerifier(t, Config{URL: p.server.URL + "/keys"})
			p.answers(c.answer)
			v.remote.makeDue()
			v.Refresh()
			idle(t, v)
			s, _ := v.Status()
			if s.Err == nil || !strings.Contains(s.Err.Error(), c.want) || s.Failed != 1 || s.Keys != 1 || s.Since.IsZero() {
				t.Errorf("%+v, want %q", s, c.want)
			}
			v.remote.due.Store(time.Now().Add(time.Hour).UnixNano()) // a longer backoff than this test takes
			if got := subject(v, signed(t, "a")); got != "alice" {
				t.Errorf("%q", got)
			}
			// Unknown keys do not get around it, and wait for nothing.
			asked := p.asked.Load()
			for range 20 {
				if _, reason := v.Verify(signed(t, "b")); reason != UnknownKey {
					t.Errorf("reason %s", reason)
				}
			}
			if n := p.asked.Load() - asked; n > 0 {
				t.Errorf("asked %d times more", n)
			}
			p.publish("a", "b")
			eventually(t, "the end of the outage", func() bool { v.remote.makeDue(); _, ok := v.Claims(signed(t, "b")); return ok })
			if s, _ := v.Status(); s.Err != nil || !s.Since.IsZero() {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A server that does not answer holds a request for no longer than it waits in the worst case,
// and those that come later not at all.
func TestSlowServer(t *testing.T) {
	release := make(chan struct{})
	p := publish(t, "a")
	v := remoteVerifier(t, Config{URL: p.server.URL})
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte(setOf("a", "b")))
	})
	took := time.Hour
	for range 3 { // however many come; a busy machine may stand still once
		start := time.Now()
		if _, ok := v.Claims(signed(t, "b")); ok {
			t.Error("it holds before its key is there")
		}
		took = min(took, time.Since(start))
	}
	if took > fetchTimeout/2 {
		t.Errorf("requests waited %s", took)
	}
	v.remote.mu.Lock()
	v.remote.started = time.Now().Add(-FetchWait) // as if they came later
	done, started := v.remote.flight, v.remote.started
	v.remote.mu.Unlock()
	if wait(done, time.Until(started.Add(FetchWait))) {
		t.Error("it waited")
	}
	if got := subject(v, signed(t, "a")); got != "alice" {
		t.Errorf("%q: the known key does not wait", got)
	}
	close(release)
	eventually(t, "the slow answer", func() bool { _, ok := v.Claims(signed(t, "b")); return ok })
}

// A start while the URL is away goes on with the copy; without one no token holds until it answers.
func TestStartDuringAnOutage(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "jwks.json")
	p := publish(t, "a")
	remoteVerifier(t, Config{URL: p.server.URL, CopyFile: copied})
	if text, err := os.ReadFile(copied); err != nil || string(text) != setOf("a") {
		t.Fatalf("the copy: %s, %v", text, err)
	}
	if info, _ := os.Stat(copied); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	p.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	v := remoteVerifier(t, Config{URL: p.server.URL, CopyFile: copied})
	if got := subject(v, signed(t, "a")); got != "alice" {
		t.Errorf("%q with the copy", got)
	}
	idle(t, v)
	if s, _ := v.Status(); !s.Copied || s.Never || s.Err == nil || !s.FetchedAt.IsZero() {
		t.Errorf("%+v", s)
	}
	for _, broken := range []string{"", "{", "<html>", setOf()} {
		if err := os.WriteFile(copied, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		v = remoteVerifier(t, Config{URL: p.server.URL, CopyFile: copied})
		if s, _ := v.Status(); !s.Never || s.Err == nil || s.Keys != 0 {
			t.Errorf("%q: %+v", broken, s)
		}
		if _, reason := v.Verify(signed(t, "a")); reason != UnknownKey {
			t.Errorf("reason %s", reason)
		}
	}
	p.publish("a")
	eventually(t, "the keys", func() bool { v.remote.makeDue(); _, ok := v.Claims(signed(t, "a")); return ok })
	idle(t, v)
	if text, _ := os.ReadFile(copied); string(text) != setOf("a") {
		t.Errorf("the copy: %s", text)
	}
}

func TestCopyThatCannotBeWritten(t *testing.T) {
	p := publish(t, "a")
	dir := t.TempDir()
	v := remoteVerifier(t, Config{URL: p.server.URL, CopyFile: filepath.Join(dir, "no", "jwks.json")})
	if got := subject(v, signed(t, "a")); got != "alice" {
		t.Errorf("%q", got)
	}
	if s, _ := v.Status(); s.CopyErr == nil || s.Err != nil {
		t.Errorf("%+v", s)
	}
	if err := os.Mkdir(filepath.Join(dir, "no"), 0o755); err != nil {
		t.Fatal(err)
	}
	v.remote.makeDue()
	v.Refresh()
	idle(t, v)
	if s, _ := v.Status(); s.CopyErr != nil {
		t.Errorf("%+v", s)
	}
}

// An answer that has not changed keeps what was found with the keys; ETags are asked for.
func TestUnchangedKeys(t *testing.T) {
	p := publish(t)
	var conditional atomic.Int64
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			conditional.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte(setOf("a")))
	})
	v := remoteVerifier(t, Config{URL: p.server.URL})
	was := v.inUse.Load()
	for range 3 {
		v.remote.makeDue()
		v.Refresh()
		idle(t, v)
	}
	if v.inUse.Load() != was || conditional.Load() != 3 {
		t.Errorf("%d conditional requests", conditional.Load())
	}
	if s, _ := v.Status(); s.Err != nil || s.OK != 4 {
		t.Errorf("%+v", s)
	}
}

func TestWhenIsTheNextFetch(t *testing.T) {
	p := publish(t, "a")
	next := func(v *Verifier) time.Duration { return time.Until(time.Unix(0, v.remote.due.Load())) }
	f := func(header string, value string, code int, least, most time.Duration) {
		t.Helper()
		p.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(setOf("a")))
		})
		v := remoteVerifier(t, Config{URL: p.server.URL, Refresh: time.Hour})
		if d := next(v); d > most || d < least-30*time.Second { // the machine may be slow
			t.Errorf("%s: %s, %d: the next fetch is in %s", header, value, code, d)
		}
	}
	f("X", "x", 200, time.Hour, time.Hour)
	f("Cache-Control", "public, max-age=600", 200, 10*time.Minute, 10*time.Minute)
	f("Cache-Control", "max-age=86400", 200, time.Hour, time.Hour)
	f("Cache-Control", "max-age=0", 200, time.Hour, time.Hour)
	f("Cache-Control", "max-age=1", 200, minRefresh, minRefresh)
	f("Cache-Control", "max-age=x, no-cache", 200, time.Hour, time.Hour)
	f("Retry-After", "120", 503, 2*time.Minute, 2*time.Minute)
	f("Retry-After", "100000", 429, maxWait, maxWait)
	f("Retry-After", "-5", 429, 0, 2*time.Second)
	r := remote{}
	for r.inRow = 1; r.inRow < 100; r.inRow++ {
		if d := r.backoff(errors.New("x")); d < 500*time.Millisecond || d > maxBackoff*3/2 {
			t.Errorf("after %d failures: %s", r.inRow, d)
		}
	}
}

func TestURLs(t *testing.T) {
	for name, want := range map[string]bool{
		"https://login.example.com/jwks": true, "https://192.0.2.1:8443/": true,
		"http://127.0.0.1:8080/jwks": true, "http://[::1]/": true, "http://localhost/": true,
		"http://login.example.com/jwks": false, "http://127.0.0.1.example.com/": false, "http://192.168.0.1/": false,
		"ftp://login.example.com/": false, "https://": false, "https:///jwks": false, "file:///etc/jwks": false,
		"https://user:pass@login.example.com/": false, "https://a/#x": false, "https://a b/": false, "HTTPS://login.example.com/": true,
	} {
		err := CheckURL(name)
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "pass") {
			t.Errorf("a password is shown: %v", err)
		}
	}
	if _, err := New(Config{URL: "http://login.example.com/"}); err == nil {
		t.Error("keys by http")
	}
	if _, err := New(Config{URL: "https://a/", KeyFile: "b"}); err == nil {
		t.Error("two places")
	}
}
