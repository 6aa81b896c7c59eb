//go:build unix

package serve

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// What a start says, and what it refuses.
func testStart(t *testing.T, bin string) {
	ports := []string{"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0"}

	t.Run("no configuration", func(t *testing.T) {
		s := newSandbox(t, bin).serve("", nil, ports...)
		gateway, admin := s.ready()
		s.await(1, "there are no rules: nothing is limited")
		s.await(1, "there are no upstreams: requests go to a small API to try; name your own with --upstreams")
		if got, body := s.w.get(once, gateway+"/"); got != http.StatusOK || !strings.Contains(body, "demo upstream") {
			t.Errorf("answered %d: %s", got, body)
		}
		for _, path := range []string{"/healthz", "/readyz", "/rules", "/metrics"} {
			if got, body := s.w.get(once, admin+path); got != http.StatusOK {
				t.Errorf("%s answers %d: %s", path, got, body)
			}
		}
		s.signal(os.Interrupt)
		if code := s.end(); code != 0 {
			t.Errorf("exits with %d", code)
		}
	})

	t.Run("what is not built", func(t *testing.T) {
		s := newSandbox(t, bin, "rules.yaml", `version: 1
rules:
  - name: checkout
    per: ip
    limits: { rate: 50/second, algorithm: leaky_bucket }
    queue: { places: 100, max_wait: 2s }
    defer: { keep: 24h, places: 1000 }
`).serve("", nil, ports...)
		s.await(1, "`defer` of the rule `checkout` does nothing here: there is no file to keep requests in, and so they are refused; name one in `defer.file`")
	})

	t.Run("token", func(t *testing.T) {
		w := newSandbox(t, bin, "token", "s3cret-0-123456789\n")
		s := w.serve("", nil, append(ports, "--admin.token_file=token")...)
		_, admin := s.ready()
		ask := func(header string) int {
			r, err := http.NewRequest(http.MethodGet, admin+"/metrics", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", header)
			res, err := once.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode
		}
		if without, with := ask(""), ask("Bearer s3cret-0-123456789"); without != http.StatusUnauthorized || with != http.StatusOK {
			t.Errorf("without the token %d, with it %d", without, with)
		}
		for i, told := range []func(){func() {}, func() { s.signal(syscall.SIGHUP) }} { // found by itself, and at once
			now, before := fmt.Sprintf("Bearer s3cret-%d-123456789", i+1), fmt.Sprintf("Bearer s3cret-%d-123456789", i)
			w.write("token", strings.TrimPrefix(now, "Bearer ")+"\n")
			told()
			w.until("the new token is the one", func() bool { return ask(now) == http.StatusOK })
			if got := ask(before); got != http.StatusUnauthorized {
				t.Errorf("with the token before: %d", got)
			}
		}
		w.write("token", "short\n")
		s.signal(syscall.SIGHUP)
		s.await(1, "the token of the admin listener could not be read again: what was read before stays in use")
		if got := ask("Bearer s3cret-2-123456789"); got != http.StatusOK {
			t.Errorf("after a bad file: %d", got)
		}
		if strings.Contains(s.logText(), "s3cret") {
			t.Error("the token is in the log")
		}
	})

	t.Run("upstream out of order", func(t *testing.T) {
		s := newSandbox(t, bin).serve("", nil, append(ports, "--upstreams=http://127.0.0.1:1", "--health.path=/", "--health.every=100ms", "--health.unhealthy_after=1")...)
		gateway, admin := s.ready()
		var got int
		var body string
		if !testdep.Await(testTimeout, func() bool {
			got, body = s.w.get(once, admin+"/readyz")
			return got == http.StatusServiceUnavailable && strings.Contains(body, "all upstreams fail their probes")
		}) {
			t.Fatalf("/readyz answers %d: %s", got, body)
		}
		if got, _ := s.w.get(once, gateway+"/"); got != http.StatusServiceUnavailable {
			t.Errorf("answered %d", got)
		}
		if _, metrics := s.w.get(once, admin+"/metrics"); !strings.Contains(metrics, `tidegate_upstream_ejected{upstream="http://127.0.0.1:1"} 1`) {
			t.Error("metrics do not tell of the upstream")
		}
	})

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := func(name string, code int, want string, args ...string) {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t, bin, "empty", "", "short", "fifteen bytes--\n", "torn.pem", "-----BEGIN").serve("", nil, args...)
			if got := s.end(); got != code || !strings.Contains(s.logText(), want) {
				t.Errorf("exits with %d, want %d and %q:\n%s", got, code, want, s.logText())
			}
		})
	}
	f("taken port", 1, "another program does", "--listen.gateway="+l.Addr().String(), ports[1])
	f("empty token", 1, "empty is empty", append(ports, "--admin.token_file=empty")...)
	f("short token", 2, "the token of the admin listener has 15 bytes, and needs at least 16", append(ports, "--admin.token_file=short")...)
	f("bad certificate of admin", 1, "read the certificate of the admin listener", append(ports, "--admin.tls.cert=torn.pem", "--admin.tls.key=torn.pem")...)
	f("bad certificate", 1, "read the certificate of the gateway", append(ports, "--tls.cert=torn.pem", "--tls.key=torn.pem")...)
	f("admin open to all", 2, "asks for no token", "--listen.admin=:0")
}

