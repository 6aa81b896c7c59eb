//go:build unix

package serve

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SIGHUP reads rules, lists and certificates again, and what is wrong with one leaves
// the one before in use. The process is the same afterwards.
func testHangUp(t *testing.T, bin string) {
	const rules = "version: 1\nidentify: { who: query who }\nlists: { bad: file bad.txt }\nrules:\n" +
		"  - { name: banned, match: /, when: { who: in bad }, deny: true }\n  - { name: few, match: /few, per: who, limits: %d/hour }\n"
	cert, key := newCertificate(t, "first")
	w := newSandbox(t, bin, "rules.yaml", fmt.Sprintf(rules, 1), "bad.txt", "mallory\n", "cert.pem", cert, "key.pem", key)
	s := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--tls.cert=cert.pem", "--tls.key=key.pem", "--admin.tls.cert=cert.pem", "--admin.tls.key=key.pem")
	gateway, admin := s.ready()
	if !strings.HasPrefix(admin, "https://") {
		t.Fatalf("admin is at %s", admin)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	ask := func(at string) (int, string) {
		t.Helper()
		res, err := client.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode, res.TLS.PeerCertificates[0].Subject.CommonName
	}
	wants := func(path string, status int, holder string) {
		t.Helper()
		w.until(fmt.Sprintf("%s is answered %d by %s", path, status, holder), func() bool {
			got, by := ask(gateway + path)
			_, operators := ask(admin + "/healthz")
			return got == status && by == holder && operators == holder
		})
	}
	wants("/?who=mallory", http.StatusForbidden, "first")
	wants("/?who=trudy", http.StatusOK, "first")

	// All of it at once, in place and within the second in which nobody looks at a
	// certificate again.
	cert, key = newCertificate(t, "second")
	w.write("cert.pem", cert)
	w.write("key.pem", key)
	w.write("bad.txt", "trudy\n")
	w.write("rules.yaml", fmt.Sprintf(rules, 2))
	s.signal(syscall.SIGHUP)
	wants("/?who=trudy", http.StatusForbidden, "second")
	wants("/?who=mallory", http.StatusOK, "second")

	// Rubbish is told, and changes nothing.
	w.write("cert.pem", "-----BEGIN")
	w.write("rules.yaml", "rules: [")
	s.signal(syscall.SIGHUP)
	s.await(1, "rules not reloaded: those loaded before stay in force")
	s.await(2, "the certificate was not reloaded: the previous one stays in use")
	wants("/?who=trudy", http.StatusForbidden, "second")
	if n := len(s.lines("serving")); n != 1 {
		t.Errorf("%d processes have served", n)
	}
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

// killRules count in each of the ways there are.
const killRules = `version: 1
identify: { who: query who }
rules:
  - { name: bucket, match: /bucket, per: who, limits: { rate: 100/week, burst: 5000, algorithm: token_bucket } }
  - { name: window, match: /window, per: who, limits: { rate: 1000000/week, algorithm: fixed_window } }
  - { name: sliding, match: /sliding, per: who, limits: { rate: 1000000/week, algorithm: sliding_window } }
  - { name: parts, match: /parts, per: who, limits: { rate: 1000000/week, algorithm: sub_windows } }
  - { name: log, match: /log, per: who, limits: { rate: 5000/week, algorithm: sliding_log } }
  - { name: quota, match: /quota, per: who, quota: { amount: 1000000/month } }
  - { name: blocked, match: /blocked, per: who, limits: 1/hour, block: 24h }
`

var killPaths = []string{"bucket", "window", "sliding", "parts", "log", "quota"}

// A process is killed again and again while it counts, in the middle of a write, too. What
// was used stays used, but for what was counted after the last snapshot but one interval.
func testKill(t *testing.T, bin string) {
	const every = 200 * time.Millisecond
	w := newSandbox(t, bin, "rules.yaml", killRules)
	args := []string{
		"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--store.memory.snapshot=counters", "--store.memory.snapshot_every=" + every.String(),
	}
	file := filepath.Join(w.dir, "counters")
	halfWritten := []string{"counters.new.123", "counters.rules.new"}
	sent := make(map[string]int64)    // by all processes
	certain := make(map[string]int64) // that must not be lost any more
	for round := range 8 {
		s := w.serve("", nil, args...)
		gateway, admin := s.ready()
		for _, half := range halfWritten {
			if text, _ := os.ReadFile(filepath.Join(w.dir, half)); strings.HasSuffix(string(text), "half of") {
				w.Errorf("round %d: %s of the process before is still there", round, half)
			}
		}
		asks := func(path string, want int) {
			t.Helper()
			if got, body := w.get(once, gateway+"/"+path+"?who=acme"); got != want {
				w.Errorf("round %d: /%s is answered %d, want %d: %s", round, path, got, want, body)
			}
		}
		counts := func(path string) { // the small API has nothing there
			t.Helper()
			asks(path, http.StatusNotFound)
			sent[path]++
		}
		if round == 0 {
			asks("blocked", http.StatusNotFound)
		} else {
			s.await(1, "counters restored")
		}
		asks("blocked", http.StatusTooManyRequests) // for a day
		for _, path := range killPaths {
			used, said := w.used(admin, path)
			if used < certain[path] || used > sent[path] {
				w.Errorf("round %d: %s has %d used, want %d to %d: %s", round, path, used, certain[path], sent[path], said)
			}
			sent[path] = used // what is lost is lost
		}
		for _, path := range killPaths {
			for range 5 + rand.IntN(20) {
				counts(path)
			}
		}
		// What is counted by now is in the second file from now.
		for path, n := range sent {
			certain[path] = n
		}
		for range 2 {
			before := modTime(file)
			w.until("there is another snapshot", func() bool { return modTime(file) != before })
		}
		for range rand.IntN(30) { // some more, which may be lost
			counts(killPaths[rand.IntN(len(killPaths))])
		}
		s.signal(syscall.SIGKILL)
		s.end()
		// As if it had been killed while it wrote.
		for _, half := range halfWritten {
			w.write(half, "tidegate memory snapshot 1\nhalf of")
		}
	}
	// The rules and the history beside the counters, what the last round wrote, and at most
	// one more, which the kill itself left.
	if left, _ := filepath.Glob(file + ".*"); len(left) > 2+len(halfWritten)+1 {
		w.Errorf("left behind: %v", left)
	}

	// A file of another kind is not taken, nor thrown away.
	w.write("counters", "tidegate memory snapshot 9\n")
	s := w.serve("", nil, args...)
	s.ready()
	if line := s.await(1, "the counters could not be restored: all counters start empty"); line["kept_as"] != "counters.bad" && line["kept_as"] != file+".bad" {
		w.Errorf("it warns %v", line)
	}
	w.until("there is a snapshot again", func() bool { return !modTime(file).IsZero() })
	if text, err := os.ReadFile(file + ".bad"); err != nil || string(text) != "tidegate memory snapshot 9\n" {
		w.Errorf("the file that was kept: %q, %v", text, err)
	}
}

func modTime(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// used is what a rule has counted for acme, and all that is said about it.
func (w *sandbox) used(admin, rule string) (n int64, said string) {
	w.Helper()
	_, said = w.get(once, admin+"/keys?rule="+rule+"&as=who=acme")
	c := w.countersIn(said)
	if len(c) != 1 {
		w.Fatalf("%s has %d counters: %s", rule, len(c), said)
	}
	return c[0].Capacity - c[0].Remaining, said
}

// After a hand-over the file is the successor's: the predecessor, which still has requests
// in hand, writes it no more, and a failed hand-over leaves it where it was.
func testSnapshotOwner(t *testing.T, bin string) {
	reached, answer := make(chan bool, 1), make(chan bool)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			reached <- true
			<-answer
		}
	}))
	t.Cleanup(upstream.Close)
	defer close(answer)
	w := newSandbox(t, bin, "rules.yaml", handoverRules, "tidegate.yaml", "drain: 20s\n")
	s := w.serve("", nil, "--upstreams="+upstream.URL, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--store.memory.snapshot=counters", "--store.memory.snapshot_every=100ms")
	gateway, _ := s.ready()
	file := filepath.Join(w.dir, "counters")
	again := func() {
		t.Helper()
		before := modTime(file)
		w.until("there is another snapshot", func() bool { return modTime(file) != before })
	}
	again()
	w.write("tidegate.yaml", "drain: soon\n")
	s.signal(syscall.SIGUSR2)
	s.await(1, "not upgraded: this process goes on, since its successor did not take over")
	again()

	go func() {
		if res, err := once.Get(gateway + "/slow"); err == nil { // or it was killed
			res.Body.Close()
		}
	}()
	<-reached
	w.write("tidegate.yaml", "drain: 20s\n")
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	w.spend(gateway, "acme") // counted by the successor alone
	again()
	again()
	successor := int(s.await(1, upgradedLine)["successor"].(float64))
	if err := syscall.Kill(successor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGKILL)
	s.end()
	next := w.serve("", nil, "--upstreams="+upstream.URL, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--store.memory.snapshot=counters")
	gateway, _ = next.ready()
	w.exhausted(gateway, "acme")
}
