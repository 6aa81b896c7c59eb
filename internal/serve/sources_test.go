//go:build unix

package serve

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Without its source, a process starts with the last good copy, or not at all, or without
// rules, as configured; a successor has the rules of its predecessor. When the source is
// back, its rules hold.
func testSourceAway(t *testing.T, bin string) {
	site := &webRules{limit: 5}
	server := httptest.NewServer(site)
	defer server.Close()
	w := newSandbox(t, bin, "token", "hush\n")
	args := []string{"--rules=" + server.URL + "/limits/rules.yaml", "--rules_source.token_file=" + w.dir + "/token", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0"}
	readiness := func(admin string) string {
		_, body := w.get(once, admin+"/readyz")
		return body
	}
	back := func(gateway string, limit int) {
		t.Helper()
		site.mu.Lock()
		site.limit = limit
		site.mu.Unlock()
		site.away.Store(false)
		n := 0
		w.until("the rules of the source hold again", func() bool { n = w.admitted(gateway); return n <= limit })
	}

	// A successor that cannot reach the source, and has no copy, has the rules of its predecessor.
	s := w.serve("", nil, args...)
	gateway, admin := s.ready()
	site.away.Store(true)
	s.await(1, "a source of rules cannot be followed: the rules in force stay")
	if body := readiness(admin); !strings.Contains(body, "a source of rules does not answer") {
		t.Error(body)
	}
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	s.await(1, "a source of rules did not answer: its last good copy is used until it does")
	if n := w.admitted(gateway); n != 5 {
		t.Errorf("%d requests pass after the upgrade, want 5", n)
	}
	if body := readiness(admin); !strings.Contains(body, `"ready": true`) || !strings.Contains(body, "its last good copy is in force") {
		t.Error(body)
	}
	if code := s.end(); code != 0 {
		t.Errorf("the predecessor exits with %d", code)
	}

	// A start without source and copy is refused.
	s = w.serve("", nil, args...)
	if code := s.end(); code == 0 || !strings.Contains(s.logText(), "there are no rules of "+server.URL) {
		t.Errorf("it exits with %d:\n%s", code, s.logText())
	}

	// Or it limits nothing until rules come.
	s = w.serve("", nil, append(args, "--rules_source.start=open")...)
	gateway, admin = s.ready()
	if n := w.admitted(gateway); n < 10 {
		t.Errorf("%d requests pass, and nothing is to be limited", n)
	}
	if body := readiness(admin); !strings.Contains(body, `"ready": true`) || !strings.Contains(body, "there are no rules yet, so nothing is limited") {
		t.Error(body)
	}
	back(gateway, 6)
	s.signal(syscall.SIGTERM)
	s.end()

	// With a copy, it has what was in force.
	copied := append(args, "--rules_source.copy="+w.dir+"/copies")
	s = w.serve("", nil, copied...)
	s.ready()
	s.signal(syscall.SIGTERM)
	s.end()
	site.away.Store(true)
	s = w.serve("", nil, copied...)
	gateway, _ = s.ready()
	if n := w.admitted(gateway); n != 6 {
		t.Errorf("%d requests pass with the copy, want 6", n)
	}
	s.signal(syscall.SIGTERM)
	s.end()
}

// A process that is told to end while it waits for its first rules ends as it was told.
func testStopBeforeRules(t *testing.T, bin string) {
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		asked := make(chan bool, 100)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked <- true
			<-r.Context().Done() // it is not answered
		}))
		t.Cleanup(server.Close) // after the end of who asks
		s := newSandbox(t, bin).serve("", nil, "--rules="+server.URL+"/rules.yaml", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
		select {
		case <-asked:
		case <-time.After(testTimeout):
			t.Fatal("the source is not asked")
		}
		s.signal(sig)
		if code := s.end(); code != 0 || strings.Contains(s.logText(), "there are no rules of") {
			t.Errorf("%v: it exits with %d:\n%s", sig, code, s.logText())
		}
	}
}