// A socket for Redis clients that somebody else has opened for other machines needs a password, whatever address
// is configured.
func testInheritedOpenSocket(t *testing.T, bin string) {
	_, socket := heldSocket(t, "0.0.0.0:0")
	serve := func(more ...string) *serving {
		return newSandbox(t, bin, "users", "default secret\n").serve("LISTEN_FDS=1 LISTEN_FDNAMES=resp LISTEN_PID=$$", []*os.File{socket},
			append(more, "--listen.resp=127.0.0.1:1", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")...)
	}
	s := serve()
	if code := s.end(); code != 1 || !strings.Contains(s.logText(), "can be reached from other machines, and asks for no password") {
		t.Errorf("it exits with %d:\n%s", code, s.logText())
	}
	serve("--resp.users_file=users").ready()
}

// The gateway speaks TLS and HTTP/2, and takes another certificate without a
// restart.
func testCertificate(t *testing.T, bin string) {
	cert, key := newCertificate(t, "first")
	w := newSandbox(t, bin, "cert.pem", cert, "key.pem", key)
	s := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--tls.cert=cert.pem", "--tls.key=key.pem")
	gateway, _ := s.ready()
	holder := func() string {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		}}
		res, err := client.Get(gateway + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.Proto != "HTTP/2.0" || res.StatusCode != http.StatusOK {
			t.Errorf("answered %s by %s", res.Status, res.Proto)
		}
		return res.TLS.PeerCertificates[0].Subject.CommonName
	}
	if got := holder(); got != "first" {
		t.Errorf("the certificate is that of %s", got)
	}
	cert, key = newCertificate(t, "second")
	w.write("cert.pem", cert)
	w.write("key.pem", key)
	if !testdep.Await(30*time.Second, func() bool { return holder() == "second" }) {
		t.Fatal("the new certificate is not used")
	}
}

// systemd understands deploy/systemd.
func testUnits(t *testing.T, bin string) {
	verify := testdep.Need(t, "systemd-analyze")
	w := newSandbox(t, bin)
	var files []string
	for _, name := range []string{"tidegate.service", "tidegate.socket"} {
		text, err := os.ReadFile(filepath.Join("../../deploy/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		w.write(name, strings.ReplaceAll(string(text), "/usr/local/bin/tidegate", bin))
		files = append(files, filepath.Join(w.dir, name))
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "\nExecReload=/bin/kill -HUP $MAINPID\n") {
		t.Errorf("reload is not SIGHUP, %v", err)
	}
	if printed, err := exec.Command(verify, append([]string{"verify", "--man=no"}, files...)...).CombinedOutput(); err != nil || len(printed) > 0 {
		t.Errorf("%v\n%s", err, printed)
	}
}
