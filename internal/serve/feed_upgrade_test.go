//go:build unix

package serve

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pollsRules asks for other rules than have, as a follower does, in the background. It gets the
// status; the error fails the test.
func pollsRules(t testing.TB, at, have string) <-chan int {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, at+"/rules/bundle", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("If-None-Match", have)
	r.Header.Set("Prefer", "wait=300")
	r.Header.Set("Tidegate-Node", "follower")
	status := make(chan int, 1)
	go func() {
		res, err := once.Do(r)
		if err != nil {
			t.Errorf("a follower is not answered: %v", err)
			status <- 0
			return
		}
		res.Body.Close()
		status <- res.StatusCode
	}()
	return status
}

// etagOfRules is the ETag of the rules that followers get.
func etagOfRules(t testing.TB, at string) string {
	t.Helper()
	res, err := once.Get(at + "/rules/bundle")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", res.Status, err)
	}
	return res.Header.Get("ETag")
}

// answered returns what a follower is answered, which must not take until the end of its wait.
func answered(t testing.TB, status <-chan int) int {
	t.Helper()
	select {
	case is := <-status:
		return is
	case <-time.After(testTimeout):
		t.Fatal("the follower still waits")
		return 0
	}
}

// While an upgrade is tried there are two servers of the admin listener. The one that ends releases
// its own followers; the one that goes on has followers wait, and tells them of changes.
func TestFollowersOfTwoServers(t *testing.T) {
	s := openServer(t, map[string]string{"rules.yaml": counting("3/hour")})
	s.config.Admin.Followers = 10
	w := &sandbox{TB: t}
	open := func() (server feeding, at string) {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		opened, err := s.openAdmin()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		go func() { _ = opened.Serve(l) }()
		return opened.(feeding), "http://" + l.Addr().String()
	}
	waits := func(at feeding) {
		t.Helper()
		w.until("a follower waits", func() bool { all := at.feed.Followers(); return len(all) == 1 && all[0].Waiting })
	}
	old, at := open()
	etag := etagOfRules(t, at)
	first := pollsRules(t, at, etag)
	waits(old)
	spare, next := open()
	if err := old.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := answered(t, first); got != http.StatusNotModified {
		t.Errorf("who waited at the server that ends is answered %d", got)
	}
	third, _ := open() // for another upgrade, which fails at once
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	second := pollsRules(t, next, etag)
	waits(spare)
	if err := os.WriteFile(filepath.Join(s.config.Rules[0], "rules.yaml"), []byte(counting("4/hour")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := answered(t, second); got != http.StatusOK {
		t.Errorf("who waits at the server that goes on is answered %d after a change", got)
	}
}

// A follower that waits is released by an upgrade, which does not wait for it.
func testFollowersUpgrade(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", handoverRules)
	s := w.serve("", nil, anyPorts...)
	_, at := s.ready()
	etag := etagOfRules(t, at)
	status := pollsRules(t, at, etag)
	w.until("the follower waits", func() bool {
		_, body := w.get(once, at+"/rules/status")
		return strings.Contains(strings.ReplaceAll(body, " ", ""), `"follows":true`)
	})
	s.signal(syscall.SIGUSR2)
	if got := answered(t, status); got != http.StatusNotModified {
		t.Errorf("it is answered %d", got)
	}
	if code := s.end(); code != 0 || len(s.lines("requests were cut off that took longer than drain")) > 0 {
		t.Errorf("the predecessor exits with %d", code)
	}
	if got := etagOfRules(t, at); got != etag {
		t.Errorf("the successor serves %s, and the predecessor served %s", got, etag)
	}
}
