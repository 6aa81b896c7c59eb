//go:build unix

package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules/source/dogma/dogmatest"
	"tidegate.dev/tidegate/rules/source/feed"
)

const (
	baseRules = "version: 1\nlists: { office: file lists/office.txt }\nrules:\n  - { name: api, per: ip, limits: 5/hour }\n  - { name: all, per: everyone, limits: 1000/hour }\n"
	overRules = "version: 1\ninstances: 3\nrules:\n  - { name: api, per: ip, limits: %d/hour, replace: true }\n"
)

// inForce is what /rules says.
type inForce struct {
	Hash    string   `json:"hash"`
	Rules   []string `json:"rules"`
	Current bool     `json:"current"`
	Error   string   `json:"error"`
}

func (w *sandbox) inForce(admin string) (is inForce) {
	w.Helper()
	_, body := w.get(once, admin+"/rules")
	if err := json.Unmarshal([]byte(body), &is); err != nil {
		w.Fatal(err)
	}
	return is
}

// admitted asks until it is refused, and returns how often it was not.
func (w *sandbox) admitted(gateway string) (n int) {
	w.Helper()
	for range 50 {
		if code, _ := w.get(once, gateway+"/api"); code == http.StatusTooManyRequests {
			return n
		}
		n++
	}
	return n
}

// An instance with two layers feeds another: that has the same rules with the same hash, gets
// changes, is listed with what it applies, and goes on when the first is gone. No secret leaves.
func testFollowers(t *testing.T, bin string) {
	w := newSandbox(t, bin, "base.yaml", baseRules, "over.yaml", fmt.Sprintf(overRules, 7), "jwt.key", strings.Repeat("secret-of-tokens", 4),
		"tidegate.yaml", "rules: [base.yaml, over.yaml]\ntrust: { jwt: { key: jwt.key }, api_keys: { file: api-keys.csv } }\n")
	if err := os.Mkdir(w.dir+"/lists", 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("lists/office.txt", "192.0.2.0/24\n")
	w.apiKeys("add", "acme")
	feeder := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	_, admin := feeder.ready()
	_, text := w.get(once, admin+"/rules/bundle")
	b, err := feed.Decode([]byte(text))
	if err != nil || len(b.Files) != 3 || len(b.Over) != 1 || strings.Contains(text, "secret-of") || strings.Contains(text, "acme") {
		t.Fatalf("%v: %s", err, text)
	}

	f := newSandbox(t, bin)
	follower := f.serve("", nil, "--rules="+admin+"/rules/bundle", "--rules_source.copy="+f.dir+"/copies", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	gateway, followerAdmin := follower.ready()
	if is, want := f.inForce(followerAdmin), w.inForce(admin); is.Hash != want.Hash || is.Hash == "" || len(is.Rules) != 2 {
		t.Errorf("the follower has %+v, and follows %+v", is, want)
	}
	if n := f.admitted(gateway); n != 7 {
		t.Errorf("%d requests pass", n)
	}
	status := func() string {
		_, body := w.get(once, admin+"/rules/status")
		return strings.ReplaceAll(body, " ", "")
	}
	w.until("the follower is listed, and nobody is behind", func() bool {
		body := status()
		return strings.Contains(body, `"follows":true`) && strings.Contains(body, `"current":true`)
	})

	old := f.inForce(followerAdmin).Hash
	w.write("over.yaml", fmt.Sprintf(overRules, 9))
	w.until("the follower applies what has changed", func() bool {
		is := f.inForce(followerAdmin).Hash
		return is != old && is == w.inForce(admin).Hash
	})
	if n := f.admitted(gateway); n != 2 {
		t.Errorf("after 7 of 9, %d requests pass", n)
	}
	w.until("and says so", func() bool { return strings.Contains(status(), `"current":true`) })

	// One whose rules cannot be used there says why.
	w.write("over.yaml", "rules: [")
	feeder.await(1, "rules not reloaded: those loaded before stay in force")
	if is := f.inForce(followerAdmin); is.Error != "" || !is.Current {
		t.Errorf("the follower was given bad rules: %+v", is)
	}

	feeder.signal(syscall.SIGTERM)
	if code := feeder.end(); code != 0 {
		t.Errorf("the one that feeds ends with %d while another waits", code)
	}
	if n := f.admitted(gateway); n != 0 {
		t.Errorf("without the feed, %d requests pass", n)
	}
	w.until("the follower says that it is alone", func() bool {
		_, body := f.get(once, followerAdmin+"/rules/status")
		return strings.Contains(body, `"error"`)
	})
	follower.signal(syscall.SIGTERM)
	follower.end()
	again := f.serve("", nil, "--rules="+admin+"/rules/bundle", "--rules_source.copy="+f.dir+"/copies", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	gateway, _ = again.ready()
	if n := f.admitted(gateway); n != 9 {
		t.Errorf("from the copy, %d requests pass", n)
	}
}

// webRules is a server with one rule file and a list, which counts requests.
type webRules struct {
	mu    sync.Mutex
	limit int
	bad   bool
	away  atomic.Bool
}

func (s *webRules) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("version: 1\nlists: { office: file office.txt }\nrules: [{ name: api, per: ip, limits: %d/hour }]\n", s.limit)
	if s.bad {
		text = "version: 1\nrules: [{ name: api, per: ip }]\n"
	}
	if strings.HasSuffix(r.URL.Path, "/office.txt") {
		text = "192.0.2.0/24\n"
	}
	etag := fmt.Sprintf(`"%d-%d"`, s.limit, len(text))
	switch {
	case s.away.Load():
		panic(http.ErrAbortHandler)
	case r.Header.Get("Authorization") != "Bearer hush":
		w.WriteHeader(http.StatusUnauthorized)
	case r.Header.Get("If-None-Match") == etag:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("ETag", etag)
		_, _ = w.Write([]byte(text))
	}
}

// Rules of a web server: they change while requests pass, bad ones are refused, and the server
// may go and come back.
func testWebServer(t *testing.T, bin string) {
	site := &webRules{limit: 7}
	server := httptest.NewServer(site)
	defer server.Close()
	w := newSandbox(t, bin, "token", "hush\n")
	s := w.serve("", nil, "--rules="+server.URL+"/limits/rules.yaml", "--rules_source.token_file="+w.dir+"/token", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	gateway, admin := s.ready()
	if n := w.admitted(gateway); n != 7 {
		t.Errorf("%d requests pass", n)
	}
	change := func(limit int, bad bool) {
		site.mu.Lock()
		defer site.mu.Unlock()
		site.limit, site.bad = limit, bad
	}
	change(9, false)
	n := 0
	w.until("the new limit is in force", func() bool { n += w.admitted(gateway); return n == 2 })
	change(10, true)
	w.until("bad rules are refused", func() bool { return !w.inForce(admin).Current })
	if is := w.inForce(admin); !strings.Contains(is.Error, "limits/rules.yaml: rules.yaml:2") {
		t.Errorf("%+v", is)
	}
	site.away.Store(true)
	s.await(1, "a source of rules cannot be followed: the rules in force stay")
	change(12, false)
	site.away.Store(false)
	n = 0
	w.until("it is followed again", func() bool { n += w.admitted(gateway); return n == 3 })
}

// Rules of Central Dogma.
func testCentralDogma(t *testing.T, bin string) {
	stand := dogmatest.New("shop", "limits", "hush")
	server := httptest.NewServer(stand)
	defer server.Close()
	rule := func(limit int) map[string]string {
		return map[string]string{"/gateway/rules.yaml": fmt.Sprintf("version: 1\ninclude: more.yaml\nrules: [{ name: api, per: ip, limits: %d/hour }]\n", limit), "/gateway/more.yaml": "version: 1\nlists: { office: [192.0.2.0/24] }\n"}
	}
	stand.Commit("first", rule(7))
	w := newSandbox(t, bin, "token", "hush\n")
	s := w.serve("", nil, "--rules=dogma://"+server.Listener.Addr().String()+"/shop/limits/gateway/rules.yaml", "--rules_source.token_file="+w.dir+"/token", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	gateway, _ := s.ready()
	if n := w.admitted(gateway); n != 7 {
		t.Errorf("%d requests pass", n)
	}
	stand.Commit("sale", rule(9))
	n := 0
	start := time.Now()
	w.until("the new limit is in force", func() bool { n += w.admitted(gateway); return n == 2 })
	t.Logf("in force after %s", time.Since(start))
}
